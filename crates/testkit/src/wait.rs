//! Waiting, sizing and naming: what every test needs.

use std::env;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Waits until the condition holds.
///
/// # Panics
/// When it does not hold within `limit`; the message is `what`.
pub fn eventually(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let held = poll(limit, || condition().then_some(()));
    assert!(held.is_some(), "not within {limit:?}: {what}");
}

/// Asks again and again until there is an answer; `None` when there is none within `limit`.
pub(crate) fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        // Looked at before asking: the last question comes after the limit, not before it.
        let over = started.elapsed() >= limit;
        let answer = ask();
        if over || answer.is_some() {
            return answer;
        }
        thread::sleep(STEP);
    }
}

/// Raises a flag when the result is dropped, also by a panic: threads that go on until then would
/// keep a failed test from ending.
pub fn raised_at_the_end(flag: &AtomicBool) -> impl Drop + use<'_> {
    struct AtTheEnd<'a>(&'a AtomicBool);
    impl Drop for AtTheEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    AtTheEnd(flag)
}

/// The size of a test: `ci`, or `soak` when the environment says `TENURE_TIER=soak`.
#[must_use]
pub fn scale(ci: usize, soak: usize) -> usize {
    if env::var_os("TENURE_TIER").is_some_and(|tier| tier == "soak") { soak } else { ci }
}

/// A key no other call in any process uses.
#[must_use]
pub fn unique_key(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // The time distinguishes two processes that were given the same number one after the other.
    let since = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros());
    format!("{prefix}-{}-{since:x}-{number}", process::id())
}

/// Short against anything a person waits for, long against a poll of a server.
const STEP: Duration = Duration::from_millis(2);
