//! What the series of all sides come to.

use super::side::CycleSide;
use crate::{Trouble, Verdict, series::Series};

/// Prints the figures and judges them.
pub(super) fn report(all: &[Series]) -> Result<Verdict, Trouble> {
    println!("{:<10}{:>10}{:>10}", "side", "p50_us", "p99_us");
    for series in all {
        println!("{:<10}{:>10.1}{:>10.1}", series.name, series.p50(), series.p99());
    }
    let of = |side: CycleSide| {
        all.iter().find(|series| series.name == side.name()).ok_or("no such side")
    };
    let [raw, control, scripts] =
        [of(CycleSide::Raw)?, of(CycleSide::Control)?, of(CycleSide::Scripts)?];
    let [tenure, tokio] = [of(CycleSide::Blocking)?, of(CycleSide::Tokio)?];
    let control = control.ratio(raw);
    let script = scripts.difference(raw);
    let hop = tenure.difference(scripts);
    let ratio_of_tenure = tenure.ratio(scripts);
    println!("overhead_us {:.1} = script {script:.1} + hop {hop:.1}", script + hop);
    println!("ratio {ratio_of_tenure:.2} of tenure to scripts");
    println!("ratio {:.2} of async to scripts", tokio.ratio(scripts));
    println!("control {control:.2} of raw to raw");
    if !(MIN_CONTROL..=MAX_CONTROL).contains(&control) {
        println!("NO RESULT: the machine is busy, two equal sides differ by that much");
        return Ok(Verdict::NoResult);
    }
    let ratio_met = target(&format!("ratio <= {MAX_RATIO}"), ratio_of_tenure <= MAX_RATIO);
    let hop_met = target(&format!("hop <= {MAX_HOP_US} us"), hop <= MAX_HOP_US);
    Ok(if ratio_met && hop_met { Verdict::Pass } else { Verdict::Fail })
}

fn target(what: &str, met: bool) -> bool {
    println!("{} {what}", if met { "PASS" } else { "FAIL" });
    met
}

/// The engine may cost this much of the same scripts without it.
const MAX_RATIO: f64 = 1.35;

/// An acquisition and its release may take this much longer through the engine.
const MAX_HOP_US: f64 = 80.0;

/// Two equal sides must come out this close.
const MIN_CONTROL: f64 = 0.9;
const MAX_CONTROL: f64 = 1.1;
