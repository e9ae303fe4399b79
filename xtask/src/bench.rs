//! `cargo xtask bench`: the programs of tenure-bench.

use crate::command::{Failure, cargo, run as run_command};
use crate::install::{self, Options};

/// Runs a benchmark; all arguments but a leading `--install` are its own.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let (options, args) = Options::leading(args);
    install::servers(options)?;
    let mut command = cargo(&["run", "--release", "--quiet", "--package", "tenure-bench", "--"]);
    run_command(command.args(args))
}
