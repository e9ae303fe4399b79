//! `cargo xtask fuzz`: parsers are fed with what they were not made for.

use crate::command::{CommandFailure, cargo, run as run_command, run_quietly};

/// Reads `[--seconds N] [--seed N] [TARGET]`, and runs the targets whose names contain the last.
pub(crate) fn run(args: &[String]) -> Result<(), CommandFailure> {
    let (mut seconds, mut seed, mut target) = (MINUTE, 1, String::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || {
            let number = args.next().and_then(|text| text.parse().ok());
            number.ok_or_else(|| CommandFailure::new(format!("{arg} takes a number")))
        };
        match arg.as_str() {
            "--seconds" => seconds = number()?,
            "--seed" => seed = number()?,
            name => name.clone_into(&mut target),
        }
    }
    run_for(seconds, seed, &target)
}

/// Runs targets one after the other, for so many seconds together.
pub(crate) fn run_for(seconds: u64, seed: u64, target: &str) -> Result<(), CommandFailure> {
    let filter = format!("fuzz_{target}");
    let tests = ["test", "--workspace", "--all-features", "--lib", "--bins", "--quiet", "--"];
    let listed = run_quietly(cargo(&tests).args([&filter, "--list"]))?;
    let count = listed.lines().filter(|line| line.ends_with(": test")).count();
    if count == 0 {
        return Err(CommandFailure::new(format!("no target's name begins with {target:?}")));
    }
    let each = seconds * 1_000 / u64::try_from(count).unwrap_or(u64::MAX).max(1);
    println!("{count} targets, {each} ms each, seed {seed}");
    run_command(
        cargo(&tests)
            .args([&filter, "--nocapture", "--test-threads=1"])
            .env("TENURE_FUZZ_MS", each.to_string())
            .env("TENURE_FUZZ_SEED", seed.to_string()),
    )
}

/// What every change gets.
pub(crate) const MINUTE: u64 = 60;

/// What the soak gives.
pub(crate) const HOUR: u64 = 3_600;
