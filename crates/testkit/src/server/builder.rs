//! Describing a server and bringing it up.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Server;
use super::process::{self, LOG, ServerProcess};
use crate::wait::poll;
use crate::{Clock, Raw, ServerEndpoint, ServerKind, TempDir, Value, shim};

/// A server yet to be started.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is started"]
pub struct Builder {
    kind: ServerKind,
    tcp: bool,
    durable: bool,
    password: Option<String>,
    clock: Option<Clock>,
    args: Vec<OsString>,
}

impl Builder {
    pub(super) fn new(kind: ServerKind) -> Self {
        Self { kind, tcp: false, durable: false, password: None, clock: None, args: Vec::new() }
    }

    /// Listens on a free port of 127.0.0.1 instead of a Unix socket.
    pub fn tcp(mut self) -> Self {
        self.tcp = true;
        self
    }

    /// Writes every change to disk before it is answered (`appendfsync always`).
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Asks for a password.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Gives the server a wall clock of its own: [`Server::clock`].
    pub fn shim(self) -> Self {
        self.clock(Clock::new())
    }

    /// Gives the server this wall clock, which other servers may share.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Adds an argument of the command line; it overrides what the testkit says.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments of the command line; they override what the testkit says.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    /// When the program is missing, or does not come up.
    #[must_use]
    pub fn start(self) -> Server {
        let binary = self.kind.binary().unwrap_or_else(|missing| panic!("{missing}"));
        let dir = TempDir::new();
        for _ in 0..PORTS_TO_TRY {
            let address = if self.tcp {
                ServerEndpoint::Tcp(free_port())
            } else {
                ServerEndpoint::Unix(dir.path().join("s"))
            };
            let program = process::program(
                binary.clone(),
                self.command_line(&address, dir.path()),
                self.variables(),
                dir.path(),
            );
            let mut process = ServerProcess::new(program);
            process.start().unwrap_or_else(|e| panic!("cannot start {}: {e}", self.kind));
            match wait_until_ready(&mut process, &address, self.password.as_deref()) {
                Ok(()) => {
                    return Server {
                        kind: self.kind,
                        address,
                        password: self.password,
                        clock: self.clock,
                        process: Arc::new(Mutex::new(process)),
                        dir,
                    };
                }
                // Somebody took the port between our look and the server's.
                Err(_) if process::log(dir.path()).contains("already in use") => {}
                Err(e) => {
                    let log = process::log(dir.path());
                    panic!("{} did not come up: {e}\n{log}", self.kind);
                }
            }
        }
        panic!("{}: {PORTS_TO_TRY} free ports in a row were taken at once", self.kind);
    }

    fn command_line(&self, address: &ServerEndpoint, dir: &Path) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let mut set = |name: &str, value: OsString| line.extend([name.into(), value]);
        match address {
            ServerEndpoint::Unix(path) => {
                set("--port", "0".into());
                set("--unixsocket", path.into());
                set("--unixsocketperm", "700".into());
            }
            ServerEndpoint::Tcp(port) => {
                set("--bind", "127.0.0.1".into());
                set("--port", port.to_string().into());
            }
        }
        set("--dir", dir.into());
        set("--logfile", dir.join(LOG).into());
        set("--daemonize", "no".into());
        set("--save", "".into());
        set("--enable-debug-command", "yes".into());
        set("--appendonly", if self.durable { "yes" } else { "no" }.into());
        if self.durable {
            set("--appendfsync", "always".into());
        }
        if let Some(password) = &self.password {
            set("--requirepass", password.into());
        }
        line.extend(self.args.iter().cloned());
        line
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        self.clock.as_ref().map_or_else(Vec::new, |clock| {
            vec![("LD_PRELOAD", shim::library().into()), ("TENURE_CLOCK_FILE", clock.path().into())]
        })
    }
}

/// Gives the password, if there is one.
pub(super) fn login(mut raw: Raw, password: Option<&str>) -> Raw {
    if let Some(password) = password {
        let reply = raw.cmd(&["AUTH", password]);
        assert!(reply.is_ok(), "AUTH was answered by {reply:?}");
    }
    raw
}

/// Waits until the server answers PING, also through the loading of its data.
pub(super) fn wait_until_ready(
    process: &mut ServerProcess,
    address: &ServerEndpoint,
    password: Option<&str>,
) -> io::Result<()> {
    let mut last = String::from("it was not asked");
    let outcome = poll(START_LIMIT, || {
        // In this order: another program may answer at the port that our process did not get.
        let answered = answers(address, password);
        if let Some(status) = process.ended() {
            return Some(Err(io::Error::other(format!("it ended by {status}"))));
        }
        match answered {
            Ok(reply) if reply.text() == Some("PONG") => return Some(Ok(())),
            Ok(reply) => last = format!("it answers {reply:?}"),
            Err(e) => last = e.to_string(),
        }
        None
    });
    outcome.unwrap_or_else(|| Err(io::Error::other(last)))
}

fn answers(address: &ServerEndpoint, password: Option<&str>) -> io::Result<Value> {
    let mut raw = Raw::try_connect(address)?;
    if let Some(password) = password {
        raw.try_cmd(&["AUTH", password])?;
    }
    raw.try_cmd(&["PING"])
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("find a free port");
    listener.local_addr().expect("the address of a listener").port()
}

/// Generous: the machine may be compiling on every core.
const START_LIMIT: Duration = Duration::from_secs(20);
/// A port is lost to another process about once in a thousand starts; never five times.
const PORTS_TO_TRY: usize = 5;
