//! Benchmarks of tenure: each side in a process of its own, ratios taken in one run.
//!
//! ```text
//! cargo xtask bench cycle [--server URL | [--tcp] [--anywhere]] [--rounds N] [--cycles N]
//! cargo xtask bench renewal [--server URL | [--tcp] [--anywhere]] [--leases N,N,…] [--ttls N]
//! cargo xtask bench contended [--server URL | [--tcp] [--anywhere]] [--rounds N] [--secs S]
//!                             [--clients N,N,…] [--judge SIDE]
//! cargo xtask bench quorum [--anywhere] [--rounds N] [--cycles N] [--part NAME]
//! cargo xtask bench startup [--server URL | [--tcp] [--anywhere]] [--rounds N] [--tenure PATH]
//! cargo xtask bench store [--hand-overs N] [--waiters N] [--seconds N] [--tenure PATH]
//! cargo xtask bench waiters [--server URL | [--tcp] [--anywhere]] [--waiters N,N,…] [--seconds N]
//! ```
//!
//! Without `--server` they start a Redis 7.0 of their own on a Unix socket, or on a port with
//! `--tcp`; it gets a processor to itself unless `--anywhere` is given. `quorum` starts five of all
//! kinds on ports, which share that processor. `--judge SIDE` holds the targets against another
//! side than tenure, so that one sees them missed. The exit code is 0 when all targets are met, 1
//! when one is missed, 2 for trouble, and 3 when the machine was too busy to tell.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures are what this prints")]

mod contended;
mod cycle;
mod figures;
mod options;
mod placement;
mod process;
mod quorum;
mod renewal;
mod series;
mod server;
mod startup;
mod store;
mod waiters;
mod wire;

use std::{error::Error, process::ExitCode};

/// What every part of this program may fail with: its reader is a person.
type Trouble = Box<dyn Error + Send + Sync>;

/// How a benchmark ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All targets are met.
    Pass,
    /// A target is missed.
    Fail,
    /// The machine was busy with something else, so the figures mean nothing.
    NoResult,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(Verdict::Pass) => ExitCode::SUCCESS,
        Ok(Verdict::Fail) => ExitCode::from(1),
        Ok(Verdict::NoResult) => ExitCode::from(3),
        Err(trouble) => {
            let mut causes = String::new();
            let mut cause = trouble.source();
            while let Some(error) = cause {
                causes.push_str(&format!(": {error}"));
                cause = error.source();
            }
            eprintln!("bench: {trouble}{causes}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[String]) -> Result<Verdict, Trouble> {
    let (name, words) = words.split_first().ok_or_else(|| format!("which one? {NAMES}"))?;
    let mut options = options::BenchOptions::read(words)?;
    match name.as_str() {
        "cycle" => cycle::run(&mut options),
        "contended" => contended::run(&mut options),
        "quorum" => quorum::run(&mut options),
        "renewal" => renewal::run(&mut options),
        "startup" => startup::run(&mut options),
        "store" => store::run(&mut options),
        "waiters" => waiters::run(&mut options),
        // How this program calls itself for the processes of the sides.
        "side" => cycle::side(&mut options).map(|()| Verdict::Pass),
        "voter" => quorum::voter(&mut options).map(|()| Verdict::Pass),
        "contender" => contended::contender(&mut options).map(|()| Verdict::Pass),
        "holder" => renewal::holder(&mut options).map(|()| Verdict::Pass),
        "turns" => store::turns(&mut options).map(|()| Verdict::Pass),
        "parked" => waiters::parked(&mut options).map(|()| Verdict::Pass),
        other => Err(format!("no benchmark {other:?}; there are {NAMES}").into()),
    }
}

const NAMES: &str = "contended, cycle, quorum, renewal, startup, store and waiters";
