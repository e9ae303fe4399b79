//! Processes below the command, whatever group or session they are in, when the lock is lost.

use std::fs;

use rustix::process::Pid;
use tenure_testkit::{TempDir, eventually};

use crate::{
    setups::{Setups, lose},
    tool::{PATIENCE, TENURE, Tenure, is_running, key, pid_in},
};

/// Writes its number into the file `$1`, and obeys only SIGKILL.
const STUBBORN: &str = "trap '' TERM HUP INT; echo $$ > $1.new; mv $1.new $1; exec sleep 300";

/// The ways to leave a command's group, each of which starts `$D/stubborn` and has it write into
/// a file of its own.
const WAYS: [(&str, &str); 5] = [
    ("session", "setsid sh $D/stubborn $D/session &"),
    ("orphan", "(setsid sh $D/stubborn $D/orphan &) &"),
    // A daemon's usual way: its parent ends, and so does that one's.
    ("daemon", "(setsid sh -c '(sh $D/stubborn $D/daemon &)' &) &"),
    // A job of a shell is a group of its own.
    ("job", "bash -c 'set -m; sh $D/stubborn $D/job & wait' &"),
    ("bare", "env -i PATH=\"$PATH\" setsid sh $D/stubborn $D/bare &"),
];

#[test]
fn processes_outside_the_group_end_before_a_loss_is_reported() {
    let setups = Setups::start();
    for servers in &setups.urls {
        let (key, dir) = (key(), TempDir::new());
        let file = |name: &str| dir.path().join(name);
        fs::write(file("stubborn"), STUBBORN).unwrap();
        let ways: Vec<_> = WAYS.iter().map(|(_, start)| *start).collect();
        let script = format!("{}\necho $TENURE_TOKEN > $D/token; exec sleep 300", ways.join("\n"));
        let run = Tenure::new().env("TENURE_SERVERS", servers);
        let run = run.env("D", dir.path().to_str().unwrap());
        let running = run.args(["--ttl", "3", "--kill-after", "300ms", &key]).sh(&script).start();
        let pids: Vec<Pid> = WAYS.iter().map(|(name, _)| pid_in(&file(name))).collect();
        lose(servers, &key, &file("token"));
        running.wait().code(70).says(&["lost the lock", &key]);
        for ((name, _), pid) in WAYS.iter().zip(pids) {
            assert!(!is_running(pid), "{name} goes on, {servers}");
        }
    }
}

/// What the tool's starter left to it was not started by the command.
#[test]
fn children_inherited_by_the_tool_get_no_signal() {
    let (setups, key, dir) = (Setups::start(), key(), TempDir::new());
    let servers = &setups.urls[0];
    let script = format!(
        "sh -c 'echo $$ > $D/before; sleep 300 & echo $! > $D/below; wait' & \
         exec {TENURE} run --kill-after 300ms {key} \
         sh -c 'echo $TENURE_TOKEN > $D/token; exec sleep 300'"
    );
    let mut shell = crate::tool::in_a_session();
    shell.args(["sh", "-c", &script]).env("TENURE_SERVERS", servers).env("D", dir.path());
    let mut shell = shell.stderr(std::process::Stdio::null()).spawn().unwrap();
    let strangers = ["before", "below"].map(|name| pid_in(&dir.path().join(name)));
    lose(servers, &key, &dir.path().join("token"));
    let code = shell.wait().unwrap().code();
    let left = strangers.map(is_running);
    crate::tool::end_session(Pid::from_child(&shell));
    assert_eq!((code, left), (Some(70), [true, true]));
}

/// Without a loss they go on, as under a shell.
#[test]
fn background_processes_of_the_command_survive_without_a_loss() {
    let (setups, key, dir) = (Setups::start(), key(), TempDir::new());
    fs::write(dir.path().join("stubborn"), STUBBORN).unwrap();
    let (_, daemon) = WAYS[2];
    let run = Tenure::new().env("TENURE_SERVERS", &setups.urls[0]);
    let run = run.env("D", dir.path().to_str().unwrap()).args([&key]);
    let script = format!("exec >&- 2>&-; {daemon} until [ -e $D/daemon ]; do sleep 0.02; done");
    run.sh(&script).run().code(0).silent();
    let daemon = pid_in(&dir.path().join("daemon"));
    let goes_on = is_running(daemon);
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
    assert!(goes_on);
}

/// SIGTERM is for all of them, once, so that each may clean up.
#[test]
fn each_descendant_of_the_command_is_signalled_once() {
    let (setups, key, dir) = (Setups::start(), key(), TempDir::new());
    let polite = "trap 'echo told >> $1; exit 0' TERM; echo $$ > $1.new; mv $1.new $1; \
                  while :; do sleep 0.02; done";
    fs::write(dir.path().join("polite"), polite).unwrap();
    let script = "exec 2>&-; sh $D/polite $D/member & setsid sh $D/polite $D/session & \
                  echo $TENURE_TOKEN > $D/token; exec sh $D/polite $D/command";
    let run = Tenure::new().env("TENURE_SERVERS", &setups.urls[0]);
    let run = run.env("D", dir.path().to_str().unwrap());
    let running = run.args(["--ttl", "60", &key]).sh(script).start();
    let names = ["member", "session", "command"];
    names.iter().for_each(|name| _ = pid_in(&dir.path().join(name)));
    lose(&setups.urls[0], &key, &dir.path().join("token"));
    running.wait().code(70).says(&["lost the lock"]);
    for name in names {
        let text = fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(text.matches("told").count(), 1, "{name}: {text}");
    }
}

/// One that forks as fast as it can has children that no list shows.
#[test]
fn processes_that_keep_forking_end_before_a_loss_is_reported() {
    let (setups, key, dir) = (Setups::start(), key(), TempDir::new());
    // Each starts the next in a session of its own, and ends.
    let chain = "trap '' TERM; echo $$ > $D/new; mv $D/new $D/chain; \
                 exec setsid -f sh $D/next";
    fs::write(dir.path().join("next"), chain).unwrap();
    let script = "setsid -f sh $D/next; echo $TENURE_TOKEN > $D/token; exec sleep 300";
    let run = Tenure::new().env("TENURE_SERVERS", &setups.urls[0]);
    let run = run.env("D", dir.path().to_str().unwrap());
    let options = ["--ttl", "3", "--kill-after", "300ms", &key];
    let running = run.args(options).sh(script).start();
    eventually(PATIENCE, "the chain has begun", || dir.path().join("chain").exists());
    lose(&setups.urls[0], &key, &dir.path().join("token"));
    running.wait().code(70).says(&["lost the lock", &key]);
    let last = fs::read_to_string(dir.path().join("chain")).unwrap();
    // Whatever goes on would write another number.
    assert!(!is_running(pid_in(&dir.path().join("chain"))), "{last}");
    assert_eq!(fs::read_to_string(dir.path().join("chain")).unwrap(), last);
}
