//! Commands that take longer than the TTL.

use std::{fs, time::Instant};

use tenure_testkit::TempDir;

use crate::tool::{Tenure, is_free, key, pid_in, shared, until_told};

#[test]
fn a_command_longer_than_the_ttl_keeps_the_lock_until_it_ends() {
    let key = key();
    let dir = TempDir::new();
    let (ready, done, script) = until_told(&dir);
    let running = Tenure::new().server(shared()).args(["--ttl", "1", &key]).sh(&script).start();
    pid_in(&ready);
    let began = Instant::now();
    let mut busy = 0;
    while busy < 5 || began.elapsed().as_millis() < 3_000 {
        let other = Tenure::new().server(shared()).args(["-n", &key]).sh("echo ran");
        other.run().code(75).stdout("");
        busy += 1;
    }
    fs::write(done, "").unwrap();
    running.wait().code(0).silent();
    assert!(is_free(shared(), &key), "it is released before the tool ends");
}

#[test]
fn help_explains_the_ttl_with_and_without_renewal() {
    let of = |command| Tenure::to(command).args(["--help"]).run().code(0).silent().words();
    let run = of("run");
    assert!(
        run.contains("renewed every third of its TTL while CMD runs, however long that is"),
        "{run}"
    );
    assert!(of("acquire").contains("The lock is not renewed: it ends with its TTL"));
}
