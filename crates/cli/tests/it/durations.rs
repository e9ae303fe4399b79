//! Durations, as users write them and as servers get them.

use tenure_testkit::Value;

use crate::tool::{Tenure, key, shared};

#[test]
fn an_invalid_duration_exits_64_before_anything_is_sent() {
    let mut monitor = shared().monitor();
    let key = key();
    for ttl in ["0", "-1s", "-1", "abc", "99999999999999d", "1ms", "", "1e3", "0.1"] {
        let ran = Tenure::new().server(shared()).args(["--ttl", ttl, &key]).sh("echo ran").run();
        ran.code(64).stdout("").says(&["tenure: "]);
    }
    for ttl in ["0", "-1s", "abc", "99999999999999d", "1ms"] {
        let acquire = Tenure::to("acquire").server(shared()).args(["--ttl", ttl, &key]);
        acquire.run().code(64).stdout("").says(&["tenure: "]);
    }
    let seen = monitor.so_far();
    assert!(!seen.iter().any(|line| line.contains(&key)), "{seen:?}");
}

#[test]
fn a_bare_number_is_seconds_and_the_server_gets_milliseconds() {
    for (ttl, ms) in [("40", 40_000), ("40s", 40_000), ("90.5", 90_500), ("2m", 120_000)] {
        let key = key();
        Tenure::to("acquire").server(shared()).args(["--ttl", ttl, &key]).run().code(0);
        let Value::Int(left) = shared().cmd(&["PTTL", &key]) else { panic!("no number") };
        // The machine may be busy between the grant and this look.
        assert!((ms - 10_000..=ms).contains(&left), "{ttl} came to {left} ms");
    }
    let key = key();
    let socket = shared().socket().unwrap().display().to_string();
    let script = format!("redis-cli -s {socket} PTTL {key}");
    let ran = Tenure::new().server(shared()).args(["--ttl", "1.5", &key]).sh(&script).run();
    let left: i64 = ran.code(0).stdout.trim().parse().unwrap();
    assert!((1..=1_500).contains(&left), "{left}");
}
