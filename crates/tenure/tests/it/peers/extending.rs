//! Extensions, and the comparison of values.

use tenure::{ConfigError, ExtendError, Holder, Loss, LossReason, blocking::Client};
use tenure_testkit::{Server, ServerKind, unique_key};

use crate::{
    ms, secs,
    servers::{any, exists, get, pttl},
};

/// Reproduces: extend by zero, or by less than the server's unit: PEXPIRE 0 deletes the lock, and
/// the caller is informed that it is extended.
#[test]
fn an_extension_by_zero_is_refused_before_anything_is_sent() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let guard = client.lock("k").ttl(secs(60)).acquire().unwrap();
    let mut monitor = server.monitor();
    for ttl in [ms(0), std::time::Duration::from_nanos(1), std::time::Duration::from_micros(999)] {
        let refused = guard.extend(ttl);
        assert!(
            matches!(refused, Err(ExtendError::Config { error: ConfigError::Ttl(_), .. })),
            "{refused:?}"
        );
    }
    let sent = monitor.so_far();
    assert!(sent.is_empty(), "{sent:?}");
    assert!(exists(&server, "k"));
    guard.release().unwrap();
}

/// Reproduces: SETNX, a crash, no EXPIRE: a lock without an end.
/// Here the client dies at any moment of an acquisition; what is left must end.
#[test]
fn a_client_that_dies_while_acquiring_leaves_a_key_that_expires() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = tenure_testkit::Proxy::to(&server);
    for round in 0..30 {
        let client = tenure::Client::connect(&proxy.url()).unwrap();
        let lock = client.lock(format!("k{round}")).ttl(secs(60));
        drop(smol::block_on(smol::future::poll_once(lock.acquire())));
        std::thread::sleep(std::time::Duration::from_micros(round * 100));
        // No clean-up gets through: this is what the server sees of a crash.
        proxy.refuse();
        proxy.cut();
        drop((lock, client));
        proxy.heal();
    }
    for key in server.cmd(&["KEYS", "*"]).array() {
        let left = server.cmd(&[&b"PTTL"[..], key.bytes().unwrap()]).int();
        assert_ne!(left, -1, "{key:?}");
    }
}

/// Reproduces: a value is compared as text in one place and as bytes in another: one's own lock
/// is "no longer owned". Values of others need not be text at all.
#[test]
fn values_are_compared_as_bytes() {
    let key = unique_key("extending");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key).label("\u{9501} \u{1f512}");
    let guard = lock.acquire().unwrap();
    // A reader on the older protocol sees the same bytes.
    assert_eq!(any().cmd(&["GET", &key]).bytes(), Some(guard.token().as_bytes()));
    guard.extend(secs(20)).unwrap();
    // The same bytes with more behind them, or in the other case, are another's.
    for other in [
        [guard.token().as_bytes(), b"\0"].concat(),
        guard.token().as_bytes().to_ascii_uppercase(),
        b"\xff\xfe\0\x80".to_vec(),
    ] {
        assert!(any().cmd(&[b"SET", key.as_bytes(), &other, b"PX", b"60000"]).is_ok());
        let resumed = lock.resume(guard.token().clone()).unwrap();
        assert!(resumed.is_none());
        assert_eq!(any().cmd(&["GET", &key]).bytes(), Some(&other[..]));
    }
    let Err(ExtendError::NotHeld(Loss { reason: LossReason::Taken { holder }, .. })) =
        guard.extend(secs(20))
    else {
        panic!("extended");
    };
    assert_eq!(holder, Holder::Foreign(b"\xff\xfe\0\x80"[..].into()));
    drop(guard);
    client.close().unwrap();
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
}

/// Reproduces: the key is deleted, then extended: the extension takes the lock again as if it had
/// been held all along.
#[test]
fn an_extension_never_acquires_again() {
    let key = unique_key("extending");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).acquire().unwrap();
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
    let refused = guard.extend(secs(20));
    assert!(
        matches!(refused, Err(ExtendError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
        "{refused:?}"
    );
    assert!(!exists(any(), &key));

    let guard = client.lock(&key).acquire().unwrap();
    assert!(any().cmd(&["SET", &key, "another", "PX", "5000"]).is_ok());
    let refused = guard.extend(secs(600));
    assert!(
        matches!(refused, Err(ExtendError::NotHeld(Loss { reason: LossReason::Taken { .. }, .. }))),
        "{refused:?}"
    );
    assert_eq!(get(any(), &key).text(), Some("another"));
    assert!(pttl(any(), &key) <= 5_000);
}
