//! What is demanded, and whether it is met.

use super::{
    CellSeries,
    cell::Cell,
    setup::{ClientLoad, Contestant},
};
use crate::figures::median;

/// The rounds of all setups, and whose figures the targets are held against.
pub(super) struct Targets<'a> {
    pub(super) all: &'a [CellSeries],
    pub(super) judged: Contestant,
}

impl Targets<'_> {
    /// The targets for what is counted; `None` where there was too little to count.
    pub(super) fn counts(&self) -> Vec<Option<bool>> {
        let defects = |of: fn(&Cell) -> u32| -> u32 {
            self.all.iter().flat_map(|series| &series.cells).map(of).sum()
        };
        let overlaps = defects(|cell| cell.overlaps);
        let repeated = defects(|cell| cell.repeated);
        let mut met = vec![
            target(&format!("{overlaps} holds at once, of all sides: 0"), overlaps == 0),
            target(&format!("{repeated} numbers given twice, of all sides: 0"), repeated == 0),
        ];
        for series in self.of(self.judged).filter(|series| series.setup.load == ClientLoad::Rush) {
            let size = series.setup.size;
            let commands = median(series.cells.iter().map(|cell| cell.commands));
            let words = format!("{commands:.2} commands per hold at {size}: <= {MAX_COMMANDS}");
            met.push(counted(series, MIN_HOLDS, &words, commands <= MAX_COMMANDS));
            let inner = median(series.cells.iter().map(|cell| cell.inner));
            let words = format!("{inner:.1} inner calls per hold at {size}: <= {MAX_INNER}");
            met.push(counted(series, MIN_HOLDS, &words, inner <= MAX_INNER));
        }
        met.push(self.share());
        met
    }

    fn share(&self) -> Option<bool> {
        let Some(series) = self.rush(self.judged, MANY) else { return unmeasured("share") };
        let share = median(series.cells.iter().map(|cell| cell.share));
        let words = format!("{share:.2} most to fewest holds of {MANY}: <= {MAX_SHARE}");
        counted(series, MIN_SHARE * f64::from(MANY), &words, share <= MAX_SHARE)
    }

    /// The targets for what took time: ratios within each round, where both had the same machine,
    /// and the median of them.
    pub(super) fn times(&self) -> Vec<Option<bool>> {
        let mut met = Vec::new();
        if let Some(kept) = self.kept(self.judged) {
            let words = format!("{kept:.2} of the holds/s at {FEW}, at {MANY}: >= {MIN_KEPT}");
            met.push(target(&words, kept >= MIN_KEPT));
            // No target, but what the machine allows.
            let relay = self.kept(Contestant::Relay).unwrap_or(f64::NAN);
            println!("     {relay:.2} of them by the relay");
        } else {
            met.push(unmeasured("holds/s"));
        }
        for (load, size, ratio) in self.ratios(self.judged) {
            let words = format!("{ratio:.2} x the relay's hand-over, {load} at {size}");
            met.push(target(&format!("{words}: <= {MAX_RELAYS}"), ratio <= MAX_RELAYS));
        }
        met
    }

    /// How many of the holds per second of a few clients are left with many.
    fn kept(&self, side: Contestant) -> Option<f64> {
        let (many, few) = (self.rush(side, MANY)?, self.rush(side, FEW)?);
        Some(ratio(many, few, |cell| cell.holds_per_second))
    }

    /// Whether two equal sides came out close enough for ratios to mean anything.
    pub(super) fn is_steady(&self) -> bool {
        let mut steady = true;
        for (load, size, ratio) in self.ratios(Contestant::Control) {
            let close = (MIN_CONTROL..=MAX_CONTROL).contains(&ratio);
            steady &= close;
            let words = if close { "control" } else { "NO RESULT, the machine is busy: control" };
            println!("{words} {ratio:.2} of relay to relay, {load} at {size}");
        }
        steady
    }

    /// The median hand-over of a side, as a ratio to the relay's, wherever that is a target.
    fn ratios(&self, side: Contestant) -> impl Iterator<Item = (&'static str, u32, f64)> {
        self.of(side).filter(|series| series.setup.has_target()).filter_map(|series| {
            let setup = series.setup;
            let relay = self
                .of(Contestant::Relay)
                .find(|relay| (relay.setup.load, relay.setup.size) == (setup.load, setup.size))?;
            let ratio = ratio(series, relay, |cell| cell.handover.p50);
            Some((setup.load.name(), setup.size, ratio))
        })
    }

    fn rush(&self, side: Contestant, size: u32) -> Option<&CellSeries> {
        self.of(side)
            .find(|series| (series.setup.load, series.setup.size) == (ClientLoad::Rush, size))
    }

    fn of(&self, side: Contestant) -> impl Iterator<Item = &CellSeries> {
        self.all.iter().filter(move |series| series.setup.side == side)
    }
}

fn target(what: &str, met: bool) -> Option<bool> {
    println!("{} {what}", if met { "PASS" } else { "FAIL" });
    Some(met)
}

/// A target for what is counted per hold, if there were so many.
fn counted(series: &CellSeries, least: f64, what: &str, met: bool) -> Option<bool> {
    let holds = median(series.cells.iter().map(|cell| cell.holds));
    if holds >= least {
        return target(what, met);
    }
    println!("NO RESULT {what}; {holds} holds are too few: give --secs more");
    None
}

/// Sizes that were not asked for are no failure, and no success.
fn unmeasured(what: &str) -> Option<bool> {
    println!("-    {what}: not measured, it takes {FEW} and {MANY} clients");
    Some(true)
}

fn ratio(of: &CellSeries, to: &CellSeries, figure: impl Fn(&Cell) -> f64) -> f64 {
    median(of.cells.iter().zip(&to.cells).map(|(of, to)| figure(of) / figure(to)))
}

/// Join, confirm and release; and something for what else may happen.
const MAX_COMMANDS: f64 = 3.1;

/// What the three scripts call.
const MAX_INNER: f64 = 26.0;

/// First come, first served.
const MAX_SHARE: f64 = 1.2;

/// Below so many holds of each client, one more or less is no unfairness.
const MIN_SHARE: f64 = 6.0;

/// With fewer, the commands at the edges of the window weigh too much.
const MIN_HOLDS: f64 = 100.0;

/// What a crowd may cost at most.
const MIN_KEPT: f64 = 0.8;
const FEW: u32 = 2;
const MANY: u32 = 50;

/// What the engine may cost of a hand-over.
const MAX_RELAYS: f64 = 1.5;

/// Two equal sides must come out this close.
const MIN_CONTROL: f64 = 0.8;
const MAX_CONTROL: f64 = 1.25;
