//! Keys of all sorts, and what stands at them.

use tenure::TtlLeft;

use super::place::Place;
use crate::secs;

pub(super) fn odd_keys_are_used_exactly_as_given(at: &Place) {
    let name = at.key.as_bytes();
    let long = vec![b'x'; 64 * 1024 - name.len()];
    let client = at.client();
    for part in [
        &b"\0"[..],
        b"\r\n",
        b" a  b ",
        b"\xff\xfe\x80",
        "\u{1f512}\u{9501}".as_bytes(),
        b"{tag}",
        b"a}b",
        b"{}",
        b"}{",
        b"*[a-z]?",
        b"\"'\\",
        &long,
    ] {
        let key = [name, part].concat();
        let lock = client.lock(&key);
        let guard = lock.acquire().unwrap();
        assert_eq!(guard.key().as_bytes(), key);
        assert!(lock.try_acquire().unwrap().is_none(), "{:?} twice", guard.key());
        guard.extend(secs(20)).unwrap();
        if let Some(server) = at.server() {
            assert_eq!(
                server.cmd(&[&b"GET"[..], &key]).bytes(),
                Some(guard.token().as_bytes()),
                "{:?}",
                guard.key(),
            );
        }
        guard.release().unwrap();
        assert!(lock.inspect().unwrap().held.is_none());
    }
}

pub(super) fn inspect_reports_what_is_at_the_key(at: &Place) {
    let client = at.client();
    let lock = client.lock(&at.key).label("x").ttl(secs(20));
    let nothing = lock.inspect().unwrap();
    assert_eq!((nothing.held, nothing.last_number), (None, None));
    let guard = lock.acquire().unwrap();
    let inspection = lock.inspect().unwrap();
    let held = inspection.held.unwrap();
    assert_eq!(held.holder.to_string(), "x");
    assert!(matches!(held.ttl_left, TtlLeft::Ends(left) if left > secs(10) && left <= secs(20)));
    assert_eq!(inspection.last_number, Some(guard.fencing_token()));
    let number = guard.fencing_token();
    guard.release().unwrap();
    let free = lock.inspect().unwrap();
    // The number outlives the lease: the next one must be larger.
    assert_eq!((free.held, free.last_number), (None, Some(number)));
}
