//! Processes: our own under other names, and what the system says of one.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use crate::Trouble;

/// This program in another process, which reads lines and answers with lines.
#[derive(Debug)]
pub(crate) struct Other {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Other {
    /// Starts it with these arguments.
    pub(crate) fn start(args: &[&str]) -> Result<Self, Trouble> {
        let mut command = Command::new(env::current_exe()?);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let orders = child.stdin.take().ok_or("no pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Self { child, orders, answers })
    }

    /// Its process number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and waits for the numbers in its answer.
    pub(crate) fn ask(&mut self, order: &str) -> Result<Vec<f64>, Trouble> {
        self.send(order)?;
        self.receive()
    }

    /// Gives an order and does not wait: pair it with a [`Other::receive`].
    pub(crate) fn send(&mut self, order: &str) -> Result<(), Trouble> {
        Ok(writeln!(self.orders, "{order}")?)
    }

    /// Waits for the numbers in the answer to an order.
    pub(crate) fn receive(&mut self) -> Result<Vec<f64>, Trouble> {
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        if answer.is_empty() {
            return Err("a process of a side ended before its answer".into());
        }
        Ok(answer.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }
}

/// It ends when its orders do. One that does not is in trouble, and is killed.
impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended already; either way there is nothing more to be done.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Reads orders to the last, and answers each.
pub(crate) fn answer_orders(
    mut answer: impl FnMut(&str) -> Result<Vec<f64>, Trouble>,
) -> Result<(), Trouble> {
    for order in std::io::stdin().lines() {
        let numbers: Vec<String> = answer(&order?)?.iter().map(ToString::to_string).collect();
        println!("{}", numbers.join(" "));
    }
    Ok(())
}

/// The processor time that a process has used, in its own code and in the kernel.
pub(crate) fn processor_time(pid: u32) -> Result<Duration, Trouble> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // "PID (name) STATE …", where the name may hold anything; user and system time are the
    // 12th and 13th field behind it.
    let (_, fields) = stat.rsplit_once(") ").ok_or("no stat")?;
    let ticks: Vec<u64> =
        fields.split(' ').skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    let ticks: u64 = ticks.iter().sum();
    Ok(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second())?)
}

/// Nanoseconds of the clock that all processes of a host share.
pub(crate) fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let of = |part: i64| u64::try_from(part).unwrap_or_default();
    of(now.tv_sec) * 1_000_000_000 + of(now.tv_nsec)
}

/// Sleeps until that moment of the same clock.
pub(crate) fn sleep_until(moment: u64) {
    std::thread::sleep(Duration::from_nanos(moment.saturating_sub(monotonic())));
}

/// The memory that a process has in use, in MiB.
pub(crate) fn resident_mib(pid: u32) -> Result<f64, Trouble> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
    Ok(kib.parse::<f64>()? / 1_024.0)
}
