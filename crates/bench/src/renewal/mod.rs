//! `renewal`: what it costs to hold many leases.

mod holder;

pub(crate) use self::holder::holder;

use std::time::{Duration, Instant};

use crate::{
    Trouble, Verdict,
    options::BenchOptions,
    process::{Other, processor_time, resident_mib},
    server::Measured,
};

/// Holds some numbers of leases, one after the other, and prints a table.
pub(crate) fn run(options: &mut BenchOptions) -> Result<Verdict, Trouble> {
    let server = Measured::start(options)?;
    let ttls: u32 = options.value("ttls")?.unwrap_or(3);
    let leases: String = options.value("leases")?.unwrap_or_else(|| NUMBERS.to_owned());
    options.nothing_else()?;
    println!("server {}, leases of {TTL:?} held for {ttls} TTLs by one client", server.url);
    println!("{HEADER}");
    let mut lost = 0.0;
    for leases in leases.split(',') {
        lost += measure(&server, leases.parse()?, ttls)?;
    }
    let met = lost == 0.0;
    println!("{} no lease is lost", if met { "PASS" } else { "FAIL" });
    Ok(if met { Verdict::Pass } else { Verdict::Fail })
}

/// Prints one row; returns how many leases were lost.
fn measure(server: &Measured, leases: u32, ttls: u32) -> Result<f64, Trouble> {
    let ttl_ms = TTL.as_millis().to_string();
    let args = ["holder", "--server", &server.url, "--ttl-ms", &ttl_ms];
    let mut holder = Other::start(&args)?;
    let began = Instant::now();
    holder.ask(&format!("acquire {leases}"))?;
    let acquired = began.elapsed();

    let client = holder.pid();
    let used = || -> Result<_, Trouble> {
        let server_time = server.pid().map(processor_time).transpose()?;
        Ok((processor_time(client)?, server_time, server.scripts()?))
    };
    let (client_before, server_before, (calls_before, micros_before)) = used()?;
    let held = Instant::now();
    std::thread::sleep(TTL * ttls);
    let (client_after, server_after, (calls_after, micros_after)) = used()?;
    let seconds = held.elapsed().as_secs_f64();

    let resident = resident_mib(client)?;
    let answer = holder.ask("lost")?;
    let lost = *answer.first().ok_or("a number expected")?;
    let began = Instant::now();
    holder.ask("release")?;
    let released = began.elapsed();

    let percent = |used: Duration| used.as_secs_f64() / seconds * 100.0;
    let server_cpu = server_before.zip(server_after).map(|(before, after)| percent(after - before));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let (calls, micros) =
        ((calls_after - calls_before) as f64, (micros_after - micros_before) as f64);
    println!(
        "{leases:>8}{lost:>6}{:>11.2}{:>11.1}{:>10.0}{:>11.2}{:>12}{:>9.1}{:>11.2}",
        acquired.as_secs_f64(),
        calls / seconds,
        micros / calls,
        percent(client_after - client_before),
        server_cpu.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.2}")),
        resident,
        released.as_secs_f64(),
    );
    Ok(lost)
}

const HEADER: &str =
    "  leases  lost  acquire_s  scripts/s us/script client_cpu%  server_cpu%  rss_mib  release_s";

/// How many leases, unless options say otherwise.
const NUMBERS: &str = "1000,10000,100000";

/// The library's default.
const TTL: Duration = Duration::from_secs(10);
