//! `cycle`: what one acquisition and its release cost without contention, and where it goes.

mod report;
mod side;

pub(crate) use self::side::side;

use self::{report::report, side::Side};
use crate::{Trouble, Verdict, options::Options, process::Other, server::Measured};

/// The medians and 99th percentiles of one side, one of each per round, in microseconds.
#[derive(Debug)]
struct Series {
    side: Side,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

/// Runs all sides by turns, so that whatever else the machine does falls on all of them alike.
pub(crate) fn run(options: &mut Options) -> Result<Verdict, Trouble> {
    let server = Measured::start(options)?;
    let rounds = options.value("rounds")?.unwrap_or(10_usize);
    let cycles = options.value("cycles")?.unwrap_or(2_000_u32);
    options.nothing_else()?;
    println!("server {}, {rounds} rounds of {cycles} cycles a side", server.url);

    let mut sides = Vec::new();
    for (nth, side) in Side::ALL.into_iter().enumerate() {
        let key = format!("bench-{}-{nth}", std::process::id());
        let args = ["side", "--name", side.name(), "--server", &server.url, "--key", &key];
        let mut other = Other::start(&args)?;
        other.ask(&WARM_UP.to_string())?;
        sides.push((other, Series { side, p50: Vec::new(), p99: Vec::new() }));
    }
    for round in 0..rounds {
        // Another side goes first each time: a neighbour's effect would else always hit the same.
        let first = round % sides.len();
        let (later, earlier) = sides.split_at_mut(first);
        for (other, series) in earlier.iter_mut().chain(later) {
            let answer = other.ask(&cycles.to_string())?;
            let [p50, p99] = answer.as_slice() else { return Err("two numbers expected".into()) };
            series.p50.push(*p50);
            series.p99.push(*p99);
        }
    }
    let series: Vec<Series> = sides.into_iter().map(|(_, series)| series).collect();
    Ok(report(&series))
}

/// Fills caches and connections, and lets the processor find its speed.
const WARM_UP: u32 = 2_000;
