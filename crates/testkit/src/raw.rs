//! A connection of the test's own.

use std::io::{self, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use crate::{ServerEndpoint, SocketStream, Value, resp};

/// A minimal blocking client, to look at a server behind the library's back.
///
/// Trouble with the connection panics; what the server says, errors included, is a [`Value`].
#[derive(Debug)]
pub struct Raw {
    reader: BufReader<SocketStream>,
    to: ServerEndpoint,
}

impl Raw {
    /// Connects.
    ///
    /// # Panics
    /// When nothing listens there.
    #[must_use]
    pub fn connect(to: &ServerEndpoint) -> Self {
        Self::try_connect(to).unwrap_or_else(|e| panic!("cannot connect to {to}: {e}"))
    }

    /// Connects to a port of 127.0.0.1.
    #[must_use]
    pub fn tcp(port: u16) -> Self {
        Self::connect(&ServerEndpoint::Tcp(port))
    }

    /// Connects to a Unix socket.
    #[must_use]
    pub fn unix(path: &Path) -> Self {
        Self::connect(&ServerEndpoint::Unix(path.to_owned()))
    }

    /// Connects, or says why not.
    ///
    /// # Errors
    /// Those of the system.
    pub fn try_connect(to: &ServerEndpoint) -> io::Result<Self> {
        let stream = to.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { reader: BufReader::new(stream), to: to.clone() })
    }

    /// Sends one command and receives its reply.
    pub fn cmd<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.try_cmd(args).unwrap_or_else(|e| panic!("{}: {}: {e}", self.to, shown(args)))
    }

    /// As [`Raw::cmd`], with the trouble of the connection as an error.
    ///
    /// # Errors
    /// Those of the system; `UnexpectedEof` when the server has closed the connection.
    pub fn try_cmd<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        self.reader.get_mut().write_all(&resp::encode(args))?;
        self.try_receive()
    }

    /// Sends one command and does not wait: pair it with a [`Raw::receive`].
    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) {
        self.send_bytes(&resp::encode(args));
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let written = self.reader.get_mut().write_all(bytes);
        written.unwrap_or_else(|e| panic!("{}: cannot write: {e}", self.to));
    }

    /// Receives the next reply.
    pub fn receive(&mut self) -> Value {
        self.try_receive().unwrap_or_else(|e| panic!("{}: no reply: {e}", self.to))
    }

    /// As [`Raw::receive`], with the trouble of the connection as an error.
    ///
    /// # Errors
    /// Those of the system; `UnexpectedEof` when the server has closed the connection, and
    /// `WouldBlock` when no reply came in time.
    pub fn try_receive(&mut self) -> io::Result<Value> {
        resp::read_value(&mut self.reader)
    }

    /// Sets how long to wait for a reply, instead of 10 s.
    pub fn set_patience(&mut self, limit: Duration) {
        self.reader.get_ref().set_read_timeout(Some(limit)).expect("set a read time-out");
    }
}

fn shown<A: AsRef<[u8]>>(args: &[A]) -> String {
    let words: Vec<_> = args.iter().map(|a| a.as_ref().escape_ascii().to_string()).collect();
    words.join(" ")
}

/// No server that works is this slow, not even on a machine that builds something else meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
