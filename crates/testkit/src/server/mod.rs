//! A private server process.

mod builder;
mod frozen;
mod process;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

pub use self::builder::Builder;
pub use self::frozen::Frozen;
use self::process::ServerProcess;
use crate::{Clock, Monitor, Raw, ServerEndpoint, ServerKind, TempDir, Value};

/// A server of the test's own, in a private directory; killed and swept away on drop.
///
/// All methods take `&self`, so that a server may be shared in a `static`. Such a server is never
/// dropped: the kernel kills it when the test process ends.
#[derive(Debug)]
pub struct Server {
    kind: ServerKind,
    address: ServerEndpoint,
    password: Option<String>,
    clock: Option<Clock>,
    process: Arc<Mutex<ServerProcess>>,
    dir: TempDir,
}

impl Server {
    /// Starts a server that keeps nothing on disk and listens on a Unix socket.
    ///
    /// # Panics
    /// When the program is missing, or does not come up.
    #[must_use]
    pub fn start(kind: ServerKind) -> Self {
        Self::builder(kind).start()
    }

    /// Starts to describe a server.
    pub fn builder(kind: ServerKind) -> Builder {
        Builder::new(kind)
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &ServerEndpoint {
        &self.address
    }

    /// URL of the server, without password.
    #[must_use]
    pub fn url(&self) -> String {
        self.address.url()
    }

    /// Its port on 127.0.0.1; `None` when it listens on a Unix socket.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self.address {
            ServerEndpoint::Tcp(port) => Some(port),
            ServerEndpoint::Unix(_) => None,
        }
    }

    /// Its Unix socket; `None` when it listens on a port.
    #[must_use]
    pub fn socket(&self) -> Option<&Path> {
        match &self.address {
            ServerEndpoint::Unix(path) => Some(path),
            ServerEndpoint::Tcp(_) => None,
        }
    }

    /// Its password, if it asks for one.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Its process id.
    ///
    /// # Panics
    /// While it is killed.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().pid().expect("the server runs")
    }

    /// Its wall clock.
    ///
    /// # Panics
    /// When it was built without [`Builder::shim`].
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.clock.as_ref().expect("a server built with .shim()")
    }

    /// A new connection, with the password already given.
    #[must_use]
    pub fn raw(&self) -> Raw {
        builder::login(Raw::connect(&self.address), self.password())
    }

    /// Sends one command on a connection of its own.
    ///
    /// # Panics
    /// On trouble with the connection; what the server says, errors included, is the value.
    pub fn cmd<A: AsRef<[u8]>>(&self, args: &[A]) -> Value {
        self.raw().cmd(args)
    }

    /// Starts to write down the commands the server receives.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        Monitor::new(self.raw(), self.raw())
    }

    /// Stops the process (SIGSTOP) until the guard is dropped: connections stay open and are
    /// even accepted, and nothing answers.
    #[must_use = "the server thaws when the guard is dropped"]
    pub fn freeze_process(&self) -> Frozen {
        Frozen::new(&self.process)
    }

    /// Kills the process (SIGKILL) and waits for its end; does nothing when it is dead already.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Starts a killed server again at the same address. Data is kept only by
    /// [`Builder::durable`].
    ///
    /// # Panics
    /// When it runs, or does not come up.
    pub fn start_again(&self) {
        let mut process = self.process();
        process.start().unwrap_or_else(|e| panic!("{}: {e}", self.kind));
        let ready = builder::wait_until_ready(&mut process, &self.address, self.password());
        ready
            .unwrap_or_else(|e| panic!("{} did not come up again: {e}\n{}", self.kind, self.log()));
    }

    /// Kills the server and starts it again at the same address without its data.
    pub fn restart_empty(&self) {
        self.kill();
        // The socket, the log and the lock are no data.
        for entry in fs::read_dir(self.dir.path()).expect("read the server's directory").flatten() {
            let name = entry.file_name();
            if name == "appendonlydir" {
                fs::remove_dir_all(entry.path()).expect("remove the append-only files");
            } else if entry.path().extension().is_some_and(|ext| ext == "rdb") {
                fs::remove_file(entry.path()).expect("remove the snapshot");
            }
        }
        self.start_again();
    }

    /// What it has logged, over all its starts.
    #[must_use]
    pub fn log(&self) -> String {
        process::log(self.dir.path())
    }

    fn process(&self) -> MutexGuard<'_, ServerProcess> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or_default();
            #[expect(clippy::print_stderr, reason = "the test fails: its reader wants to know")]
            {
                eprintln!("--- end of the log of {} at {}", self.kind, self.address);
                eprintln!("{}", tail.join("\n"));
            }
        }
    }
}

/// Lines of the log shown by a failing test.
const TAIL: usize = 40;
