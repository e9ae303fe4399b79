//! A `tenure run` inside the command of another.

use std::fs;

use rustix::process::Signal;
use tenure_testkit::TempDir;

use crate::{
    setups::{Setups, lose},
    tool::{TENURE, Tenure, is_free, is_running, key, pid_in, shared},
};

#[test]
fn inside_the_command_the_lock_is_busy_and_stays_held() {
    let socket = shared().socket().unwrap().display().to_string();
    for options in ["-n", "--wait 300ms"] {
        let key = key();
        let url = shared().url();
        let script = format!(
            "{TENURE} run --server {url} {options} {key} echo ran; echo $?; \
             redis-cli -s {socket} EXISTS {key}"
        );
        let ran = Tenure::new().server(shared()).args(["--label", "outer", &key]).sh(&script).run();
        let ran = ran.code(0).stdout("75\n1\n");
        assert!(ran.stderr.lines().last().unwrap().contains("is held by outer for "), "{ran:?}");
        assert!(is_free(shared(), &key));
    }
}

#[test]
fn waiting_for_ones_own_lock_is_reported_and_can_be_cancelled() {
    let key = key();
    let url = shared().url();
    let inner = [&key, TENURE, "run", "--server", &url, &key, "echo", "ran"];
    let running = Tenure::new().server(shared()).args(inner).start();
    let said = running.first_words();
    assert!(said.contains("TENURE_KEY says that the command around this one has it"), "{said}");
    running.signal(Signal::TERM);
    let ran = running.wait().code(143).stdout("");
    assert_eq!(ran.stderr, said);
    assert!(is_free(shared(), &key));
}

/// Where the innermost command notes its signal, and when it has begun.
const INNERMOST: &str = "trap 'echo told >> $D/told' TERM; echo $$ > $D/pid.new; \
                         mv $D/pid.new $D/pid; while :; do sleep 0.02; done";

/// A command that ignores SIGTERM below one, two and three tools, the inner ones in sessions of
/// their own, or not.
#[test]
fn inner_runs_end_their_commands_and_release_before_the_outer_lease_ends() {
    let setups = Setups::start();
    for (servers, depth, way) in [
        (&setups.urls[0], 1, ""),
        (&setups.urls[0], 1, "setsid -w"),
        (&setups.urls[0], 3, "setsid -w"),
        (&setups.urls[1], 1, "setsid -w"),
        (&setups.urls[2], 2, "setsid -w"),
    ] {
        let (outer, dir) = (key(), TempDir::new());
        let inner: Vec<String> = (0..depth).map(|_| key()).collect();
        fs::write(dir.path().join("innermost"), INNERMOST).unwrap();
        let tools: String =
            inner.iter().map(|key| format!("{way} $T run --ttl 600 {key} ")).collect();
        // What the shells say of their children's ends is of no interest.
        let script = format!(
            "echo $TENURE_TOKEN > $D/token; exec 2>/dev/null; {tools} sh $D/innermost; exit 0"
        );
        let run = Tenure::new().env("TENURE_SERVERS", servers).env("T", TENURE);
        let run = run.env("D", dir.path().to_str().unwrap());
        let options = ["--ttl", "20", "--kill-after", "3", &outer];
        let running = run.args(options).sh(&script).start();
        let innermost = pid_in(&dir.path().join("pid"));
        lose(servers, &outer, &dir.path().join("token"));
        let case = format!("{depth} inside, {way:?}, {servers}");
        let ran = running.wait().code(70);
        ran.says(&["lost the lock", &outer]);
        assert!(!is_running(innermost), "{case}");
        for key in &inner {
            let status = Tenure::to("status").env("TENURE_SERVERS", servers).args([key]).run();
            assert!(status.stdout.starts_with("free\n"), "{case}: {status:?}");
        }
        let told = fs::read_to_string(dir.path().join("told")).unwrap();
        assert_eq!(told, "told\n", "{case}");
    }
}

/// It has no command yet, and must leave no place in the queue.
#[test]
fn an_inner_run_stops_waiting_when_the_outer_lock_is_lost() {
    let (outer, inner, dir) = (key(), key(), TempDir::new());
    shared().cmd(&["SET", &inner, "somebody", "PX", "60000"]);
    let mut monitor = shared().monitor();
    let script = "echo $TENURE_TOKEN > $D/token; exec setsid -w $T run $K true 2>/dev/null";
    let run = Tenure::new().env("TENURE_SERVERS", &shared().url()).env("T", TENURE);
    let run = run.env("D", dir.path().to_str().unwrap()).env("K", &inner);
    let running = run.args(["--ttl", "20", "--kill-after", "3", &outer]).sh(script).start();
    monitor.lines_until(|line| line.contains(&inner) && line.contains("EVAL"));
    lose(&shared().url(), &outer, &dir.path().join("token"));
    running.wait().code(70).says(&["lost the lock", &outer]);
    shared().cmd(&["DEL", &inner]);
    let queue = shared().cmd(&["KEYS", &format!("*{inner}*queue*")]);
    assert_eq!(queue, tenure_testkit::Value::Array(Vec::new()));
}

/// A signal for the outer tool alone is handed on by each, and gives the command all the time that
/// it needs.
#[test]
fn a_signal_passes_through_inner_runs_once_and_sets_no_deadline() {
    let (outer, inner, dir) = (key(), key(), TempDir::new());
    let script = "trap 'echo told >> $D/told; sleep 1; exit 5' TERM; echo $$ > $D/pid.new; \
                  mv $D/pid.new $D/pid; while :; do sleep 0.02; done";
    fs::write(dir.path().join("innermost"), script).unwrap();
    let run = Tenure::new().env("TENURE_SERVERS", &shared().url()).env("T", TENURE);
    let run = run.env("D", dir.path().to_str().unwrap()).env("K", &inner);
    let options = ["--ttl", "1", "--kill-after", "200ms", &outer];
    let script = "exec 2>/dev/null; exec $T run --ttl 1 $K sh $D/innermost";
    let running = run.args(options).sh(script).start();
    pid_in(&dir.path().join("pid"));
    running.signal(Signal::TERM);
    running.wait().code(5).silent();
    assert_eq!(fs::read_to_string(dir.path().join("told")).unwrap(), "told\n");
    assert!(is_free(shared(), &outer) && is_free(shared(), &inner));
}
