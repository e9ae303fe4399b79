//! Keys that hold something else than a lock, and what `status` says of what it does not know.

use tenure_testkit::{Server, ServerKind};

use crate::tool::{Tenure, key, opened, shared};

fn to(command: &str) -> Tenure {
    Tenure::to(command).server(shared())
}

#[test]
fn a_key_that_holds_data_exits_65_before_any_wait() {
    for write in [&["HSET", "KEY", "a", "1"][..], &["RPUSH", "KEY", "a"], &["SADD", "KEY", "a"]] {
        let key = key();
        let write: Vec<_> =
            write.iter().map(|word| if *word == "KEY" { key.as_str() } else { word }).collect();
        shared().cmd(&write);
        let before = shared().cmd(&["DUMP", &key]);
        // It would wait forever.
        let ran = to("acquire").args(["--ttl", "9", &key]).run();
        ran.code(65).stdout("").says(&[&key, "cannot be a lock", "a value of type"]);
        Tenure::new().server(shared()).args([&key]).sh("echo ran").run().code(65).stdout("");
        assert_eq!(shared().cmd(&["DUMP", &key]), before);
    }
}

#[test]
fn a_lock_without_a_ttl_is_reported_at_once_and_exits_75() {
    let key = key();
    shared().cmd(&["SET", &key, "theirs"]);
    let never = "without a TTL: it never ends by itself";
    to("acquire").args(["-n", "--ttl", "9", &key]).run().code(75).says(&[&key, never]);
    // While the wait goes on, and without -v.
    let waiting = to("acquire").args(["--ttl", "9", &key]).start();
    let words = waiting.first_words();
    assert!(words.contains(&key) && words.contains(never), "{words}");
    shared().cmd(&["DEL", &key]);
    waiting.wait().code(0);
}

#[test]
fn status_does_not_say_free_where_an_acquisition_would_fail() {
    for (part, write, words) in [
        ("fence", &["SET", "AT", "x"][..], "the fence key"),
        ("fence", &["RPUSH", "AT", "x"], "the fence key"),
        ("queue", &["SET", "AT", "x"], "the queue key"),
    ] {
        let key = key();
        let at = format!("{{{key}}}:tenure.{part}");
        let write: Vec<_> =
            write.iter().map(|word| if *word == "AT" { at.as_str() } else { word }).collect();
        shared().cmd(&write);
        let ran = to("status").args([&key]).run().code(69);
        assert!(!ran.stdout.contains("free") && ran.stdout.contains(words), "{ran:?}");
        let ran = to("status").args(["--json", &key]).run().code(69);
        assert!(ran.stdout.contains(&format!("\"fault\":\"{words}")), "{ran:?}");
        let ran = to("acquire").args(["-n", "--ttl", "9", &key]).run();
        ran.code(69).says(&[words, &at]);
    }
}

#[test]
fn values_that_several_servers_do_not_know_are_null() {
    let key = key();
    let servers: Vec<_> = ServerKind::ALL.into_iter().map(Server::start).collect();
    let urls: Vec<_> = servers.iter().map(|server| server.url() + "?durable=yes").collect();
    let ran = Tenure::to("status").url(&urls.join(",")).args(["--json", &key]).run().code(1);
    assert!(ran.stdout.contains("\"waiting\":null,\"waiters\":null"), "{ran:?}");
    let ran = to("status").args(["--json", &key]).run().code(1);
    assert!(ran.stdout.contains("\"waiting\":0,\"waiters\":[]"), "{ran:?}");
}

/// A counter that one of three has far ahead spoils no other, costs no lock, and is named.
#[test]
fn a_server_with_numbers_far_ahead_is_excluded_and_named() {
    let key = key();
    let servers: Vec<_> = ServerKind::ALL.into_iter().map(Server::start).collect();
    opened(&servers);
    let urls: Vec<_> = servers.iter().map(|server| server.url() + "?durable=yes").collect();
    let fence = format!("{{{key}}}:tenure.fence");
    servers[1].cmd(&["SET", &fence, "9007199254740000"]);
    for _ in 0..3 {
        let run = Tenure::new().url(&urls.join(",")).args([&key]);
        let ran = run.sh("echo $TENURE_FENCE").run().code(0);
        let number: u64 = ran.stdout.trim().parse().unwrap();
        assert!(number < 5_000_000_000_000_000, "{number}");
    }
    for server in [&servers[0], &servers[2]] {
        let last = server.cmd(&["GET", &fence]);
        let last: u64 = last.text().unwrap().parse().unwrap();
        assert!(last < 5_000_000_000_000_000, "spoiled: {last}");
    }
    let ran = Tenure::to("status").url(&urls.join(",")).args([&key]).run().code(1);
    assert!(ran.stdout.contains("far ahead of its clock"), "{ran:?}");
    assert_eq!(ran.stdout.matches("may vote").count(), 2, "{ran:?}");
}

#[test]
fn ages_are_computed_from_the_server_clock() {
    let server = Server::builder(ServerKind::Valkey91).shim().start();
    let key = key();
    // Hours behind this host's.
    server.clock().freeze_at_us(1_760_000_000_000_000);
    Tenure::to("acquire")
        .server(&server)
        .args(["--ttl", "2h", "--label", "me", &key])
        .run()
        .code(0);
    server.clock().freeze_at_us(1_760_000_000_000_000 + 90_000_000);
    let ran = Tenure::to("status").server(&server).args(["--json", &key]).run().code(0);
    assert!(ran.stdout.contains("\"held_ms\":90000,"), "{ran:?}");
}

#[test]
fn a_status_read_from_a_replica_or_without_write_access_says_so() {
    let key = key();
    let server = Server::builder(ServerKind::Valkey91).tcp().start();
    let status = |words: &[&str]| Tenure::to("status").server(&server).args(words).run();
    server.cmd(&["ACL", "SETUSER", "default", "-@write", "+eval", "+evalsha"]);
    status(&[&key]).code(69);
    let ran = status(&["--unproved", &key]).code(1);
    assert!(ran.stdout.starts_with("free, unproved"), "{ran:?}");
    server.cmd(&["ACL", "SETUSER", "default", "+@all"]);
    server.cmd(&["SET", &key, "theirs"]);
    server.cmd(&["REPLICAOF", "127.0.0.1", "1"]);
    status(&[&key]).code(69);
    let ran = status(&["--unproved", &key]).code(0);
    assert!(ran.stdout.contains("as of a replica"), "{ran:?}");
    let ran = status(&["--unproved", "--json", &key]).code(0);
    assert!(ran.stdout.contains("\"source\":\"replica\""), "{ran:?}");
}
