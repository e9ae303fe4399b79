//! Fencing numbers: larger with each grant, and with nothing else.

use tenure::Renewal;

use super::place::Place;
use crate::{LIMIT, ms, secs};

pub(super) fn each_grant_has_a_larger_number(at: &Place) {
    let client = at.client();
    let lock = client.lock(&at.key);
    let mut numbers = Vec::new();
    for _ in 0..3 {
        let guard = lock.acquire().unwrap();
        numbers.push(guard.fencing_token());
        guard.release().unwrap();
    }
    // After a lease that ran out.
    let short = lock.clone().ttl(ms(30)).renewal(Renewal::Manual);
    let short = short.acquire_within(LIMIT).unwrap();
    numbers.push(short.fencing_token());
    at.becomes_free();
    let held = lock.acquire().unwrap();
    numbers.push(held.fencing_token());
    // After a theft.
    let stolen = at.client().lock(&at.key).steal().unwrap();
    numbers.push(stolen.fencing_token());
    // After a release by force.
    lock.force_release().unwrap();
    let last = lock.acquire().unwrap();
    numbers.push(last.fencing_token());
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    drop((short, held, stolen));
    last.release().unwrap();
}

pub(super) fn an_extension_and_a_resumption_keep_the_number(at: &Place) {
    let lock = at.client().lock(&at.key);
    let guard = lock.acquire().unwrap();
    let number = guard.fencing_token();
    guard.extend(secs(30)).unwrap();
    assert_eq!(guard.fencing_token(), number);
    assert_eq!(at.inspect().last_number, Some(number));
    let guard = lock.resume(guard.detach()).unwrap().expect("it is held by this token");
    assert_eq!(guard.fencing_token(), number);
    assert_eq!(at.inspect().last_number, Some(number));
    guard.release().unwrap();
    assert!(lock.acquire().unwrap().fencing_token() > number);
}
