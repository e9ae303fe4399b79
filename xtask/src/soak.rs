//! `cargo xtask soak`: the same tests, as large as they get.

use std::time::SystemTime;

use crate::command::CommandFailure;
use crate::install::InstallOptions;
use crate::{fuzz, test};

/// Runs the tests of the workspace at their full size; all of them, and not a choice, are followed
/// by an hour of fuzzing with other inputs than before.
pub(crate) fn run(args: &[String]) -> Result<(), CommandFailure> {
    let (options, rest) = InstallOptions::parse(args)?;
    test::prepare(options)?;
    test::run_tests(&["--release"], rest, &[("TENURE_TIER", "soak")])?;
    if !rest.is_empty() {
        return Ok(());
    }
    let seed = SystemTime::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    fuzz::run_for(fuzz::HOUR, seed, "")
}
