//! A plain blocking connection that reads replies and messages.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    time::Duration,
};

use redis::{ConnectionAddr, IntoConnectionInfo};
use tenure_core::script::Answer;
use tenure_testkit::SocketStream;

use crate::Trouble;

/// What a server sends.
#[derive(Debug)]
pub(crate) enum Frame {
    /// The answer to a command.
    Reply(Answer),
    /// Something else; with the text, where it is a message on a channel.
    Push(Option<String>),
}

/// The connection.
pub(crate) struct Wire {
    from: BufReader<SocketStream>,
    out: Vec<u8>,
}

impl Wire {
    /// Connects and logs in.
    pub(crate) fn connect(url: &str) -> Result<Self, Trouble> {
        let info = url.into_connection_info()?;
        let stream = match info.addr() {
            ConnectionAddr::Unix(path) => SocketStream::Unix(UnixStream::connect(path)?),
            ConnectionAddr::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port))?;
                stream.set_nodelay(true)?;
                SocketStream::Tcp(stream)
            }
            other => return Err(format!("a plain connection does not lead to {other}").into()),
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut wire = Self { from: BufReader::new(stream), out: Vec::new() };
        let settings = info.redis_settings();
        let user = settings.username().unwrap_or("default");
        match settings.password() {
            None => wire.send(&[b"HELLO", b"3"])?,
            Some(password) => {
                wire.send(&[b"HELLO", b"3", b"AUTH", user.as_bytes(), password.as_bytes()])?;
            }
        }
        wire.receive()?;
        wire.send(&[b"SELECT", settings.db().to_string().as_bytes()])?;
        wire.receive()?;
        Ok(wire)
    }

    /// Sends one command in one write.
    pub(crate) fn send(&mut self, parts: &[&[u8]]) -> Result<(), Trouble> {
        self.out.clear();
        encode(&mut self.out, parts)?;
        Ok(self.from.get_mut().write_all(&self.out)?)
    }

    /// Sends what [`encode`] has made.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        Ok(self.from.get_mut().write_all(bytes)?)
    }

    /// Whether something has been read from the socket that was not received yet.
    pub(crate) fn has_more(&self) -> bool {
        !self.from.buffer().is_empty()
    }

    /// Reads what the socket has, at least a byte.
    pub(crate) fn fill(&mut self) -> Result<(), Trouble> {
        if self.from.fill_buf()?.is_empty() {
            return Err(ENDED.into());
        }
        Ok(())
    }

    /// To wait for, when nothing is left.
    pub(crate) fn socket(&self) -> &SocketStream {
        self.from.get_ref()
    }

    /// Waits for whatever comes next.
    pub(crate) fn receive(&mut self) -> Result<Frame, Trouble> {
        let (kind, head) = self.head()?;
        let body = self.body(kind, &head)?;
        Ok(match (kind, body) {
            (b'>', Answer::Array(fields)) => Frame::Push(match fields.as_slice() {
                [Answer::Bytes(kind), _, Answer::Bytes(text)] if kind == b"message" => {
                    Some(String::from_utf8(text.clone())?)
                }
                _ => None,
            }),
            (_, body) => Frame::Reply(body),
        })
    }

    fn head(&mut self) -> Result<(u8, String), Trouble> {
        let mut line = Vec::new();
        self.from.read_until(b'\n', &mut line)?;
        match line.as_slice() {
            [kind, head @ .., b'\r', b'\n'] => Ok((*kind, String::from_utf8(head.to_vec())?)),
            _ => Err(ENDED.into()),
        }
    }

    fn body(&mut self, kind: u8, head: &str) -> Result<Answer, Trouble> {
        Ok(match kind {
            b'-' => return Err(format!("the server says {head}").into()),
            b':' => Answer::Int(head.parse()?),
            b'+' => Answer::Bytes(head.into()),
            b'$' | b'=' => {
                let length: usize = head.parse()?;
                let mut bytes = vec![0; length + 2];
                self.from.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Answer::Bytes(bytes)
            }
            b'*' | b'>' | b'~' => Answer::Array(self.fields(head.parse()?)?),
            b'%' => {
                self.fields(2 * head.parse::<usize>()?)?;
                Answer::Other
            }
            _ => Answer::Other,
        })
    }

    fn fields(&mut self, count: usize) -> Result<Vec<Answer>, Trouble> {
        let field = |_| {
            let (kind, head) = self.head()?;
            self.body(kind, &head)
        };
        (0..count).map(field).collect()
    }
}

/// Appends a command: an array of strings.
pub(crate) fn encode(out: &mut Vec<u8>, parts: &[&[u8]]) -> Result<(), Trouble> {
    write!(out, "*{}\r\n", parts.len())?;
    for part in parts {
        write!(out, "${}\r\n", part.len())?;
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    Ok(())
}

const ENDED: &str = "the server ended a plain connection";

/// Nobody here has timers: what does not come in this time never will.
const PATIENCE: Duration = Duration::from_secs(10);
