//! What all cells come to.

use super::{CellSeries, cell::Cell, setup::Contestant, targets::Targets};
use crate::{Verdict, figures::median};

/// Prints the figures and judges those of one side.
pub(super) fn report(all: &[CellSeries], judged: Contestant) -> Verdict {
    println!("{HEADER}");
    all.iter().for_each(print);
    println!("targets, held against {}", judged.name());
    let targets = Targets { all, judged };
    let counts = targets.counts();
    let times = targets.times();
    let steady = targets.is_steady();
    // What is counted does not depend on how busy the machine is, if there was enough to count.
    if counts.contains(&Some(false)) {
        Verdict::Fail
    } else if !steady {
        Verdict::NoResult
    } else if times.contains(&Some(false)) {
        Verdict::Fail
    } else if counts.contains(&None) {
        Verdict::NoResult
    } else {
        Verdict::Pass
    }
}

fn print(CellSeries { setup, cells }: &CellSeries) {
    let of = |figure: fn(&Cell) -> f64| median(cells.iter().map(figure));
    let most = |figure: fn(&Cell) -> f64| cells.iter().map(figure).fold(f64::NAN, f64::max);
    let (load, side) = (setup.load.name(), setup.side.name());
    println!(
        "{load:<4}{:>4} {side:<7}{:>7.0}{:>8.2}{:>8.1}{:>6.2}{:>6.0}%{:>7.0}{:>7.0}{:>8.0}{}",
        setup.size,
        of(|cell| cell.holds_per_second),
        of(|cell| cell.commands),
        of(|cell| cell.inner),
        of(|cell| cell.share),
        of(|cell| cell.handed) * 100.0,
        of(|cell| cell.handover.p50),
        of(|cell| cell.handover.p99),
        most(|cell| cell.handover.most),
        format_args!(
            "{:>8.2}{:>8.2}{:>8.2}",
            of(|cell| cell.wait.p50) / 1e3,
            of(|cell| cell.wait.p99) / 1e3,
            most(|cell| cell.wait.most) / 1e3,
        ),
    );
}

const HEADER: &str = "\
all rounds                     per hold most/                 hand-over us                 wait ms
load   N side   holds/s    cmds   inner share handed    p50    p99     max     p50     p99     max";
