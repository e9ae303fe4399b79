//! `cargo xtask soak`: the same tests, as large as they get.

use crate::command::Failure;
use crate::install::Options;
use crate::test;

/// Runs the tests of the workspace at their full size.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let (options, rest) = Options::parse(args)?;
    test::prepare(options)?;
    test::run_tests(&["--release"], rest, &[("TENURE_TIER", "soak")])
}
