//! The value at a lock's key.

use tenure::blocking::Client;
use tenure_testkit::unique_key;

use crate::servers::{any, get};

#[test]
fn the_value_is_32_hex_digits_an_at_sign_and_the_label() {
    let key = unique_key("format");
    let client = Client::connect(&any().url()).unwrap();
    for (label, encoded) in [
        ("web-1/4711", "web-1/4711"),
        ("", ""),
        ("two words", "two%20words"),
        ("100%", "100%25"),
        ("\u{9501}", "%E9%94%81"),
        ("a@b", "a@b"),
    ] {
        let guard = client.lock(&key).label(label).acquire().unwrap();
        let value = get(any(), &key);
        let (random, shown) = value.text().unwrap().split_once('@').unwrap();
        assert_eq!(random.len(), 32);
        assert!(random.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
        assert_eq!(shown, encoded, "{label:?}");
        assert_eq!(value.text(), Some(guard.token().as_str()));
        guard.release().unwrap();
    }
}

#[test]
fn no_two_acquisitions_have_the_same_value() {
    let key = unique_key("values");
    let client = Client::connect(&any().url()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let guard = client.lock(&key).acquire().unwrap();
        assert!(seen.insert(guard.token().as_str().to_owned()), "{guard:?}");
        guard.release().unwrap();
    }
}
