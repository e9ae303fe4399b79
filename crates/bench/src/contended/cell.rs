//! One cell of the table, once: some clients, one lock, for a moment.

use std::time::Duration;

use super::{
    contender,
    holds::{Hold, Summary, summary},
    setup::CellSetup,
};
use crate::{
    Trouble,
    figures::quantile,
    process::{Other, monotonic, sleep_until},
    server::{Measured, ServerCounts},
};

/// What one cell came to in one round.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) holds: f64,
    pub(super) holds_per_second: f64,
    /// Commands of clients, and calls inside their scripts, per hold.
    pub(super) commands: f64,
    pub(super) inner: f64,
    /// The most holds of a client to the fewest of one; infinite where one had none.
    pub(super) share: f64,
    /// How many of the holds were handed over to one that waited already.
    pub(super) handed: f64,
    pub(super) handover: Percentiles,
    pub(super) wait: Percentiles,
    pub(super) overlaps: u32,
    pub(super) repeated: u32,
}

/// Microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Percentiles {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) most: f64,
}

/// Starts processes of their own for the clients, has all of them want one lock for a while, and
/// counts what was done in a window in the midst of that.
pub(super) fn run(
    server: &Measured,
    url: &str,
    setup: CellSetup,
    length: Duration,
) -> Result<Cell, Trouble> {
    let mut watched = server.watch()?;
    let mut processes = start(url, setup)?;
    send_all(&mut processes, "ready")?;
    for (process, _) in &mut processes {
        process.receive()?;
    }

    let begin = monotonic() + nanos(WARM_UP);
    let end = begin + nanos(length);
    send_all(&mut processes, &format!("run {}", end + nanos(TAIL)))?;
    sleep_until(begin);
    let (before, begin) = (watched.counts()?, monotonic());
    sleep_until(end);
    let (after, end) = (watched.counts()?, monotonic());

    let mut holds = Vec::new();
    for (process, first) in &mut processes {
        let answer = process.receive()?;
        holds.extend(
            contender::read(&answer).map(|hold| Hold { client: hold.client + *first, ..hold }),
        );
    }
    let summary = summary(&mut holds, setup.clients(), &(begin..end));
    let [commands, inner] = [
        difference(&before, &after, |counts| counts.commands),
        difference(&before, &after, |counts| counts.inner),
    ];
    Ok(figures(summary, length_of(begin, end), commands, inner))
}

/// The processes, each with the number of its first client.
fn start(url: &str, setup: CellSetup) -> Result<Vec<(Other, u32)>, Trouble> {
    let clients = setup.clients();
    let processes = clients.min(MAX_PROCESSES);
    let key = format!("bench-{}-{}", std::process::id(), monotonic());
    let hold = setup.load.hold().as_micros().to_string();
    let mut first = 0;
    let mut started = Vec::new();
    for left in (1..=processes).rev() {
        let share = (clients - first).div_ceil(left).to_string();
        let args = ["contender", "--side", setup.side.name(), "--server", url, "--key", &key];
        let args = [&args[..], &["--clients", &share, "--hold-us", &hold]].concat();
        started.push((Other::start(&args)?, first));
        first += (clients - first).div_ceil(left);
    }
    Ok(started)
}

fn send_all(processes: &mut [(Other, u32)], order: &str) -> Result<(), Trouble> {
    processes.iter_mut().try_for_each(|(process, _)| process.send(order))
}

fn figures(summary: Summary, seconds: f64, commands: f64, inner: f64) -> Cell {
    let Summary { holds, handovers, waits, most, fewest, overlaps, repeated } = summary;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let handed = handovers.len() as f64;
    let holds = f64::from(holds);
    Cell {
        holds,
        holds_per_second: holds / seconds,
        commands: commands / holds,
        inner: inner / holds,
        share: f64::from(most) / f64::from(fewest),
        handed: handed / holds,
        handover: percentiles(handovers),
        wait: percentiles(waits),
        overlaps,
        repeated,
    }
}

fn percentiles(mut values: Vec<f64>) -> Percentiles {
    if values.is_empty() {
        return Percentiles { p50: f64::NAN, p99: f64::NAN, most: f64::NAN };
    }
    let mut at = |share| quantile(&mut values, share);
    Percentiles { p50: at(0.5), p99: at(0.99), most: at(1.0) }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn difference(before: &ServerCounts, after: &ServerCounts, of: fn(&ServerCounts) -> u64) -> f64 {
    (of(after) - of(before)) as f64
}

fn length_of(begin: u64, end: u64) -> f64 {
    Duration::from_nanos(end - begin).as_secs_f64()
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// As many as a small machine bears without a thought.
const MAX_PROCESSES: u32 = 64;

/// Until every client is in the queue, or polls as slowly as it ever will.
const WARM_UP: Duration = Duration::from_millis(400);

/// The load goes on while the last figures are taken.
const TAIL: Duration = Duration::from_millis(50);
