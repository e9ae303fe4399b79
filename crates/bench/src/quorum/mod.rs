//! `quorum`: a lock of five servers, what it costs, how many round trips, and with one in trouble.

mod fanout;
mod faults;
mod nodes;
mod report;
mod side;
mod speed;
mod trips;

pub(crate) use self::side::voter;

use self::{nodes::VotingServers, report::QuorumReport};
use crate::{Trouble, Verdict, options::BenchOptions};

/// Runs all parts, or the one that is named.
pub(crate) fn run(options: &mut BenchOptions) -> Result<Verdict, Trouble> {
    let nodes = VotingServers::start(options.flag("anywhere"))?;
    let rounds = options.value("rounds")?.unwrap_or(10_usize);
    let cycles = options.value("cycles")?.unwrap_or(1_000_u32);
    let part: Option<String> = options.value("part")?;
    options.nothing_else()?;
    if let Some(name) = part.as_deref().filter(|name| !PARTS.contains(name)) {
        return Err(format!("no part {name:?}; there are {}", PARTS.join(", ")).into());
    }
    let is_wanted = |name| part.as_deref().is_none_or(|part| part == name);
    for node in nodes.iter() {
        println!("server {}, {}", node.url(), node.kind().name());
    }
    println!("{rounds} rounds of {cycles} cycles a side");
    let mut report = QuorumReport::new();
    if is_wanted("speed") {
        speed::measure(&nodes, rounds, cycles, &mut report)?;
    }
    if is_wanted("trips") {
        trips::measure(&nodes, cycles, &mut report)?;
    }
    if is_wanted("faults") {
        faults::measure(&nodes, rounds, cycles, &mut report)?;
    }
    Ok(report.verdict())
}

const PARTS: [&str; 3] = ["speed", "trips", "faults"];
