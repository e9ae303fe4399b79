//! A command that moves itself into another group, and one that takes other credentials.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, geteuid, getpgrp, setpgid};
use tenure_testkit::{Server, ServerKind, TempDir, eventually};

use crate::tool::{PATIENCE, TENURE, Tenure, is_free, is_running, key, pid_in, shared};

/// The variable that makes this very program a command which leaves its group.
const LEAVE: &str = "TENURE_TEST_LEAVES_ITS_GROUP";

/// The command: joins the group of a child, and says so. Without the variable it passes.
#[test]
fn leave() {
    use std::os::unix::process::CommandExt as _;
    let Some(ready) = std::env::var_os(LEAVE) else { return };
    let mut child = Command::new("sleep");
    // It outlives the command, and must not delay readers of the command's output.
    let child = child.arg("300").stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = child.spawn().unwrap();
    let group = Pid::from_child(&child);
    setpgid(None, Some(group)).unwrap();
    assert_eq!(getpgrp(), group);
    fs::write(&ready, std::process::id().to_string()).unwrap();
    child.wait().unwrap();
}

fn leaver(ready: &std::path::Path, words: &[&str]) -> Tenure {
    let run = Tenure::new().server(shared()).env(LEAVE, ready.to_str().unwrap());
    let program = std::env::current_exe().unwrap().display().to_string();
    run.args(words).args([&program, "--exact", "outside_group::leave", "--test-threads=1"])
}

#[test]
fn a_command_that_left_its_group_gets_signals() {
    let (key, dir) = (key(), TempDir::new());
    let ready = dir.path().join("ready");
    let running = leaver(&ready, &[&key]).start();
    pid_in(&ready);
    running.signal(Signal::TERM);
    running.wait().code(143);
    assert!(is_free(shared(), &key));
}

#[test]
fn a_command_that_left_its_group_is_killed_when_the_lock_is_lost() {
    let (key, dir) = (key(), TempDir::new());
    let ready = dir.path().join("ready");
    // SIGTERM stays ignored in what a shell starts after this.
    let words = ["--ttl", "3", "--kill-after", "300ms", &key];
    let words = [&words[..], &["sh", "-c", "trap '' TERM; exec \"$@\"", "sh"]].concat();
    let running = leaver(&ready, &words).start();
    let command = pid_in(&ready);
    shared().cmd(&["DEL", &key]);
    running.wait().code(70).says(&["lost the lock", &key]);
    assert!(!is_running(command));
}

/// Stands for `sudo`: a program that takes root's credentials, all of them. Only root can make one;
/// as another user the tests skip it.
#[test]
fn a_command_that_cannot_be_signalled_is_named_at_once() {
    if !geteuid().is_root() {
        return;
    }
    let server = Server::builder(ServerKind::Redis70).tcp().start();
    let dir = TempDir::new();
    let file = |name: &str| dir.path().join(name);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (tool, sudo) = (file("tenure"), file("sudo"));
    fs::copy(TENURE, &tool).unwrap();
    fs::copy("/usr/bin/setpriv", &sudo).unwrap();
    for (program, mode) in [(&tool, 0o755), (&sudo, 0o4755)] {
        fs::set_permissions(program, fs::Permissions::from_mode(mode)).unwrap();
    }
    let (ready, done) = (file("ready"), file("done"));
    let script = format!(
        "echo $$ > {}; while [ ! -e {} ]; do sleep 0.02; done",
        ready.display(),
        done.display()
    );
    let mut command = crate::tool::in_a_session();
    command.args(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(&tool).args(["run", "--server", &server.url(), "--ttl", "3"]);
    command.args(["--kill-after", "300ms", "k"]).arg(&sudo);
    command.args(["--reuid", "0", "--regid", "0", "--clear-groups", "sh", "-c", &script]);
    let (mut errors, writer) = std::io::pipe().unwrap();
    let mut running = command.stderr(writer).spawn().unwrap();
    drop(command);
    let pid = pid_in(&ready);
    server.cmd(&["DEL", "k"]);
    let mut said = String::new();
    // Said while the command still runs.
    eventually(PATIENCE, "it is named", || {
        let mut some = [0; 4096];
        let count = std::io::Read::read(&mut errors, &mut some).unwrap();
        said.push_str(&String::from_utf8_lossy(&some[..count]));
        said.contains('\n')
    });
    let first = said.lines().next().unwrap().to_owned();
    let still_ran = is_running(pid);
    fs::write(done, "").unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(70), "{said}");
    assert!(still_ran, "{first}");
    let name = format!("process {} (", pid.as_raw_nonzero());
    assert!(first.contains(&name) && first.contains("sudo tenure run"), "{first}");
}
