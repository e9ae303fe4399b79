//! `cargo xtask ci`: everything a change must pass, and `cargo xtask check`: that but the tests.

use std::time::{Duration, Instant};

use crate::command::{CommandFailure, cargo, run as run_command};
use crate::{fuzz, test, tidy};

/// Runs all steps.
pub(crate) fn run(args: &[String]) -> Result<(), CommandFailure> {
    run_steps(&STEPS, args)
}

/// Runs all steps but the tests, which come last.
pub(crate) fn check() -> Result<(), CommandFailure> {
    let (_test, checks) = STEPS.split_last().unwrap_or((&STEPS[0], &[]));
    run_steps(checks, &[])
}

/// Runs steps in order and stops at the first that fails.
fn run_steps(steps: &[(&'static str, CiStep)], args: &[String]) -> Result<(), CommandFailure> {
    let mut times = Vec::new();
    let mut outcome = Ok(());
    for &(name, step) in steps {
        println!("=== {name}");
        let started = Instant::now();
        outcome = step(args);
        times.push((name, started.elapsed()));
        if let Err(failure) = &mut outcome {
            *failure = failure.within(name);
            break;
        }
    }
    println!("{}", table(&times, outcome.is_ok()));
    outcome
}

type CiStep = fn(&[String]) -> Result<(), CommandFailure>;

const STEPS: [(&str, CiStep); 7] = [
    ("fmt", |_| run_command(&mut cargo(&["fmt", "--all", "--", "--check"]))),
    ("clippy", |_| clippy(&["--workspace", "--all-features"])),
    // As who takes the library without any feature builds it.
    ("plain", |_| clippy(&["-p", "tenure", "-p", "tenure-cli", "--no-default-features"])),
    ("doc", |_| {
        let args =
            ["doc", "--workspace", "--all-features", "--no-deps", "--document-private-items"];
        run_command(cargo(&args).env("RUSTDOCFLAGS", "-Dwarnings"))
    }),
    ("tidy", |_| tidy::run()),
    ("fuzz", |_| fuzz::run_for(fuzz::MINUTE, 1, "")),
    ("test", test::run),
];

fn clippy(what: &[&str]) -> Result<(), CommandFailure> {
    let mut command = cargo(&["clippy", "--all-targets"]);
    run_command(command.args(what).args(["--", "-D", "warnings"]))
}

fn table(times: &[(&str, Duration)], passed: bool) -> String {
    let mut lines = vec![String::new()];
    for (nth, (name, time)) in times.iter().enumerate() {
        let failed = !passed && nth + 1 == times.len();
        let mark = if failed { "  FAILED" } else { "" };
        lines.push(format!("{name:<8}{:>8.1} s{mark}", time.as_secs_f64()));
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    lines.push(format!("{:<8}{:>8.1} s", "total", total.as_secs_f64()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::table;

    #[test]
    fn the_table_names_the_step_that_failed() {
        let times = [("fmt", Duration::from_millis(1250)), ("clippy", Duration::from_secs(61))];
        let shown = table(&times, false);
        let lines = ["", "fmt          1.2 s", "clippy      61.0 s  FAILED", "total       62.2 s"];
        assert_eq!(shown.lines().collect::<Vec<_>>(), lines);
        assert!(!table(&times, true).contains("FAILED"));
    }
}
