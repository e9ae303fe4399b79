//! The tool as the first process of a container, which is the parent of all orphans there.

use std::process::Command;

use tenure_testkit::{TempDir, eventually};

use crate::{
    setups::Setups,
    tool::{PATIENCE, TENURE, Tenure, end_session, in_a_session, key, pid_in},
};

/// Starts what is added in a process namespace of its own, with a `/proc` of its own.
fn in_a_container() -> Command {
    let mut command = in_a_session();
    // Other users than root need the right to make user namespaces.
    command.args(["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]);
    command
}

#[test]
fn as_pid_1_the_tool_reaps_orphans_and_exits_normally() {
    let setups = Setups::start();
    for servers in &setups.urls {
        // Each orphan ends after its parent. That it is gone from /proc means that it was reaped.
        let script = "test $PPID = 1 || exit 9; for i in 1 2 3 4 5; do \
                      sh -c 'sleep 0.1 & echo $!' > orphan; read pid < orphan; \
                      while [ -e /proc/$pid ]; do sleep 0.02; done; done; exit 7";
        let mut command = in_a_container();
        command.args(["--mount-proc", TENURE, "run", &key(), "sh", "-c", script]);
        command.env("TENURE_SERVERS", servers).current_dir(setups.dir.path());
        let mut running = command.spawn().unwrap();
        let mut code = None;
        let until = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(PATIENCE, "it ends", || {
                code = running.try_wait().unwrap();
                code.is_some()
            });
        }));
        end_session(rustix::process::Pid::from_child(&running));
        until.unwrap();
        assert_eq!(code.and_then(|code| code.code()), Some(7), "{servers}");
    }
}

#[test]
fn as_pid_1_the_tool_reaps_orphans_while_it_waits_for_the_lock() {
    let (setups, key, dir) = (Setups::start(), key(), TempDir::new());
    let servers = &setups.urls[0];
    let token = Tenure::to("acquire").env("TENURE_SERVERS", servers);
    token.args(["--ttl", "600", &key]).run().code(0);
    let child = dir.path().join("child");
    // The /proc of the host shows the host's numbers. The child is the tool's once that is there.
    let script = format!(
        "sh -c 'until [ -e {0}/go ]; do sleep 0.02; done; exec readlink /proc/self' > {0}/child & \
         exec {TENURE} run {key} true",
        dir.path().display()
    );
    let mut command = in_a_container();
    command.args(["sh", "-c", &script]).env("TENURE_SERVERS", servers);
    let mut running = command.spawn().unwrap();
    let waiting = || {
        let ran = Tenure::to("status").env("TENURE_SERVERS", servers).args(["--json", &key]).run();
        ran.stdout.contains("\"waiting\":1,")
    };
    eventually(PATIENCE, "the tool waits", waiting);
    std::fs::write(dir.path().join("go"), "").unwrap();
    let orphan = pid_in(&child).as_raw_nonzero().get();
    let is_reaped = || !std::path::Path::new(&format!("/proc/{orphan}")).exists();
    let reaped = std::panic::catch_unwind(|| eventually(PATIENCE, "it is reaped", is_reaped));
    end_session(rustix::process::Pid::from_child(&running));
    running.wait().unwrap();
    reaped.unwrap();
}

/// A `/proc` that shows another namespace's processes shows strangers under the tool's numbers.
#[test]
fn with_the_proc_of_another_pid_namespace_no_other_process_is_signalled() {
    let (setups, key, dir) = (Setups::start(), key(), TempDir::new());
    let servers = &setups.urls[0];
    let mut bystander = Command::new("sleep").arg("300").spawn().unwrap();
    let file = dir.path().join("token");
    let script = format!("echo $TENURE_TOKEN > {}; exec sleep 300", file.display());
    let mut command = in_a_container();
    command.args([TENURE, "run", "--kill-after", "300ms", &key, "sh", "-c", &script]);
    command.env("TENURE_SERVERS", servers).stderr(std::process::Stdio::piped());
    let running = command.spawn().unwrap();
    crate::setups::lose(servers, &key, &file);
    let ended = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    // Nor is any of them taken for what the command has left.
    assert!(ended.status.code() == Some(70) && said.starts_with("tenure: lost the lock"), "{said}");
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
