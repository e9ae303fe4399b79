//! The wait queue, searched: as it is, and as it must not be.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "the helpers of tests fail as the tests do, and say how far they got"
)]

mod broken_protocols;
mod forgetting;
mod numbers;
mod protocol;
mod slower;
mod walks;
