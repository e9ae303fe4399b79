//! The wait queue, searched: as it is, and as it must not be.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "the helpers of tests fail as the tests do, and say how far they got"
)]

mod as_it_is;
mod broken;
mod forgetting;
mod numbers;
mod slower;
mod walks;
