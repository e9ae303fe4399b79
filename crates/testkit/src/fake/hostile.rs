//! What a hostile or broken server does to a client: the replies of a real one, spoiled.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::{FakeAnswer, FakeServer};
use crate::{Server, SocketStream, resp};

/// How a reply is spoiled.
#[derive(Clone, Debug)]
pub enum Trick {
    /// It is not sent.
    Silent,
    /// It is sent so much later.
    Late(Duration),
    /// It is sent byte by byte, with this pause before each.
    Slowly(Duration),
    /// Its first bytes are sent, in hundredths of its length; then the connection ends.
    Cut(usize),
    /// The reply to the request before is sent in its place.
    Shifted,
    /// It is sent twice.
    Twice,
    /// These bytes are sent before it.
    Behind(Vec<u8>),
    /// These are sent in its place, one after the other in turn.
    Instead(Vec<Vec<u8>>),
    /// The first bytes are sent in its place, and the others behind them without an end.
    Endless(Vec<u8>, Vec<u8>),
}

impl Trick {
    /// Every trick, by its name. Messages about a key name this one.
    #[must_use]
    pub fn all(key: &str) -> Vec<(&'static str, Self)> {
        let endless = |first: &str, again: &str| {
            let times = 64 * 1024 / again.len().max(1);
            Self::Endless(first.into(), again.repeat(times).into())
        };
        let instead = |replies: &[&str]| {
            Self::Instead(replies.iter().map(|reply| reply.as_bytes().to_vec()).collect())
        };
        let changed = format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len());
        let long = format!("$1048576\r\n{}\r\n", "x".repeat(1_048_576));
        vec![
            ("silent", Self::Silent),
            ("late", Self::Late(Duration::from_millis(100))),
            ("too late", Self::Late(Duration::from_millis(700))),
            ("a byte a second", Self::Slowly(Duration::from_secs(1))),
            ("cut in the middle", Self::Cut(50)),
            ("shifted", Self::Shifted),
            ("twice", Self::Twice),
            ("behind an attribute", Self::Behind(b"|1\r\n+ttl\r\n*1\r\n:3\r\n".to_vec())),
            ("behind a push", Self::Behind(b">2\r\n+a\r\n~1\r\n+b\r\n".to_vec())),
            (
                "strings and numbers",
                instead(&["+OK\r\n", ":1\r\n", "$7\r\ngranted\r\n", "=5\r\ntxt:1\r\n"]),
            ),
            ("nothings", instead(&["_\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "%0\r\n", "~0\r\n"])),
            (
                "other kinds",
                instead(&[",1.5\r\n", "#t\r\n", "(12\r\n", "%1\r\n+a\r\n:1\r\n", "~1\r\n:1\r\n"]),
            ),
            ("a push in its place", instead(&[">1\r\n+x\r\n"])),
            ("errors", instead(&["-ERR no\r\n", "!6\r\nERR no\r\n", "-NOSCRIPT no\r\n", "-\r\n"])),
            (
                "another protocol",
                instead(&["HTTP/1.1 400 Bad Request\r\n\r\n", "\0\0\0\u{1}", "\r\n"]),
            ),
            ("a line without an end", endless("+", "x")),
            ("an error without an end", endless("-ERR ", "x")),
            ("a number without an end", endless(":", "1")),
            ("a push of 2^29", endless(">536870912\r\n", ":1\r\n")),
            ("an array of 2^29", endless("*536870912\r\n", ":1\r\n")),
            ("a map of 2^29", endless("%536870912\r\n", ":1\r\n")),
            ("a set of 2^63", endless("~9223372036854775807\r\n", ":1\r\n")),
            ("arrays in arrays", endless("", "*1\r\n")),
            ("attributes without an end", endless("", "|1\r\n+a\r\n:1\r\n")),
            ("a string of 512 MiB", endless("$536870912\r\n", "x")),
            ("strings of 1 MiB", Self::Endless(b"*1000\r\n".to_vec(), long.into())),
            ("pushes without an end", endless("", ">3\r\n+message\r\n+c\r\n+x\r\n")),
            ("changes without an end", endless("", &changed)),
            ("replies without an end", endless("", ":1\r\n")),
        ]
    }

    fn play(&self, turn: &AtomicUsize, previous: Vec<u8>, reply: Vec<u8>) -> FakeAnswer {
        match self {
            Self::Silent => FakeAnswer::Send(Vec::new()),
            Self::Late(by) => {
                thread::sleep(*by);
                FakeAnswer::Send(reply)
            }
            Self::Slowly(pause) => FakeAnswer::Slowly(reply, *pause),
            Self::Cut(hundredths) => {
                let length = reply.len() * hundredths / 100;
                FakeAnswer::SendAndClose(reply.into_iter().take(length).collect())
            }
            Self::Shifted => FakeAnswer::Send(previous),
            Self::Twice => FakeAnswer::Send(reply.repeat(2)),
            Self::Behind(bytes) => FakeAnswer::Send([bytes.as_slice(), &reply].concat()),
            Self::Instead(replies) => {
                let turn = turn.fetch_add(1, Ordering::Relaxed);
                FakeAnswer::Send(
                    replies.iter().cycle().nth(turn % replies.len()).cloned().unwrap_or_default(),
                )
            }
            Self::Endless(first, again) => FakeAnswer::Endless(first.clone(), again.clone()),
        }
    }
}

impl FakeServer {
    /// Stands before a server and hands on what it says; but the replies to the commands that are
    /// meant are spoiled. What the server does is done: only the client learns of it otherwise.
    #[must_use]
    pub fn before<F>(server: &Server, trick: Trick, is_meant: F) -> Self
    where
        F: Fn(&[Vec<u8>]) -> bool + Send + Sync + 'static,
    {
        let (address, is_meant) = (server.address().clone(), Arc::new(is_meant));
        let turn = Arc::new(AtomicUsize::new(0));
        Self::unix(move |_| {
            let (trick, is_meant, turn) = (trick.clone(), Arc::clone(&is_meant), Arc::clone(&turn));
            let mut upstream = address.connect().ok().map(Upstream::new);
            let mut previous = Vec::new();
            move |command| {
                let reply = upstream.as_mut().and_then(|upstream| upstream.ask(&command));
                let Some(reply) = reply else { return FakeAnswer::Close };
                let before = std::mem::replace(&mut previous, reply.clone());
                if is_meant(&command) {
                    trick.play(&turn, before, reply)
                } else {
                    FakeAnswer::Send(reply)
                }
            }
        })
    }
}

/// A connection to the real server.
struct Upstream {
    stream: SocketStream,
    /// What has come and was not handed on.
    buffer: Vec<u8>,
}

impl Upstream {
    fn new(stream: SocketStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Everything that comes up to the reply, pushes too; `None` when the server is gone.
    fn ask(&mut self, command: &[Vec<u8>]) -> Option<Vec<u8>> {
        self.stream.write_all(&resp::encode(command)).ok()?;
        // The answer to a subscription is a push.
        let subscribes = command.first().is_some_and(|name| name.ends_with(b"SUBSCRIBE"));
        let mut reply = Vec::new();
        loop {
            while let Some(length) = resp::frame_len(&self.buffer) {
                let is_push = self.buffer.first() == Some(&b'>');
                reply.extend(self.buffer.drain(..length));
                if !is_push || subscribes {
                    return Some(reply);
                }
            }
            let mut chunk = [0; 4_096];
            let count = self.stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
            self.buffer.extend_from_slice(chunk.get(..count)?);
        }
    }
}
