//! Processes that do cycles by turns, and how long those took.

use std::time::Instant;

use crate::{
    Trouble,
    figures::{median, quantile},
    process::{Other, answer_orders, processor_time},
};

/// What the process of one side came to in each round.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    process: Other,
    rounds: Vec<SeriesRound>,
}

/// Microseconds.
#[derive(Clone, Copy, Debug)]
struct SeriesRound {
    p50: f64,
    p99: f64,
    most: f64,
    /// Processor time of a cycle, in the kernel, too.
    used: f64,
}

impl Series {
    /// Starts the process, which answers as [`serve`] does, and has it warm up.
    pub(crate) fn start(name: &'static str, args: &[&str]) -> Result<Self, Trouble> {
        let mut series = Self { name, process: Other::start(args)?, rounds: Vec::new() };
        series.process.ask(&WARM_UP.to_string())?;
        Ok(series)
    }

    fn go(&mut self, cycles: u32) -> Result<(), Trouble> {
        let before = processor_time(self.process.pid())?;
        let answer = self.process.ask(&cycles.to_string())?;
        let used = processor_time(self.process.pid())? - before;
        let used = used.as_secs_f64() * 1e6 / f64::from(cycles);
        let [p50, p99, most] = *answer.as_slice() else {
            return Err("three numbers expected".into());
        };
        self.rounds.push(SeriesRound { p50, p99, most, used });
        Ok(())
    }

    /// The median cycle of each round.
    fn p50s(&self) -> impl Iterator<Item = f64> {
        self.rounds.iter().map(|round| round.p50)
    }

    pub(crate) fn p50(&self) -> f64 {
        median(self.p50s())
    }

    pub(crate) fn p99(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.p99))
    }

    /// The processor time of a cycle. Rounds are short for the system's clock of it, so the mean.
    #[expect(clippy::cast_precision_loss, reason = "some tens of rounds")]
    pub(crate) fn used(&self) -> f64 {
        self.rounds.iter().map(|round| round.used).sum::<f64>() / self.rounds.len() as f64
    }

    /// The longest cycle of all rounds.
    pub(crate) fn most(&self) -> f64 {
        self.rounds.iter().map(|round| round.most).fold(f64::NAN, f64::max)
    }

    /// The ratio to another side, of the medians within each round, where both had the same
    /// machine; and the median of the ratios.
    pub(crate) fn ratio(&self, to: &Self) -> f64 {
        median(self.p50s().zip(to.p50s()).map(|(of, to)| of / to))
    }

    /// The same for the difference, in microseconds.
    pub(crate) fn difference(&self, less: &Self) -> f64 {
        median(self.p50s().zip(less.p50s()).map(|(of, less)| of - less))
    }
}

/// Runs all sides by turns, so that whatever else the machine does falls on all of them alike.
pub(crate) fn take_turns(all: &mut [Series], rounds: usize, cycles: u32) -> Result<(), Trouble> {
    for round in 0..rounds {
        // Another side goes first each time: a neighbour's effect would else always hit the same.
        let first = round % all.len().max(1);
        let (later, earlier) = all.split_at_mut(first);
        earlier.iter_mut().chain(later).try_for_each(|series| series.go(cycles))?;
    }
    Ok(())
}

/// The process of a side: does as many cycles as ordered, and answers with the median, the 99th
/// percentile and the longest, in microseconds.
pub(crate) fn serve(mut cycle: impl FnMut() -> Result<(), Trouble>) -> Result<(), Trouble> {
    answer_orders(|order| {
        let cycles: u32 = order.parse()?;
        let mut micros = Vec::new();
        for _ in 0..cycles {
            let began = Instant::now();
            cycle()?;
            micros.push(began.elapsed().as_secs_f64() * 1e6);
        }
        Ok([0.5, 0.99, 1.0].map(|share| quantile(&mut micros, share)).to_vec())
    })
}

/// Fills caches and connections, and lets the processor find its speed.
const WARM_UP: u32 = 2_000;
