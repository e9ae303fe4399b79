//! The lock's row in full, as the node's model has it, and what is kept of it in a state.

use std::time::Duration;

use tenure_core::{
    Channel, FencingToken, HolderLabel, LockKey, NodeTime, Op, Reply, Row, Stored, StoredValue,
    Timestamp, Token, Ttl,
};

use super::state::{NodeRow, number, token};
use crate::{Kind, Violation};

/// The words that stand for attempts on a server.
#[derive(Debug)]
pub(crate) struct AttemptTokens {
    pub(crate) key: LockKey,
    pub(crate) ttl: Ttl,
    pub(crate) tokens: Vec<Token>,
}

/// The nodes' clocks, at every moment: below an hour, so that proposals are small numbers.
const NOW: NodeTime = NodeTime { ttl_ms: 1_000_000, wall_us: 1 };

/// When every attempt begins, by its client's clock; and when every answer comes.
pub(crate) const BEGIN: Timestamp = Timestamp::from_nanos(1_000_000_000);
pub(crate) const HERE: Timestamp = Timestamp::from_nanos(1_001_000_000);

impl AttemptTokens {
    pub(crate) fn new(attempts: u8) -> Self {
        let token_of = |random: u8| Token::new(random.into(), &HolderLabel::default());
        Self {
            key: LockKey::new("job").expect("a key"),
            ttl: Ttl::new(Duration::from_secs(10)).expect("a TTL"),
            tokens: (0..attempts).map(token_of).collect(),
        }
    }

    pub(crate) fn token(&self, who: u8) -> Token {
        self.tokens[usize::from(who)].clone()
    }

    /// Carries out an op at a node, by the model that the scripts are tested against.
    pub(crate) fn carry_out(&self, node: &mut NodeRow, op: &Op) -> Result<Reply, Violation> {
        let ends_ms = Some(NOW.ttl_ms + self.ttl.as_millis());
        let stored =
            |bytes: &[u8]| Some(Stored { value: StoredValue::Bytes(bytes.to_vec()), ends_ms });
        let mut row = Row {
            lock: node.owner.and_then(|who| stored(self.tokens[usize::from(who)].as_bytes())),
            fence: if node.last == 0 {
                None
            } else {
                stored(token(node.last).to_string().as_bytes())
            },
            queue: None,
        };
        let (reply, _) = row.apply(NOW, &|_: &Channel| false, op);
        self.keep(&row, node).map(|()| reply)
    }

    /// Keeps a row in the state; what no client of ours writes is a fault of the node's model.
    fn keep(&self, row: &Row, node: &mut NodeRow) -> Result<(), Violation> {
        let fault = |words: &str| Err(Violation::new(Kind::Row, words.into()));
        node.owner = None;
        match &row.lock {
            Some(Stored { value: StoredValue::Bytes(token), ends_ms: Some(_) }) => {
                let who = self.tokens.iter().position(|known| known.as_bytes() == token);
                let Some(who) = who.and_then(|who| u8::try_from(who).ok()) else {
                    return fault("a token of nobody");
                };
                node.owner = Some(who);
            }
            Some(_) => return fault("the lock is no string with an end"),
            None => {}
        }
        let last = match &row.fence {
            Some(Stored { value: StoredValue::Bytes(digits), ends_ms: Some(_) }) => {
                let digits = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                number(digits.and_then(FencingToken::new).expect("a number"))
            }
            Some(_) => return fault("the fence key is no string with an end"),
            None => 0,
        };
        if last < node.last {
            return fault("a last number that fell");
        }
        node.last = last;
        if row.queue.is_some() {
            return fault("a queue");
        }
        Ok(())
    }
}
