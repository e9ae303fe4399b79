//! `waiters`: what it costs to wait, for the client and for the server.

mod holder;
mod parked;

pub(crate) use self::parked::parked;

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use self::holder::LockHolder;
use crate::{
    Trouble, Verdict,
    options::BenchOptions,
    process::{Other, processor_time, resident_mib},
    server::{Measured, connect},
};

/// Has some numbers of waiters wait, at one lock and at a lock each, and prints a table.
pub(crate) fn run(options: &mut BenchOptions) -> Result<Verdict, Trouble> {
    let server = Measured::start(options)?;
    let seconds: u64 = options.value("seconds")?.unwrap_or(2 * TTL.as_secs());
    let waiters: String = options.value("waiters")?.unwrap_or_else(|| NUMBERS.to_owned());
    options.nothing_else()?;
    println!("server {}, locks of {TTL:?} held and renewed, one client waits", server.url);
    println!("{HEADER}");
    let mut met = true;
    let mut run = std::process::id();
    for waiters in waiters.split(',') {
        let waiters: u32 = waiters.parse()?;
        for locks in [1, waiters] {
            met &= measure(&server, run, waiters, locks, Duration::from_secs(seconds))?;
            run = run.wrapping_add(1);
        }
    }
    println!("{} {TARGET}", if met { "PASS" } else { "FAIL" });
    Ok(if met { Verdict::Pass } else { Verdict::Fail })
}

/// The key of one lock.
fn key(run: u32, number: u32) -> String {
    format!("bench-{run}-{number}")
}

/// Prints one row; returns whether its targets are met.
fn measure(
    server: &Measured,
    run: u32,
    waiters: u32,
    locks: u32,
    measured: Duration,
) -> Result<bool, Trouble> {
    let _held = LockHolder::start(&server.url, run, locks)?;
    let run_ = run.to_string();
    let mut client = Other::start(&["parked", "--server", &server.url, "--run", &run_])?;
    // Answered only when its connection is there.
    client.ask(&format!("0 0 {locks}"))?;
    let mut control = connect(&server.url)?;
    let (memory, kib) = (used_memory(&mut control)?, resident_mib(client.pid())? * 1_024.0);
    let began = Instant::now();
    // Some at a time: a busy machine could not answer all first attempts within their time limit.
    for first in (0..waiters).step_by(AT_A_TIME) {
        let end = waiters.min(first + u32::try_from(AT_A_TIME)?);
        client.ask(&format!("{first} {end} {locks}"))?;
        await_queues(&mut control, run, first..end, locks)?;
    }
    let joined = began.elapsed().as_secs_f64();
    std::thread::sleep(SETTLE);
    let per_waiter = |amount: f64| amount / f64::from(waiters);
    let memory = per_waiter(used_memory(&mut control)? - memory);

    let used = |control: &mut redis::Connection| -> Result<_, Trouble> {
        let server_time = server.pid().map(processor_time).transpose()?;
        let (calls, micros) = server.scripts()?;
        let counts = ["zrank", "client|caching"].map(|name| called(control, name));
        let [looks, watches] = counts;
        Ok((processor_time(client.pid())?, server_time, calls, micros, looks?, watches?))
    };
    let began = Instant::now();
    let before = used(&mut control)?;
    std::thread::sleep(measured);
    let after = used(&mut control)?;
    let seconds = began.elapsed().as_secs_f64();
    let kib = per_waiter(resident_mib(client.pid())? * 1_024.0 - kib);

    let percent = |used: Duration| used.as_secs_f64() / seconds * 100.0;
    let client_cpu = percent(after.0 - before.0);
    let server_cpu = before.1.zip(after.1).map(|(before, after)| percent(after - before));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let [scripts, micros, looks, watches] =
        [after.2 - before.2, after.3 - before.3, after.4 - before.4, after.5 - before.5]
            .map(|count| count as f64);
    let pauses = seconds / pause(waiters, locks);
    // A watch is the permission to track, and a GET.
    let commands = scripts + 2.0 * watches;
    let (looks_each, commands_each) = (per_waiter(looks) / pauses, per_waiter(commands) / pauses);
    println!(
        "{waiters:>8}{locks:>8}{joined:>8.2}{looks_each:>13.2}{commands_each:>15.4}{:>8.2}{:>8.0}\
         {client_cpu:>12.2}{:>12}{kib:>11.2}{memory:>10.0}",
        commands / seconds,
        micros / scripts.max(1.0),
        server_cpu.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.2}")),
    );
    // What one connection takes would be divided by too few below that.
    let many = waiters >= MANY;
    // The first of a queue makes the sorted set, which takes a KiB; those behind it take less.
    let small = locks > 1 || memory < 512.0;
    // With a lock each all of them are heads, and their keys are watched.
    let few = locks > 1 || commands_each < 1.0;
    Ok(few && (!many || client_cpu < 2.0 && kib < 4.0 && small))
}

/// Waits until the waiters up to the end of these numbers are in their queues.
fn await_queues(
    control: &mut redis::Connection,
    run: u32,
    waiters: Range<u32>,
    locks: u32,
) -> Result<(), Trouble> {
    // Those at the same lock as any before them are counted with those.
    let (first, wanted) =
        if locks == 1 { (0, waiters.end) } else { (waiters.start, waiters.end - waiters.start) };
    let last = locks.min(waiters.end);
    let until = Instant::now() + PATIENCE;
    loop {
        let mut sizes = redis::pipe();
        for number in first..last {
            sizes.cmd("ZCARD").arg(format!("{{{}}}:tenure.queue", key(run, number)));
        }
        let sizes: Vec<u32> = sizes.query(control)?;
        if sizes.iter().sum::<u32>() == wanted {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err("the waiters do not come to their queues".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The mean pause between two polls of a waiter, in seconds: the TTL it reads is between two
/// thirds and the whole, and each place behind the first is a second, up to 30.
fn pause(waiters: u32, locks: u32) -> f64 {
    let each = waiters / locks;
    let staggered: u32 = (0..each).map(|position| position.min(30)).sum();
    TTL.as_secs_f64() * 5.0 / 6.0 + f64::from(staggered) / f64::from(each)
}

/// How often the server was asked for a command so far, in scripts or by itself.
fn called(control: &mut redis::Connection, name: &str) -> Result<u64, Trouble> {
    let stats: String = redis::cmd("INFO").arg("commandstats").query(control)?;
    let begin = format!("cmdstat_{name}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(begin.as_str()));
    Ok(line.and_then(|line| line.split(',').next()).map_or(Ok(0), str::parse)?)
}

/// The server's memory in use, in bytes.
fn used_memory(control: &mut redis::Connection) -> Result<f64, Trouble> {
    let info: String = redis::cmd("INFO").arg("memory").query(control)?;
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(line.ok_or("no used_memory")?.trim().parse()?)
}

const HEADER: &str = " waiters   locks  join_s  looks/pause commands/pause  cmds/s  us/scr \
                      client_cpu% server_cpu%    rss_kib  server_b";

const TARGET: &str = "at one lock less than 1 command per waiter and pause, and < 512 B of the \
                      server each; 10000 waiters: < 2 % of a core and < 4 KiB of the client each. \
                      With a lock each every waiter is the head of a queue: the key of each of the \
                      first 1000 is watched, two commands at each renewal of its holder";

/// How many waiters, unless options say otherwise.
const NUMBERS: &str = "100,1000,10000";

const AT_A_TIME: usize = 500;

/// So many that what is there only once does not count.
const MANY: u32 = 10_000;

const TTL: Duration = Duration::from_secs(30);

/// The joins are over, and what they took for a moment is freed.
const SETTLE: Duration = Duration::from_secs(2);

const PATIENCE: Duration = Duration::from_secs(60);
