//! What the users of other libraries ran into. `docs/origins.md` names the report behind each test.

mod cancelled;
mod expiry;
mod extending;
mod lost_replies;
mod outages;
mod queueing;
mod quorum;
mod races;
mod scripts;
mod waiting;

use tenure_testkit::FakeAnswer;

use crate::fake;

/// A fake server's answer: grants and releases what is asked for in full, and refuses all that is
/// asked for by name.
fn answer(command: &[Vec<u8>], refusal: &str) -> FakeAnswer {
    if command[0] == b"EVALSHA" { refusal.into() } else { fake::obey(command) }
}
