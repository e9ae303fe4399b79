//! The same key again inside the command.

use rustix::process::Signal;

use crate::tool::{TENURE, Tenure, is_free, key, shared};

#[test]
fn o22_inside_the_command_the_lock_is_busy_and_stays_held() {
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
fn o22_a_wait_for_oneself_is_said_and_can_be_ended() {
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
