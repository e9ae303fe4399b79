//! Commands that wait, and do nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tenure::blocking::Client;
use tenure_testkit::TempDir;

use crate::{Trouble, startup};

/// Prints what this many of `tenure run` cost together while another holds the lock; returns
/// whether the target is met.
pub(super) fn measure(
    tenure: Option<String>,
    waiters: usize,
    seconds: u64,
) -> Result<bool, Trouble> {
    let tenure = tenure.map_or_else(startup::build, |path| Ok(PathBuf::from(path)))?;
    let directory = TempDir::new();
    let url = format!("file://{}/locks.db", directory.path().display());
    let client = Client::connect(&url)?;
    let lock = client.lock(KEY);
    let guard = lock.acquire()?;
    let began = Instant::now();
    let started = (0..waiters).map(|_| WaitingProcess::start(&tenure, &url));
    let started = started.collect::<Result<Vec<_>, _>>()?;
    let wanted = u64::try_from(waiters)?;
    while lock.inspect()?.waiting < Some(wanted) {
        if began.elapsed() > PATIENCE {
            return Err("the waiters do not come to the queue".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    let joined = began.elapsed().as_secs_f64();
    thread::sleep(SETTLE);
    let used = || started.iter().map(WaitingProcess::used).sum::<Result<Duration, Trouble>>();
    let (began, before) = (Instant::now(), used()?);
    thread::sleep(Duration::from_secs(seconds));
    let (after, took) = (used()?, began.elapsed());
    let percent = (after - before).as_secs_f64() / took.as_secs_f64() * 100.0;
    println!(
        "{waiters} idle waiters, there after {joined:.1} s: {percent:.2} % of a core in {seconds} s"
    );
    let began = Instant::now();
    guard.release()?;
    for mut waiter in started {
        if !waiter.0.wait()?.success() {
            return Err("a waiter failed".into());
        }
    }
    println!("all of them ran their command within {:.2} s", began.elapsed().as_secs_f64());
    println!("target: {MAX_PERCENT} % of a core");
    Ok(percent <= MAX_PERCENT)
}

/// A command that waits; killed when this is dropped before its end.
struct WaitingProcess(Child);

impl WaitingProcess {
    fn start(tenure: &Path, url: &str) -> Result<Self, Trouble> {
        let mut command = Command::new(tenure);
        command.args(["run", "--server", url, KEY, "--", "true"]).stdin(Stdio::null());
        Ok(Self(command.spawn()?))
    }

    /// What all of its threads have used, by the scheduler's word.
    fn used(&self) -> Result<Duration, Trouble> {
        let mut nanos = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            let stat = fs::read_to_string(task?.path().join("schedstat"))?;
            nanos += stat.split(' ').next().ok_or("no schedstat")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }
}

impl Drop for WaitingProcess {
    fn drop(&mut self) {
        // It has ended, or does so now.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

const KEY: &str = "bench";

const MAX_PERCENT: f64 = 1.0;

/// A busy machine starts some a second.
const PATIENCE: Duration = Duration::from_secs(120);

/// The joins are over.
const SETTLE: Duration = Duration::from_secs(2);
