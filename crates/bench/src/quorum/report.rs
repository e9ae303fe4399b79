//! What is demanded, and whether it is met.

use crate::Verdict;

/// What all parts come to.
#[derive(Debug)]
pub(super) struct QuorumReport {
    verdict: Verdict,
    /// Whether two equal sides came out close enough for ratios to mean anything.
    is_steady: bool,
}

impl QuorumReport {
    pub(super) fn new() -> Self {
        Self { verdict: Verdict::Pass, is_steady: true }
    }

    /// Two equal sides were run, and this is their ratio.
    pub(super) fn control(&mut self, of: &str, ratio: f64) {
        self.is_steady = (MIN_CONTROL..=MAX_CONTROL).contains(&ratio);
        println!("control {ratio:.2} of {of}");
        if !self.is_steady {
            println!("NO RESULT: the machine is busy, two equal sides differ by that much");
            self.set(Verdict::NoResult);
        }
    }

    /// A ratio of times, which says something on a steady machine only.
    pub(super) fn ratio(&mut self, of: &str, ratio: f64, most: f64) {
        let met = ratio <= most;
        let what = format!("ratio {ratio:.2} {of}: <= {most}");
        if self.is_steady {
            self.target(&what, met);
        } else {
            println!("     {what}");
        }
    }

    /// A target that does not depend on how busy the machine is.
    pub(super) fn target(&mut self, what: &str, met: bool) {
        println!("{} {what}", if met { "PASS" } else { "FAIL" });
        if !met {
            self.set(Verdict::Fail);
        }
    }

    /// A missed target outweighs a missing result.
    fn set(&mut self, verdict: Verdict) {
        if self.verdict != Verdict::Fail {
            self.verdict = verdict;
        }
    }

    pub(super) fn verdict(self) -> Verdict {
        self.verdict
    }
}

/// Two equal sides must come out this close.
const MIN_CONTROL: f64 = 0.9;
const MAX_CONTROL: f64 = 1.1;
