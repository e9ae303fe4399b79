//! Starting servers that cannot outlive the test process.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) binary: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) variables: Vec<(&'static str, OsString)>,
    pub(crate) dir: PathBuf,
}

/// File in the program's directory which receives its standard output and error.
pub(crate) const OUTPUT: &str = "output";

/// Starts a program that the kernel kills when this process ends, however it ends.
pub(crate) fn spawn(program: Program) -> io::Result<Child> {
    let (reply, started) = channel();
    let requests = spawner().lock().unwrap_or_else(PoisonError::into_inner).clone();
    requests.send((program, reply)).expect("the spawner thread never ends");
    started.recv().expect("the spawner thread answers")
}

type SpawnRequest = (Program, Sender<io::Result<Child>>);

/// The kernel sends the parent-death signal when the *thread* that started the child ends, and
/// test threads end with their test: so all children are started by one thread that stays.
fn spawner() -> &'static Mutex<Sender<SpawnRequest>> {
    static SPAWNER: OnceLock<Mutex<Sender<SpawnRequest>>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (sender, requests) = channel::<SpawnRequest>();
        let run = move || {
            for (program, reply) in requests {
                // Nobody waits any more when the test was given up meanwhile.
                drop(reply.send(command(&program).spawn()));
            }
        };
        thread::Builder::new().name("spawner".into()).spawn(run).expect("start a thread");
        Mutex::new(sender)
    })
}

/// Through `setpriv` where there is one, which sets the signal and then becomes the program: the
/// process id stays the same. Without it a killed test leaves its servers behind.
fn command(program: &Program) -> Command {
    let mut command = match setpriv() {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(&program.binary);
            command
        }
        None => Command::new(&program.binary),
    };
    // What it says before it has a log file, such as what it thinks of its arguments.
    let output = || {
        let file = OpenOptions::new().create(true).append(true).open(program.dir.join(OUTPUT));
        file.map_or_else(|_| Stdio::null(), Stdio::from)
    };
    command
        .args(&program.args)
        .envs(program.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(&program.dir)
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output());
    command
}

fn setpriv() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let dirs = env::var_os("PATH")?;
        env::split_paths(&dirs).map(|dir| dir.join("setpriv")).find(|path| path.is_file())
    };
    FOUND.get_or_init(find).as_deref()
}
