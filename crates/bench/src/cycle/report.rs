//! What the series of all sides come to.

use super::{Series, side::Side};
use crate::{Verdict, figures::median};

/// Prints the figures and judges them.
///
/// Differences and ratios are taken within each round, where both sides had the same machine, and
/// the median over the rounds is what counts.
pub(super) fn report(all: &[Series]) -> Verdict {
    println!("{:<10}{:>10}{:>10}", "side", "p50_us", "p99_us");
    for Series { side, p50, p99 } in all {
        let (p50, p99) = (median(p50.iter().copied()), median(p99.iter().copied()));
        println!("{:<10}{p50:>10.1}{p99:>10.1}", side.name());
    }
    let control = ratio(all, Side::Control, Side::Raw);
    let script = difference(all, Side::Scripts, Side::Raw);
    let hop = difference(all, Side::Blocking, Side::Scripts);
    let ratio_of_tenure = ratio(all, Side::Blocking, Side::Scripts);
    println!("overhead_us {:.1} = script {script:.1} + hop {hop:.1}", script + hop);
    println!("ratio {ratio_of_tenure:.2} of tenure to scripts");
    println!("ratio {:.2} of async to scripts", ratio(all, Side::Tokio, Side::Scripts));
    println!("control {control:.2} of raw to raw");
    if !(LEAST_CONTROL..=MOST_CONTROL).contains(&control) {
        println!("NO RESULT: the machine is busy, two equal sides differ by that much");
        return Verdict::NoResult;
    }
    let ratio_met = target(&format!("ratio <= {MOST_RATIO}"), ratio_of_tenure <= MOST_RATIO);
    let hop_met = target(&format!("hop <= {MOST_HOP_US} us"), hop <= MOST_HOP_US);
    if ratio_met && hop_met { Verdict::Pass } else { Verdict::Fail }
}

fn target(what: &str, met: bool) -> bool {
    println!("{} {what}", if met { "PASS" } else { "FAIL" });
    met
}

fn ratio(all: &[Series], of: Side, to: Side) -> f64 {
    median(rounds(all, of).zip(rounds(all, to)).map(|(of, to)| of / to))
}

fn difference(all: &[Series], of: Side, less: Side) -> f64 {
    median(rounds(all, of).zip(rounds(all, less)).map(|(of, less)| of - less))
}

/// The median of each round of a side.
fn rounds(all: &[Series], wanted: Side) -> impl Iterator<Item = f64> {
    let series = all.iter().find(|series| series.side == wanted);
    series.into_iter().flat_map(|series| series.p50.iter().copied())
}

/// The engine may cost this much of the same scripts without it.
const MOST_RATIO: f64 = 1.35;

/// An acquisition and its release may take this much longer through the engine.
const MOST_HOP_US: f64 = 80.0;

/// Two equal sides must come out this close.
const LEAST_CONTROL: f64 = 0.9;
const MOST_CONTROL: f64 = 1.1;
