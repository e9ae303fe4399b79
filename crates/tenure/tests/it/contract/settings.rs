//! Settings, good and bad.

use std::time::Duration;

use tenure::{AcquireError, ConfigError, InspectError, Renewal, RunError, TtlLeft};

use super::{place::Place, subject::Lock};
use crate::{LIMIT, ms, secs};

/// Every operation that takes settings, by the error that it gives.
fn refusals(lock: &Lock) -> Vec<ConfigError> {
    let config = |error| match error {
        AcquireError::Config { error, .. } => error,
        error => panic!("{error:?}"),
    };
    let token = format!("{}@", "0".repeat(32)).parse().unwrap();
    let Err(RunError::Acquire(from_run)) = lock.run(|_| ()) else { panic!("it ran") };
    let errors = [
        lock.acquire().unwrap_err(),
        lock.acquire_within(secs(1)).unwrap_err(),
        lock.try_acquire().unwrap_err(),
        lock.resume(token).unwrap_err(),
        lock.steal().unwrap_err(),
        from_run,
    ];
    errors.into_iter().map(config).collect()
}

/// What is never sent cannot leave a trace: the store knows no such lock afterwards.
pub(super) fn a_bad_setting_is_returned_by_each_first_call(at: &Place) {
    let client = at.client();
    let good = || client.lock(&at.key);
    let long_label = "x".repeat(65);
    for (lock, words) in [
        (good().ttl(Duration::ZERO), "the TTL is zero; it must be at least 10ms"),
        (good().ttl(Duration::from_micros(10)), "the TTL of 10µs is below 1ms"),
        (good().ttl(ms(5)), "the TTL of 5ms is below the least allowed, 100ms"),
        (good().ttl(ms(99)), "the TTL of 99ms is below the least allowed, 100ms"),
        (good().ttl(ms(9)).renewal(Renewal::Manual), "9ms is below the least allowed, 10ms"),
        (good().ttl(Duration::MAX), "over the most allowed, 2^53 ms"),
        (good().label(&long_label), "the label has 65 bytes; the longest allowed is 64 bytes"),
        (good().max_hold(Duration::ZERO), "max_hold is 0ns; it must be above zero"),
        (good().min_validity(secs(10)), "min_validity is 10s; it must be below the TTL"),
        (good().node_limit(Duration::ZERO), "node_limit is 0ns; it must be above zero"),
        (good().max_ttl(Duration::ZERO), "max_ttl is 0ns; it must be at least the lock's"),
        (good().max_ttl(ms(9_999)), "max_ttl is 9.999s; it must be at least the lock's"),
        (good().max_ttl(Duration::MAX), "it must be at most 2^53 ms"),
        (good().yield_to_pollers(0), "yield_to_pollers is 0; it must be at least 1"),
        (client.lock(""), "the lock key is empty"),
        (client.lock("x".repeat(65_537)), "has 65537 bytes; the longest allowed is 65536"),
        (client.lock(format!("{}:tenure:fence", at.key)), ":tenure:fence"),
        // A bad setting waits for a good key, and a good setting mends it not.
        (good().ttl(Duration::ZERO).label("fine").min_validity(ms(1)), "the TTL is zero"),
    ] {
        for error in refusals(&lock) {
            let error = error.to_string();
            assert!(error.contains(words), "{error:?} does not say {words:?}");
        }
    }
    for key in ["", &format!("{}:tenure.queue", at.key)] {
        let lock = client.lock(key);
        assert!(matches!(
            lock.inspect(),
            Err(InspectError::Config { error: ConfigError::Key(_), .. })
        ));
        assert!(matches!(
            lock.force_release(),
            Err(InspectError::Config { error: ConfigError::Key(_), .. })
        ));
    }
    let untouched = at.inspect();
    assert_eq!((untouched.held, untouched.last_number), (None, None));
}

pub(super) fn a_setting_at_its_bound_is_accepted(at: &Place) {
    let client = at.client();
    let good = || client.lock(&at.key);
    let longest_label = "x".repeat(64);
    for lock in [
        good().ttl(ms(100)),
        good().ttl(ms(10)).renewal(Renewal::Manual),
        good().ttl(ms(1 << 53)),
        good().label(&longest_label),
        good().max_hold(Duration::from_nanos(1)),
        good().max_hold(Duration::MAX),
        good().ttl(secs(600)).min_validity(secs(500)),
        good().node_limit(Duration::MAX),
        good().max_ttl(secs(10)),
        good().max_ttl(ms(1 << 53)),
        good().repair(false),
        good().yield_to_pollers(1),
        good().yield_to_pollers(u32::MAX),
        client.lock(format!("{}{}", at.key, "x".repeat(65_536 - at.key.len()))),
    ] {
        drop(lock.acquire_within(LIMIT).unwrap_or_else(|error| panic!("{lock:?}: {error}")));
    }
    good().acquire_within(Duration::MAX).unwrap().release().unwrap();
}

pub(super) fn settings_of_one_lock_do_not_affect_another(at: &Place) {
    let client = at.client();
    let left = |lock: &Lock| {
        let guard = lock.acquire().unwrap();
        let held = lock.inspect().unwrap().held.unwrap();
        guard.release().unwrap();
        let TtlLeft::Ends(left) = held.ttl_left else { panic!("no TTL") };
        (held.holder.to_string(), left)
    };
    let plain = client.lock(&at.key);
    let set = plain.clone().ttl(secs(600)).label("set");
    let (label, ttl) = left(&set);
    assert!(label == "set" && ttl > secs(500) && ttl <= secs(600), "{label} {ttl:?}");
    let (label, ttl) = left(&plain);
    assert!(label != "set" && ttl > secs(5) && ttl <= secs(10), "{label} {ttl:?}");
}
