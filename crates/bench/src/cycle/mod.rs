//! `cycle`: what one acquisition and its release cost without contention, and where it goes.

mod report;
mod side;

pub(crate) use self::side::{DELETE, side};

use self::{report::report, side::CycleSide};
use crate::{
    Trouble, Verdict,
    options::BenchOptions,
    series::{Series, take_turns},
    server::Measured,
};

/// Runs all sides by turns.
pub(crate) fn run(options: &mut BenchOptions) -> Result<Verdict, Trouble> {
    let server = Measured::start(options)?;
    let rounds = options.value("rounds")?.unwrap_or(10_usize);
    let cycles = options.value("cycles")?.unwrap_or(2_000_u32);
    options.nothing_else()?;
    println!("server {}, {rounds} rounds of {cycles} cycles a side", server.url);

    let mut sides = Vec::new();
    for (nth, side) in CycleSide::ALL.into_iter().enumerate() {
        let key = format!("bench-{}-{nth}", std::process::id());
        let args = ["side", "--name", side.name(), "--server", &server.url, "--key", &key];
        sides.push(Series::start(side.name(), &args)?);
    }
    take_turns(&mut sides, rounds, cycles)?;
    report(&sides)
}
