//! What the network does to what is on the way.

use std::time::Duration;

/// What the network does.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) request_delay: Duration,
    pub(super) reply_delay: Duration,
    pub(super) black_hole: bool,
    pub(super) refuse: bool,
    pub(super) split: bool,
    pub(super) dropping: Dropping,
    pub(super) no_messages: bool,
    pub(super) gate: Option<Gate>,
}

/// Something that becomes of a reply, after others have passed.
#[derive(Debug)]
pub(super) struct Gate {
    /// How many pass before.
    pub(super) pass: usize,
    pub(super) fate: Gated,
    /// Whether a reply has come to it.
    pub(super) met: bool,
}

/// What becomes of the reply that meets a [`Proxy`](super::Proxy)'s gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gated {
    /// It waits for [`Proxy::heal`](super::Proxy::heal), and so does all behind it.
    Held,
    /// It is swallowed, and so is all behind it; healing cuts the connections.
    Swallowed,
    /// Its connection is reset in its place; later ones are good.
    Cut,
}

/// What becomes of replies.
#[derive(Debug, Default)]
pub(super) enum Dropping {
    #[default]
    None,
    All,
    Next {
        left: usize,
        cut: bool,
    },
}

/// Which way something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Reply,
}

/// What is on the way.
#[derive(Debug)]
pub(super) enum Chunk {
    Bytes(Vec<u8>),
    End,
}

/// What to do next with a chunk that is due.
pub(super) enum Fate {
    Forward,
    Hold,
    Swallow,
    SwallowAndCut,
}

impl Rules {
    /// How much later things arrive.
    pub(super) fn delay(&self, direction: Direction) -> Duration {
        match direction {
            Direction::Request => self.request_delay,
            Direction::Reply => self.reply_delay,
        }
    }

    /// Decides on a chunk that is due, and counts it.
    pub(super) fn fate(&mut self, direction: Direction, chunk: &Chunk) -> Fate {
        let Chunk::Bytes(bytes) = chunk else { return Fate::Forward };
        if direction == Direction::Request {
            return Fate::Forward;
        }
        if self.no_messages && bytes.starts_with(MESSAGE) {
            return Fate::Swallow;
        }
        if let Some(gate) = &mut self.gate {
            if gate.pass > 0 {
                gate.pass -= 1;
                return Fate::Forward;
            }
            let first = !std::mem::replace(&mut gate.met, true);
            match gate.fate {
                Gated::Held => return Fate::Hold,
                Gated::Swallowed => return Fate::Swallow,
                Gated::Cut if first => return Fate::SwallowAndCut,
                Gated::Cut => {}
            }
        }
        match &mut self.dropping {
            Dropping::None => Fate::Forward,
            Dropping::All => Fate::Swallow,
            Dropping::Next { .. } if bytes.first() == Some(&b'>') => Fate::Forward,
            Dropping::Next { left: 0, .. } => Fate::Forward,
            Dropping::Next { left, cut } => {
                *left -= 1;
                if *left == 0 && *cut { Fate::SwallowAndCut } else { Fate::Swallow }
            }
        }
    }
}

/// How a message to a channel begins, in RESP3.
const MESSAGE: &[u8] = b">3\r\n$7\r\nmessage\r\n";
