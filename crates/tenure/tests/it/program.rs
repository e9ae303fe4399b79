//! Programs that tests start, stop, fork and let end: this very test binary, started again.
//!
//! A program is a function here, and the variable `TENURE_PROGRAM` names it; the one test that
//! libtest is asked to run looks it up. So a program needs no target of its own, is built with the
//! tests, and can be found from any directory. It leaves through [`std::process::exit`] as soon as
//! it returns, like a `main` that returns: libtest's own farewell would give the library's threads
//! time that they do not have in the field.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::{eventually, scale};

const NAME: &str = "TENURE_PROGRAM";

/// The entrance of a program; without one it has nothing to do, and passes.
#[test]
fn entrance() {
    let Ok(name) = std::env::var(NAME) else { return };
    let programs = crate::faults::PROGRAMS.into_iter().chain(crate::queue::PROGRAMS);
    let programs = programs.chain(crate::quorum::PROGRAMS).chain(crate::hostile::PROGRAMS);
    #[cfg(feature = "sqlite")]
    let programs = programs.chain(crate::store::PROGRAMS);
    #[cfg(feature = "metrics")]
    let programs = programs.chain(crate::metrics::PROGRAMS);
    let programs: HashMap<_, _> = programs.collect();
    programs[name.as_str()]();
    std::process::exit(0);
}

/// A setting that the test gave this program.
pub(crate) fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("the program was not given {name}"))
}

/// Prints a line for the test, on a line of its own whatever libtest has printed before.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\n{MARK}{line}").expect("the test listens");
    out.flush().expect("the test listens");
}

/// Waits for a line from the test.
pub(crate) fn heed() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the test speaks");
    line.trim_end().to_owned()
}

/// A program that runs; killed when this is dropped.
pub(crate) struct Program {
    child: Child,
    says: Receiver<String>,
}

impl Program {
    pub(crate) fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_by(Command::new(this_program()), name, settings)
    }

    /// Starts it with a small file system of its own at the directory.
    #[cfg(feature = "sqlite")]
    pub(crate) fn start_on_small_disk(
        at: &std::path::Path,
        name: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        Self::start_in(tenure_testkit::on_small_disk(at), name, settings)
    }

    /// Starts it in another world, which is the beginning of its command.
    #[cfg(feature = "sqlite")]
    pub(crate) fn start_in(mut world: Command, name: &str, settings: &[(&str, &str)]) -> Self {
        world.arg(this_program());
        Self::start_by(world, name, settings)
    }

    /// Starts it as the first process of a PID namespace of its own. A user that is not root needs
    /// the right to make user namespaces.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_as_init(name: &str, settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]);
        if !rustix::process::geteuid().is_root() {
            command.arg("--map-root-user");
        }
        command.arg(this_program());
        Self::start_by(command, name, settings)
    }

    fn start_by(mut command: Command, name: &str, settings: &[(&str, &str)]) -> Self {
        let mut child = command
            .args([&entrance_name(), "--exact", "--nocapture", "--test-threads=1"])
            .env(NAME, name)
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start this program again");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (hears, says) = channel();
        // Ends with the program, or when nobody listens any more.
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(line) = line.strip_prefix(MARK)
                    && hears.send(line.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        Self { child, says }
    }

    /// The next line that it says.
    ///
    /// # Panics
    ///
    /// When it ends without one, or says nothing for too long.
    pub(crate) fn hear(&mut self) -> String {
        let line = self.says.recv_timeout(patience());
        line.unwrap_or_else(|error| panic!("the program says nothing: {error}"))
    }

    pub(crate) fn tell(&mut self, line: &str) {
        let to = self.child.stdin.as_mut().expect("a pipe");
        writeln!(to, "{line}").expect("the program listens");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    #[cfg(feature = "sqlite")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it, and waits until it has stopped.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        eventually(patience(), "the program is stopped", || self.is_stopped());
    }

    pub(crate) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        // The name, in parentheses, may hold anything; the state follows the last of them.
        stat.expect("the program runs").rsplit(") ").next().expect("a state").starts_with('T')
    }

    /// Waits until it ends by itself, and demands that it ends well.
    pub(crate) fn end_well(mut self) {
        let mut status = None;
        eventually(patience(), "the program ends", || {
            status = self.child.try_wait().expect("ask for the program's end");
            status.is_some()
        });
        let status = status.expect("it has ended");
        assert!(status.success(), "the program ended by {status}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail when it has ended, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("the path of this program")
}

/// The entrance's name, as libtest knows it: without the crate's.
fn entrance_name() -> String {
    let (_crate, module) = module_path!().split_once("::").expect("a module in a crate");
    format!("{module}::entrance")
}

const MARK: &str = "program: ";

/// Longer than any program here works; far longer in the soak.
fn patience() -> Duration {
    Duration::from_secs(scale(60, 3_600) as u64)
}
