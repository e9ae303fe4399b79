//! `store`: the embedded store under waiters: what a hand-over takes, and what waiting costs.

mod idle;
mod turns;

use std::fs;

pub(crate) use self::turns::turns;
use crate::{Trouble, Verdict, options::BenchOptions};

/// Measures hand-overs between two processes, then processes that only wait.
pub(crate) fn run(options: &mut BenchOptions) -> Result<Verdict, Trouble> {
    let hand_overs: u32 = options.value("hand-overs")?.unwrap_or(2_000);
    let waiters: usize = options.value("waiters")?.unwrap_or(100);
    let seconds: u64 = options.value("seconds")?.unwrap_or(60);
    let tenure: Option<String> = options.value("tenure")?;
    options.nothing_else()?;
    println!("load before: {}", fs::read_to_string("/proc/loadavg")?.trim());
    let are_fast = turns::measure(hand_overs)?;
    let is_idle = idle::measure(tenure, waiters, seconds)?;
    println!("load after: {}", fs::read_to_string("/proc/loadavg")?.trim());
    Ok(if are_fast && is_idle { Verdict::Pass } else { Verdict::Fail })
}
