//! A system that has little left for the tool.

use std::{fs, os::unix::fs::PermissionsExt as _};

use tenure_testkit::{Server, ServerKind, TempDir};

use crate::{
    setups::Setups,
    tool::{TENURE, in_a_session, key},
};

/// Each number of descriptors from too few to enough.
#[test]
fn a_shortage_of_descriptors_is_reported_and_leaves_no_lock() {
    let setups = Setups::start();
    for servers in &setups.urls {
        let mut codes = Vec::new();
        for limit in 4..=LIMIT {
            let key = key();
            // The shell's own limit; the status is asked without it.
            let line = format!(
                "(ulimit -n {limit}; exec $T run --wait 0 {key} sh -c 'exit 7'); echo $?; \
                 $T status {key} >&2; echo $?"
            );
            let mut command = in_a_session();
            command.args(["sh", "-c", &line]).env("T", TENURE).env("TENURE_SERVERS", servers);
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let code = printed.lines().next().unwrap().to_owned();
            let case = format!("{servers} with {limit}: {printed:?} {said:?}");
            assert!(["71", "7"].contains(&&*code), "{case}");
            let told = said.contains("os error 24") || said.contains("has no descriptor");
            assert!(code == "7" || told, "{case}");
            assert_eq!(printed.lines().nth(1), Some("1"), "it is free: {case}");
            codes.push(code);
        }
        let (first, last) = (codes.first().unwrap(), codes.last().unwrap());
        assert_eq!((&**first, &**last), ("71", "7"), "{servers}: {codes:?}");
    }
}

/// Each number of threads and processes from too few to enough, for a user who has no others. Only
/// root can become one, and root itself has no such limit.
#[test]
fn a_shortage_of_threads_is_reported_and_leaves_no_lock() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let server = Server::builder(ServerKind::Redis70).tcp().start();
    let dir = TempDir::new();
    let tool = dir.path().join("tenure");
    fs::copy(TENURE, &tool).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let user = 4_000_000 + std::process::id();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&home, Some(user), Some(user)).unwrap();
    let by_name = format!("redis://localhost:{}", server.port().unwrap());
    let store = format!("file://{}/locks.db", home.display());
    for servers in [&server.url(), &by_name, &store] {
        let mut codes = Vec::new();
        for limit in 1..=5 {
            let mut command = in_a_session();
            let user = user.to_string();
            command.args(["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"]);
            command.arg("prlimit").arg(format!("--nproc={limit}")).arg(&tool);
            command.args(["run", "--wait", "0", "--server", servers, "k", "sh", "-c", "exit 7"]);
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code().unwrap();
            let told = said.contains("os error 11") || said.contains("has no descriptor, thread");
            let case = format!("{servers} with {limit}: {code} {said}");
            assert!(code == 7 && said.is_empty() || code == 71 && told, "{case}");
            assert!(said.lines().count() <= 1, "{case}");
            codes.push(code);
        }
        assert_eq!((codes[0], codes[4]), (71, 7), "{servers}: {codes:?}");
    }
}

/// Enough for three servers.
const LIMIT: usize = 24;
