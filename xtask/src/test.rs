//! `cargo xtask test`: the servers first, then `cargo test`.

use std::process::Command;

use crate::command::{CommandFailure, cargo, run_quietly};
use crate::install::{self, InstallOptions};

/// Runs the tests of the workspace.
pub(crate) fn run(args: &[String]) -> Result<(), CommandFailure> {
    let (options, rest) = InstallOptions::parse(args)?;
    prepare(options)?;
    run_tests(&[], rest, &[])
}

/// Makes sure that everything the tests need besides cargo is there.
pub(crate) fn prepare(options: InstallOptions) -> Result<(), CommandFailure> {
    install::servers(options)?;
    run_quietly(Command::new("cc").arg("--version")).map(drop).map_err(|failure| {
        CommandFailure::new(format!(
            "the tests need a C compiler named cc (package gcc): {failure}"
        ))
    })
}

/// Runs `cargo test` over the workspace, or over the packages that the arguments name.
pub(crate) fn run_tests(
    flags: &[&str],
    rest: &[String],
    variables: &[(&str, &str)],
) -> Result<(), CommandFailure> {
    let mut command = cargo(&["test"]);
    if !names_packages(rest) {
        command.arg("--workspace");
    }
    // What has a feature of its own is tested, too: metrics.
    command.arg("--all-features").args(flags).args(rest).envs(variables.iter().copied());
    crate::command::run(&mut command)
}

/// Whether the arguments of cargo, not those of the tests, choose packages.
fn names_packages(args: &[String]) -> bool {
    let mut of_cargo = args.iter().take_while(|arg| *arg != "--");
    of_cargo.any(|arg| arg.starts_with("-p") || arg.starts_with("--package"))
}

#[cfg(test)]
mod tests {
    use super::names_packages;

    #[test]
    fn only_cargo_gets_the_packages() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(names_packages(&words("--lib -p tenure")));
        assert!(names_packages(&words("--package=tenure")));
        assert!(!names_packages(&words("--lib -- -p tenure")));
    }
}
