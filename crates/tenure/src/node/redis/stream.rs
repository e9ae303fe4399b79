//! The socket under a connection.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    pin::Pin,
    task::{Context, Poll},
    thread,
    time::Duration,
};

use rustix::net::sockopt;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    sync::oneshot,
};

use crate::address::Endpoint;

/// A connected socket, read and written without blocking.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to the first of the host's addresses that accepts.
    pub(super) async fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| match error.kind() {
                    io::ErrorKind::WouldBlock => io::Error::other("too many wait to connect there"),
                    _ => error,
                });
                Ok(Self::Unix(stream?))
            }
            Endpoint::Tcp { host, port } => {
                let mut last = io::Error::other("the host name has no address");
                for address in look_up(host, *port).await? {
                    match TcpStream::connect(address).await {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            notice_silence(&stream)?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }

    /// Reads what is there, without asking the runtime whether anything is.
    pub(super) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => Ok(rustix::io::read(stream, buffer)?),
            Self::Unix(stream) => Ok(rustix::io::read(stream, buffer)?),
        }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Closes at once and throws away what is still to be sent.
    pub(super) fn abort(self) {
        if let Self::Tcp(stream) = &self {
            // Best effort: without it unsent commands may still arrive, and are undone later.
            _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }
}

/// The addresses of a host. On a thread of its own: tokio panics when the system has none left for
/// it, and with that the engine would end, and every lease.
async fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let (answer, answered) = oneshot::channel();
    let name = (host.to_owned(), port);
    let thread = thread::Builder::new().name("tenure-names".into());
    thread.spawn(move || {
        // Nobody may wait for it any longer.
        _ = answer.send(name.to_socket_addrs().map(Iterator::collect));
    })?;
    answered.await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
}

/// A peer that vanished (power loss, NAT) is noticed after this long without an acknowledgement.
const SILENCE: Duration = Duration::from_secs(10);

#[cfg(target_os = "linux")]
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    let ms = u32::try_from(SILENCE.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, ms)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 3)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    Ok(())
}
