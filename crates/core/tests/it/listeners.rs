//! Connections that listen to channels, as clients do, and one that only listens to a pattern.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::Channel;
use tenure_testkit::{Raw, Server, Value};

use crate::node::Command;
use crate::steps::locks;

/// Messages by channel, in order.
pub(crate) type Heard = BTreeMap<String, Vec<String>>;

/// The channels of these tests: of connections, and then of some of the locks.
pub(crate) fn channels() -> Vec<Channel> {
    let of_locks = locks().into_iter().step_by(2).map(|lock| Channel::of_lock(&lock));
    connections().into_iter().chain(of_locks).collect()
}

/// The channels of connections.
pub(crate) fn connections() -> Vec<Channel> {
    (1..=6).map(Channel::new).collect()
}

/// The channels that somebody listens to when a sequence begins, by their index.
pub(crate) const AT_FIRST: [usize; 5] = [0, 1, 2, 3, 6];

/// How many connections listen; each has every third channel.
pub(crate) const LINES: usize = 3;

/// The connections of one server.
pub(crate) struct Listeners {
    /// Receives everything, and subscribes to no channel: no script may take it for a waiter.
    watcher: Raw,
    lines: Vec<Line>,
    control: Raw,
    /// The channels that somebody listens to, by their index.
    open: BTreeSet<usize>,
    marks: u64,
}

struct Line {
    raw: Raw,
    id: i64,
}

impl Line {
    fn new(server: &Server) -> Self {
        let mut raw = server.raw();
        let id = raw.cmd(&["CLIENT", "ID"]).int();
        Self { raw, id }
    }
}

impl Listeners {
    /// Connects, and listens to the channels of the beginning.
    pub(crate) fn start(server: &Server) -> Self {
        let mut watcher = server.raw();
        watcher.cmd(&["PSUBSCRIBE", "tenure:*"]);
        let lines = (0..LINES).map(|_| Line::new(server)).collect();
        let control = server.raw();
        let mut new = Self { watcher, lines, control, open: BTreeSet::new(), marks: 0 };
        new.restore();
        new
    }

    /// Listens to the channels of the beginning and to no others. Nothing may be unheard.
    pub(crate) fn restore(&mut self) {
        assert_eq!(self.heard(), Heard::new(), "nothing that the watcher did not hear");
        for index in 0..channels().len() {
            if AT_FIRST.contains(&index) { self.open(index) } else { self.close(index) }
        }
    }

    /// Begins to listen to a channel.
    pub(crate) fn open(&mut self, index: usize) {
        if self.open.insert(index) {
            self.lines[index % LINES].raw.cmd(&[b"SUBSCRIBE", channels()[index].as_bytes()]);
        }
    }

    /// Unsubscribes from a channel.
    pub(crate) fn close(&mut self, index: usize) {
        if self.open.remove(&index) {
            self.lines[index % LINES].raw.cmd(&[b"UNSUBSCRIBE", channels()[index].as_bytes()]);
        }
    }

    /// Loses a connection, with all its channels; the server has noticed. A new one is there, and
    /// listens to nothing yet.
    pub(crate) fn cut(&mut self, line: usize, server: &Server) {
        let id = self.lines[line].id.to_string();
        assert_eq!(self.control.cmd(&["CLIENT", "KILL", "ID", &id]).int(), 1);
        self.lines[line] = Line::new(server);
        self.open.retain(|index| index % LINES != line);
    }

    /// The command that marks the end of what [`Listeners::published`] returns.
    pub(crate) fn mark(&mut self) -> Command {
        self.marks += 1;
        ["PUBLISH", MARK, &self.marks.to_string()].map(|word| word.as_bytes().to_vec()).to_vec()
    }

    /// All messages up to the last mark that were not returned yet: channel and text, in order.
    pub(crate) fn published(&mut self) -> Vec<(String, String)> {
        let mut messages = Vec::new();
        loop {
            let message = self.watcher.receive();
            let [_, _, channel, text] = message.array() else { panic!("no message: {message:?}") };
            let (channel, text) = (words(channel), words(text));
            if channel != MARK {
                messages.push((channel, text));
            } else if text == self.marks.to_string() {
                return messages;
            }
        }
    }

    /// What each channel's subscriber has received and not returned yet.
    pub(crate) fn heard(&mut self) -> Heard {
        // A server answers in order, so what it sent before comes before the answer to PING.
        self.lines.iter_mut().for_each(|line| line.raw.send(&["PING", "x"]));
        let mut heard = Heard::new();
        for line in &mut self.lines {
            while let Value::Array(message) = line.raw.receive() {
                match (words(&message[0]).as_str(), &message[1..]) {
                    ("pong", _) => break,
                    ("message", [channel, text]) => {
                        heard.entry(words(channel)).or_default().push(words(text));
                    }
                    _ => panic!("neither a message nor the answer to PING: {message:?}"),
                }
            }
        }
        heard
    }
}

fn words(value: &Value) -> String {
    String::from_utf8_lossy(value.bytes().unwrap()).into_owned()
}

const MARK: &str = "tenure:mark";
