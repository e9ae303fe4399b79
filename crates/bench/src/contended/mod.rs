//! `contended`: many clients want one lock, with the queue, without it, and without the engine.

mod cell;
mod contender;
mod holds;
mod polling;
mod relay;
mod report;
mod setup;
mod targets;

pub(crate) use self::contender::contender;

use self::{
    cell::Cell,
    polling::Polling,
    report::report,
    setup::{CellSetup, Contestant},
};
use crate::{Trouble, Verdict, options::BenchOptions, server::Measured};

/// All rounds of one setup.
#[derive(Debug)]
struct CellSeries {
    setup: CellSetup,
    cells: Vec<Cell>,
}

/// Runs all setups by turns, so that whatever else the machine does falls on all of them alike.
pub(crate) fn run(options: &mut BenchOptions) -> Result<Verdict, Trouble> {
    let server = Measured::start(options)?;
    let rounds = options.value("rounds")?.unwrap_or(5_usize);
    let seconds = options.value("secs")?.unwrap_or(0.6_f64);
    let judged: String =
        options.value("judge")?.unwrap_or_else(|| Contestant::Tenure.name().to_owned());
    let judged = Contestant::named(&judged).ok_or("--judge wants the name of a side")?;
    let clients: String = options.value("clients")?.unwrap_or_else(|| CLIENTS.to_owned());
    let clients: Vec<u32> = clients.split(',').map(str::parse).collect::<Result<_, _>>()?;
    options.nothing_else()?;
    let polling = Polling::begin(&server.url)?;

    println!("server {}, {rounds} rounds of {seconds} s each", server.url);
    println!("{WHAT}");
    let mut all: Vec<CellSeries> = CellSetup::all(&clients)
        .into_iter()
        .map(|setup| CellSeries { setup, cells: Vec::new() })
        .collect();
    let window = std::time::Duration::try_from_secs_f64(seconds)?;
    let turns = all.len().max(1);
    for round in 0..rounds {
        // Another one goes first each time: a neighbour's effect would else always hit the same.
        let (later, earlier) = all.split_at_mut(round * 7 % turns);
        for series in earlier.iter_mut().chain(later) {
            let url =
                if series.setup.side == Contestant::Polling { polling.url() } else { &server.url };
            let cell = cell::run(&server, url, series.setup, window);
            series.cells.push(cell.map_err(|trouble| series.setup.trouble(&trouble))?);
        }
    }
    Ok(report(&all, judged))
}

/// What an honest table says of itself.
const WHAT: &str = "\
sides    tenure   the library's blocking calls: queue and hand-over
         polling  the same calls as a user without channels: tries at jittered 10 to 250 ms
         relay    tenure's scripts over plain sockets: push, confirm; no timers, no second try
         control  relay once more: how far apart two equal sides come out
clients  each is a thread with a connection (tenure: and an engine) of its own; a process each,
         but 64 processes at most; all want one key, and want it again at once
loads    rush: held for no time; calm: held for 1 ms, and one client more, so that N wait
figures  medians over rounds; maxima over all. hand-over: release called, to guard in hand, where
         the next one waited already (polling: the few who asked just then; its waits tell more);
         wait: call to guard. Clock: CLOCK_MONOTONIC, one for all processes of this host
not in   a network, TLS, a replica, renewals (no hold is that long), waiters that die or give up";

/// How many want the lock, unless options say otherwise.
const CLIENTS: &str = "2,10,50,500";
