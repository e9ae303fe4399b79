//! `startup`: what `tenure run` adds to a command, beside `flock`, and what it weighs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use crate::{
    Trouble, Verdict,
    figures::{median, quantile},
    options::BenchOptions,
    server::Measured,
};

/// One way to run a command under a lock.
#[derive(Debug)]
struct StartupSide {
    name: &'static str,
    words: Vec<String>,
    /// Milliseconds, one of each round.
    took: Vec<f64>,
}

/// Runs all sides by turns, so that whatever else the machine does falls on all of them alike.
pub(crate) fn run(options: &mut BenchOptions) -> Result<Verdict, Trouble> {
    let rounds = options.value("rounds")?.unwrap_or(60_usize);
    let tenure: Option<String> = options.value("tenure")?;
    let server = Measured::start(options)?;
    options.nothing_else()?;
    let tenure = tenure.map_or_else(build, |path| Ok(PathBuf::from(path)))?;
    let lock = env::temp_dir().join(format!("tenure-bench-{}.lock", std::process::id()));
    let mut sides = sides(&tenure, &lock, &server.url);
    for side in &mut sides {
        // Fills the caches, and makes the store and the file.
        (0..WARM_UP).try_for_each(|_| time(side).map(drop))?;
    }
    for round in 0..rounds {
        let first = round % sides.len();
        let (later, earlier) = sides.split_at_mut(first);
        for side in earlier.iter_mut().chain(later) {
            let took = time(side)?;
            side.took.push(took);
        }
    }
    // What is left of it is an empty file in the directory for such.
    _ = fs::remove_file(&lock);
    report(&sides, &tenure, &server.url)
}

fn sides(tenure: &Path, lock: &Path, url: &str) -> Vec<StartupSide> {
    let side = |name, words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        StartupSide { name, words, took: Vec::new() }
    };
    let (tenure, lock) = (tenure.to_string_lossy(), lock.to_string_lossy());
    vec![
        side(FLOCK, &["flock", "-n", &lock, "true"]),
        side(LOCAL, &[&tenure, "run", "--local", "-n", KEY, "--", "true"]),
        side("tenure run, Redis", &[&tenure, "run", "--server", url, "-n", KEY, "--", "true"]),
        // The ground under all of them: a program that starts another.
        side("env true", &["env", "true"]),
    ]
}

/// Runs it once, in milliseconds.
fn time(side: &StartupSide) -> Result<f64, Trouble> {
    let (program, args) = side.words.split_first().ok_or("no program")?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    let began = Instant::now();
    let status = command.status().map_err(|error| format!("{program}: {error}"))?;
    let took = began.elapsed();
    if status.success() { Ok(took.as_secs_f64() * 1e3) } else { Err(side.name.into()) }
}

fn report(sides: &[StartupSide], tenure: &Path, url: &str) -> Result<Verdict, Trouble> {
    let of = |name| sides.iter().find(|side| side.name == name).map(|side| side.took.as_slice());
    let flock = median(of(FLOCK).unwrap_or_default().iter().copied());
    println!("{:<20} {:>9} {:>9} {:>9}", "", "median", "p90", "of flock's");
    for side in sides {
        let p50 = median(side.took.iter().copied());
        let p90 = quantile(&mut side.took.clone(), 0.9);
        println!("{:<20} {p50:>6.2} ms {p90:>6.2} ms {:>9.2}", side.name, p50 / flock);
    }
    let ratio = median(of(LOCAL).unwrap_or_default().iter().copied()) / flock;
    let of_store = peak_mib(tenure, "local:")?;
    let of_server = peak_mib(tenure, url)?;
    let size = fs::metadata(tenure)?.len();
    println!("peak memory {of_store:.1} MiB with the store, {of_server:.1} MiB with Redis");
    println!("program {} KiB", size / 1_024);
    let fits = ratio <= MAX_FLOCKS && of_store.max(of_server) <= MAX_MIB;
    println!("targets: at most {MAX_FLOCKS} x flock with the store, at most {MAX_MIB} MiB");
    Ok(if fits { Verdict::Pass } else { Verdict::Fail })
}

/// The most memory that the tool has had up to the moment when its command runs, by the word of
/// the kernel to that command.
fn peak_mib(tenure: &Path, server: &str) -> Result<f64, Trouble> {
    let mut command = Command::new(tenure);
    command.args(["run", "--server", server, KEY, "--", "sh", "-c"]);
    let output = command.arg("grep VmHWM /proc/$PPID/status").output()?;
    let line = String::from_utf8(output.stdout)?;
    let kib: f64 = line.split_whitespace().nth(1).ok_or("no VmHWM")?.parse()?;
    Ok(kib / 1_024.0)
}

/// The program, made as it is shipped.
pub(crate) fn build() -> Result<PathBuf, Trouble> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--quiet", "--package", "tenure-cli"]);
    if !command.status()?.success() {
        return Err("tenure-cli cannot be built".into());
    }
    let beside = env::current_exe()?.with_file_name("tenure");
    if beside.exists() { Ok(beside) } else { Err("no program `tenure`: give --tenure PATH".into()) }
}

const FLOCK: &str = "flock";
const LOCAL: &str = "tenure run --local";
const KEY: &str = "tenure-bench-startup";

/// Starts before those that count.
const WARM_UP: usize = 3;

/// What the store may cost at most, against a lock of one system call.
const MAX_FLOCKS: f64 = 3.0;

/// What a tool that mostly sleeps may weigh.
const MAX_MIB: f64 = 12.0;
