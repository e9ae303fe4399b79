//! Rights that are taken away while a command runs.

use std::fs;

use tenure_testkit::{Server, ServerKind, TempDir};

use crate::tool::{Tenure, key, pid_in};

/// Starts a command that runs until the file `go` is there, takes the right away, and lets it go.
fn run_and_revoke(server: &Server, right: &str, is_let_go: bool) -> crate::tool::Ran {
    let user = ["ACL", "SETUSER", "u", "reset", "on", "nopass", "~*", "&*", "+@all"];
    assert!(server.cmd(&user).is_ok());
    let dir = TempDir::new();
    let file = |name: &str| dir.path().join(name);
    let script = format!(
        "echo $$ > {}; until [ -e {} ]; do sleep 0.02; done",
        file("pid").display(),
        file("go").display()
    );
    let url = server.url().replace("redis://", "redis://u:hunter2@");
    let options = ["-v", "--ttl", "1", "--kill-after", "100ms", &key()];
    let running = Tenure::new().url(&url).args(options).sh(&script).start();
    pid_in(&file("pid"));
    assert!(server.cmd(&["ACL", "SETUSER", "u", right]).is_ok());
    if is_let_go {
        fs::write(file("go"), "").unwrap();
    }
    running.wait()
}

#[test]
fn a_permission_revoked_while_the_command_runs_is_named_and_is_no_outage() {
    for (kind, right) in ServerKind::ALL.into_iter().zip(["-pexpire", "-getrange", "-@all"]) {
        let server = Server::builder(kind).tcp().start();
        let ran = run_and_revoke(&server, right, false).code(70);
        for part in ["lost the lock", "renewals failed for", "does not permit this user"] {
            assert!(ran.stderr.contains(part), "{ran:?}");
        }
        assert!(!ran.stderr.contains("outlasts longer outages"), "{ran:?}");
    }
}

#[test]
fn a_refused_release_is_not_reported_as_a_release() {
    for kind in ServerKind::ALL {
        let server = Server::builder(kind).tcp().start();
        let ran = run_and_revoke(&server, "-del", true).code(0);
        for part in ["is not confirmed", "does not permit this user"] {
            assert!(ran.stderr.contains(part), "{ran:?}");
        }
        assert!(!ran.stderr.contains("released the lock"), "{ran:?}");
    }
}
