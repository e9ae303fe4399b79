//! What a cycle costs, and what of that is the engine's.

use super::{nodes::VotingServers, report::QuorumReport, side::QuorumSide};
use crate::{
    Trouble,
    series::{Series, take_turns},
};

/// Runs all sides by turns.
pub(super) fn measure(
    nodes: &VotingServers,
    rounds: usize,
    cycles: u32,
    report: &mut QuorumReport,
) -> Result<(), Trouble> {
    let servers = nodes.urls().join(",");
    println!("\ncycles: acquired under a number and released; answers of a majority awaited");
    let mut sides = Vec::new();
    for side in QuorumSide::ALL {
        let key = format!("bench-{}-{}", std::process::id(), side.name());
        let args = ["voter", "--name", side.name(), "--servers", &servers, "--key", &key];
        sides.push(Series::start(side.name(), &args)?);
    }
    take_turns(&mut sides, rounds, cycles)?;
    let [plain, fanout, control, tenure] = sides.as_slice() else {
        return Err("four sides".into());
    };
    println!("{:<10}{:>10}{:>10}{:>10}", "side", "p50_us", "p99_us", "cpu_us");
    for side in &sides {
        let (p50, p99, used) = (side.p50(), side.p99(), side.used());
        println!("{:<10}{p50:>10.1}{p99:>10.1}{used:>10.1}", side.name);
    }
    println!("ratio {:.2} of tenure to plain, which has no number", tenure.ratio(plain));
    let of = format!("of tenure to the fan-out, {:.1} us more", tenure.difference(fanout));
    report.control("fan-out to fan-out", control.ratio(fanout));
    report.ratio(&of, tenure.ratio(fanout), MAX_RATIO);
    Ok(())
}

/// The engine may cost this much of the same scripts without it.
const MAX_RATIO: f64 = 1.4;
