//! Where a server listens, and a connection to it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Where a server listens; always on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEndpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// A port of 127.0.0.1.
    Tcp(u16),
}

impl ServerEndpoint {
    /// The URL by which a client names it, without password.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Unix(path) => format!("redis+unix://{}", path.display()),
            Self::Tcp(port) => format!("redis://127.0.0.1:{port}"),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// Those of the system.
    pub fn connect(&self) -> io::Result<SocketStream> {
        match self {
            Self::Unix(path) => UnixStream::connect(path).map(SocketStream::Unix),
            Self::Tcp(port) => {
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port))?;
                stream.set_nodelay(true)?;
                Ok(SocketStream::Tcp(stream))
            }
        }
    }
}

impl fmt::Display for ServerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url())
    }
}

/// A connection of either sort.
#[derive(Debug)]
pub enum SocketStream {
    /// Through a Unix socket.
    Unix(UnixStream),
    /// Through TCP.
    Tcp(TcpStream),
}

impl SocketStream {
    /// Sets how long a read may block; `None` is without a limit.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.set_read_timeout(limit),
            Self::Tcp(s) => s.set_read_timeout(limit),
        }
    }

    /// Sets how long a write may block; `None` is without a limit.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.set_write_timeout(limit),
            Self::Tcp(s) => s.set_write_timeout(limit),
        }
    }

    /// Shuts one or both directions; threads that wait for it wake up.
    ///
    /// # Errors
    /// Those of the system.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.shutdown(how),
            Self::Tcp(s) => s.shutdown(how),
        }
    }
}

impl From<TcpStream> for SocketStream {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for SocketStream {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

impl AsFd for SocketStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
        }
    }
}

impl Read for &SocketStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            SocketStream::Unix(s) => (&*s).read(buf),
            SocketStream::Tcp(s) => (&*s).read(buf),
        }
    }
}

impl Write for &SocketStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            SocketStream::Unix(s) => (&*s).write(buf),
            SocketStream::Tcp(s) => (&*s).write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for SocketStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }
}

impl Write for SocketStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
