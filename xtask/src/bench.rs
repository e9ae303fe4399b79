//! `cargo xtask bench`: the programs of tenure-bench.

use crate::command::{CommandFailure, cargo, run as run_command};
use crate::install::{self, InstallOptions};

/// Runs a benchmark; all arguments but a leading `--install` are its own.
pub(crate) fn run(args: &[String]) -> Result<(), CommandFailure> {
    let (options, args) = InstallOptions::leading(args);
    install::servers(options)?;
    let mut command = cargo(&["run", "--release", "--quiet", "--package", "tenure-bench", "--"]);
    run_command(command.args(args))
}
