//! The tool under test.

use std::{
    ffi::OsString,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::{Server, ServerKind, TempDir, Value, eventually, unique_key};

/// One server for all tests that do not hurt it; each has keys of its own.
pub(crate) fn shared() -> &'static Server {
    static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start(ServerKind::Redis70));
    &SERVER
}

/// The program.
pub(crate) const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// A command of `tenure`, as a test wants it.
#[derive(Debug)]
pub(crate) struct Tenure {
    command: Command,
    input: Vec<u8>,
}

impl Tenure {
    /// `tenure run`, and no server.
    pub(crate) fn new() -> Self {
        Self::to("run")
    }

    /// Another of its commands, and no server.
    pub(crate) fn to(name: &str) -> Self {
        let mut command = in_a_session();
        command.arg(TENURE).arg(name);
        for variable in ["TENURE_SERVERS", "TENURE_TOKEN", "TENURE_KEY"] {
            command.env_remove(variable);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, input: Vec::new() }
    }

    /// Names a server by option.
    pub(crate) fn server(self, server: &Server) -> Self {
        self.args(["--server", &server.url()])
    }

    /// Names a server by option.
    pub(crate) fn url(self, url: &str) -> Self {
        self.args(["--server", url])
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Adds arguments.
    pub(crate) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args.into_iter().map(Into::into));
        self
    }

    /// Adds `-- sh -c SCRIPT`.
    pub(crate) fn sh(self, script: &str) -> Self {
        self.args(["--", "sh", "-c", script])
    }

    /// Sets what stands at the command's standard input.
    pub(crate) fn input(mut self, bytes: &[u8]) -> Self {
        bytes.clone_into(&mut self.input);
        self
    }

    /// Starts the tool and waits for its end.
    pub(crate) fn run(self) -> Ran {
        self.start().wait()
    }

    /// Starts the tool.
    pub(crate) fn start(mut self) -> Running {
        let mut child = self.command.spawn().expect("start tenure");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A tool that does not read its input has closed it: no trouble of ours.
        _ = stdin.write_all(&self.input);
        let stdout = Output::of(child.stdout.take().expect("a pipe"));
        let stderr = Output::of(child.stderr.take().expect("a pipe"));
        Running { child, outputs: Some((stdout, stderr)) }
    }
}

/// Starts what is added to it in a session of its own, since the terminal of the user who runs the
/// tests is none of the tool's; and with the default action for each signal, whatever the shell
/// ignores, as `nohup` and `&` do.
pub(crate) fn in_a_session() -> Command {
    let mut command = Command::new("setsid");
    command.args(["env", "--default-signal"]);
    command
}

/// What comes out of a pipe, while it comes.
#[derive(Debug)]
struct Output {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let filled = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                filled.lock().expect("no reader panics").extend_from_slice(&buffer[..count]);
            }
        });
        Self { text, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("no reader panics")).into_owned()
    }

    /// All of it. Whatever has the other end must have gone by now, or go soon.
    fn whole(&self) -> String {
        eventually(PATIENCE, "a pipe of the tool is closed", || self.reader.is_finished());
        self.so_far()
    }
}

/// The tool under way. It is the leader of a session, and dropping this ends the whole of that: a
/// test that fails leaves nothing running.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    outputs: Option<(Output, Output)>,
}

impl Running {
    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends the tool a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signal the tool");
    }

    /// Waits until it says something on standard error, and returns that.
    pub(crate) fn first_words(&self) -> String {
        let said = || self.outputs.as_ref().map(|(_, errors)| errors.so_far()).unwrap_or_default();
        eventually(PATIENCE, "the tool says something", || said().contains('\n'));
        said()
    }

    /// Waits until the lock is held.
    pub(crate) fn until_held(self, key: &str) -> Self {
        eventually(PATIENCE, "the lock is held", || !is_free(shared(), key));
        self
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> Ran {
        self.wait_at_most(PATIENCE)
    }

    /// Waits for its end, which may be so far off.
    pub(crate) fn wait_at_most(mut self, limit: Duration) -> Ran {
        let mut status = None;
        eventually(limit, "the tool ends", || {
            status = self.child.try_wait().expect("wait for tenure");
            status.is_some()
        });
        let (stdout, stderr) = self.outputs.take().expect("it is waited for once");
        Ran {
            code: status.and_then(|status| status.code()),
            stdout: stdout.whole(),
            stderr: stderr.whole(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end_session(Pid::from_child(&self.child));
        // It has ended, or does so now.
        _ = self.child.wait();
    }
}

/// Kills what is left of a session, whatever has become of its groups.
pub(crate) fn end_session(leader: Pid) {
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // "PID (name) STATE PARENT GROUP SESSION …", where the name may hold anything.
        let session = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(3));
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
        if session.is_some_and(|session| session.parse() == Ok(leader.as_raw_nonzero().get()))
            && let Some(pid) = pid.and_then(Pid::from_raw)
        {
            // It may have ended just now.
            _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// How the tool ended, and what it and its command said.
#[derive(Debug)]
pub(crate) struct Ran {
    /// `None` when a signal ended the tool itself.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Expects this exit code.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, Some(expected), "{self:?}");
        self
    }

    /// Expects this on standard output.
    #[track_caller]
    pub(crate) fn stdout(self, expected: &str) -> Self {
        assert_eq!(self.stdout, expected, "{self:?}");
        self
    }

    /// Expects silence on standard error.
    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!(self.stderr, "", "{self:?}");
        self
    }

    /// What it has printed, without regard to lines.
    pub(crate) fn words(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Expects one line of the tool on standard error, with all these parts.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        let lines: Vec<_> = self.stderr.lines().collect();
        assert!(lines.len() == 1 && self.stderr.starts_with("tenure: "), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:?}");
        }
        self
    }
}

/// Declares by hand that these servers, which are new, have forgotten no lock.
pub(crate) fn opened<'a>(servers: impl IntoIterator<Item = &'a Server>) {
    for server in servers {
        Tenure::to("init").url(&server.url()).args(["--max-ttl", "1"]).run().code(0);
    }
}

/// A key of the test's own.
pub(crate) fn key() -> String {
    unique_key("cli")
}

/// Whether nobody holds the lock.
pub(crate) fn is_free(server: &Server, key: &str) -> bool {
    server.cmd(&["EXISTS", key]) == Value::Int(0)
}

/// What stands at the key.
pub(crate) fn value(server: &Server, key: &str) -> Value {
    server.cmd(&["GET", key])
}

/// Whether a process is there, and more than the record of its end.
pub(crate) fn is_running(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    // The name, in parentheses, may hold anything; the state follows the last of them.
    stat.is_ok_and(|stat| {
        stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with(['Z', 'X']))
    })
}

/// Waits for a process number that a script writes into a file.
pub(crate) fn pid_in(file: &Path) -> Pid {
    let read = || std::fs::read_to_string(file).ok()?.trim().parse().ok().and_then(Pid::from_raw);
    eventually(PATIENCE, "a process number is told", || read().is_some());
    read().expect("it was there")
}

/// No test that works waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A script that runs until a file appears: where it writes its number when it has begun, what must
/// be there for it to end, and the script.
pub(crate) fn until_told(dir: &TempDir) -> (PathBuf, PathBuf, String) {
    let (ready, done) = (dir.path().join("ready"), dir.path().join("done"));
    let script = format!(
        "echo $$ > {}; while [ ! -e {} ]; do sleep 0.02; done",
        ready.display(),
        done.display()
    );
    (ready, done, script)
}
