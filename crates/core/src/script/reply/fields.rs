//! The fields of a reply, and the grammar of each op's.

use std::time::Duration;

use super::Answer;
use crate::{
    Confirmation, FenceFault, FencingToken, Held, Holder, Inspection, Next, PollAnswer, Release,
    RenewalAnswer, Reply, Source, Ticket, Token, TtlLeft, Waiter,
};

/// The fields of one reply, taken from the front.
pub(super) struct Fields(std::vec::IntoIter<Answer>);

/// What each op's reply may say.
impl Fields {
    pub(super) fn acquired(&mut self, token: &Token, waits: bool) -> Option<Reply> {
        match self.text()?.as_str() {
            "queued" if waits => {
                let form = self.text().filter(|form| form == "held")?;
                let held = self.held(&form, token)?;
                let ticket = Ticket::new(self.whole()?)?;
                Some(Reply::Queued { held, ticket, position: self.count()? })
            }
            "more" => Some(Reply::More),
            "granted" => Some(Reply::Granted(self.number()?)),
            "cancelled" => Some(Reply::Cancelled),
            "fault" => self.fault().map(Reply::Faulty),
            form => self.held(form, token).map(Reply::Held),
        }
    }

    pub(super) fn voted(&mut self, token: &Token, waits: bool) -> Option<Reply> {
        let reply = self.acquired(token, waits)?;
        let last_number = self.number_or_none()?;
        let wall_us = self.whole()?;
        // The number of a grant is the last one by then.
        let granted = matches!(reply, Reply::Granted(number) if last_number != Some(number));
        (!granted).then(|| Reply::Voted { reply: Box::new(reply), last_number, wall_us })
    }

    pub(super) fn resumed(&mut self, token: &Token) -> Option<Reply> {
        match self.text()?.as_str() {
            "granted" => Some(Reply::Granted(self.number()?)),
            "free" => Some(Reply::Free),
            "fault" => self.fault_of_fence().map(Reply::Faulty),
            form => self.held(form, token).map(Reply::Held),
        }
    }

    pub(super) fn stolen(&mut self, token: &Token) -> Option<Reply> {
        match self.text()?.as_str() {
            "granted" => Some(Reply::Granted(self.number()?)),
            "cancelled" => Some(Reply::Cancelled),
            "fault" => self.fault().map(Reply::Faulty),
            form => self.held(form, token).map(Reply::Held),
        }
    }

    pub(super) fn confirmed(&mut self, token: &Token, least: FencingToken) -> Option<Reply> {
        let wall_us = self.whole()?;
        let answer = match self.text()?.as_str() {
            "ours" => Confirmation::Ours(self.number().filter(|number| *number >= least)?),
            "gone" => Confirmation::Gone,
            "fault" => Confirmation::Faulty(self.fault_of_confirmation()?),
            form => Confirmation::Other(self.held(form, token)?),
        };
        Some(Reply::Confirmed { answer, wall_us })
    }

    pub(super) fn released(&mut self, token: &Token, yields: bool) -> Option<Reply> {
        let release = match self.text()?.as_str() {
            "released" => {
                let value = self.bytes().filter(|value| value == token.as_bytes())?;
                Release::Released(Holder::from_value(&value))
            }
            "free" => Release::Free,
            "already" => Release::AlreadyReleased,
            form => {
                let release = Release::Other(self.holder(form, token)?);
                return Some(Reply::Released { release, next: Next::Nobody });
            }
        };
        let next = self.next(yields && matches!(release, Release::Released(_)))?;
        Some(Reply::Released { release, next })
    }

    pub(super) fn forced(&mut self) -> Option<Reply> {
        let release = match self.text()?.as_str() {
            "released" => Release::Released(self.value()?),
            "released type" => Release::Released(self.foreign_type()?),
            "free" => Release::Free,
            "cancelled" => return Some(Reply::Cancelled),
            "fault" => return self.fault().map(Reply::Faulty),
            form => {
                let holder = match form {
                    "held" => self.value()?,
                    "type" => self.foreign_type()?,
                    _ => return None,
                };
                return Some(Reply::Released {
                    release: Release::Other(holder),
                    next: Next::Nobody,
                });
            }
        };
        Some(Reply::Released { release, next: self.next(false)? })
    }

    pub(super) fn inspection(&mut self, unproved: bool) -> Option<Inspection> {
        let wall_us = self.whole()?;
        let source = match self.text()?.as_str() {
            "primary" => Source::Primary,
            "replica" if unproved => Source::Replica,
            "unproved" if unproved => Source::Unproved,
            _ => return None,
        };
        let last_number = self.number_or_none()?;
        let fault = self.fault_or_none()?;
        let waiting = self.count()?;
        let Answer::Array(entries) = self.0.next()? else { return None };
        let waiters: Vec<_> = entries.chunks(2).map(waiter).collect::<Option<_>>()?;
        let held = match self.text()?.as_str() {
            "free" => None,
            form => Some(self.held_by_any(form)?),
        };
        let listed = u64::try_from(waiters.len()).unwrap_or(u64::MAX);
        let inspection = Inspection {
            held,
            last_number,
            fault,
            waiters,
            waiting: Some(waiting),
            wall_us,
            source,
        };
        (listed <= waiting).then_some(inspection)
    }

    /// The answers of a batch: one for each that was asked for.
    pub(super) fn each<A, T>(
        &mut self,
        asked: &[A],
        read: impl Fn(&mut Self, &A) -> Option<T>,
    ) -> Option<Vec<T>> {
        let answer = |asked| match self.0.next()? {
            Answer::Array(fields) => {
                let mut fields = Self::new(fields);
                read(&mut fields, asked).filter(|_| fields.is_over())
            }
            _ => None,
        };
        asked.iter().map(answer).collect()
    }

    pub(super) fn renewal(&mut self, token: &Token) -> Option<RenewalAnswer> {
        match self.text()?.as_str() {
            "renewed" => Some(RenewalAnswer::Renewed),
            "gone" => Some(RenewalAnswer::Gone),
            "error" => {
                let words = self.bytes()?;
                // The error that is made of them shows them.
                let words = String::from_utf8_lossy(&words); // tidy: allow
                Some(RenewalAnswer::Refused(words.into_owned()))
            }
            form => self.holder(form, token).map(RenewalAnswer::Other),
        }
    }

    pub(super) fn poll(&mut self, token: &Token) -> Option<PollAnswer> {
        match self.text()?.as_str() {
            "go" => Some(PollAnswer::Go),
            form @ "held" => {
                let held = self.held(form, token)?;
                Some(PollAnswer::Waits { held, position: self.count()? })
            }
            _ => None,
        }
    }
}

/// The parts that they are made of.
impl Fields {
    pub(super) fn new(fields: Vec<Answer>) -> Self {
        Self(fields.into_iter())
    }

    /// Whether no field is left.
    pub(super) fn is_over(&self) -> bool {
        self.0.len() == 0
    }

    pub(super) fn bytes(&mut self) -> Option<Vec<u8>> {
        match self.0.next()? {
            Answer::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    /// What makes a grant impossible, if anything does.
    fn fault_or_none(&mut self) -> Option<Option<FenceFault>> {
        let word = self.text()?;
        if word.is_empty() { Some(None) } else { fault(&word).map(Some) }
    }

    /// What makes a grant impossible.
    fn fault(&mut self) -> Option<FenceFault> {
        fault(&self.text()?)
    }

    /// The same, of an op that has nothing to do with the queue.
    fn fault_of_fence(&mut self) -> Option<FenceFault> {
        self.fault().filter(|fault| *fault != FenceFault::Queue)
    }

    fn fault_of_confirmation(&mut self) -> Option<FenceFault> {
        match self.text()?.as_str() {
            "ahead" => Some(FenceFault::Ahead),
            word => {
                fault(word).filter(|fault| matches!(fault, FenceFault::Type | FenceFault::Value))
            }
        }
    }

    fn next(&mut self, yields: bool) -> Option<Next> {
        match self.text()?.as_str() {
            "nobody" => Some(Next::Nobody),
            "waiter" => Some(Next::Waiter),
            "yielded" if yields => Some(Next::Yielded),
            "more" => Some(Next::More),
            _ => None,
        }
    }

    /// Another holds the lock: never the one who asked.
    fn held(&mut self, form: &str, token: &Token) -> Option<Held> {
        let holder = self.holder(form, token)?;
        Some(Held { holder, ttl_left: self.ttl_left()? })
    }

    fn held_by_any(&mut self, form: &str) -> Option<Held> {
        let holder = match form {
            "held" => self.value()?,
            "type" => self.foreign_type()?,
            _ => return None,
        };
        Some(Held { holder, ttl_left: self.ttl_left()? })
    }

    fn holder(&mut self, form: &str, token: &Token) -> Option<Holder> {
        match form {
            "held" => {
                let value = self.bytes().filter(|value| value != token.as_bytes())?;
                Some(Holder::from_value(&value))
            }
            "type" => self.foreign_type(),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Holder> {
        Some(Holder::from_value(&self.bytes()?))
    }

    fn foreign_type(&mut self) -> Option<Holder> {
        Some(Holder::ForeignType(self.text()?.into()))
    }

    fn ttl_left(&mut self) -> Option<TtlLeft> {
        match self.0.next()? {
            Answer::Int(-1) => Some(TtlLeft::Never),
            Answer::Int(ms) => Some(TtlLeft::Ends(Duration::from_millis(u64::try_from(ms).ok()?))),
            _ => None,
        }
    }

    fn count(&mut self) -> Option<u64> {
        match self.0.next()? {
            Answer::Int(count) => u64::try_from(count).ok(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<FencingToken> {
        self.bytes().and_then(|digits| number(&digits))
    }

    fn number_or_none(&mut self) -> Option<Option<FencingToken>> {
        let digits = self.bytes()?;
        if digits.is_empty() { Some(None) } else { number(&digits).map(Some) }
    }

    pub(super) fn whole(&mut self) -> Option<u64> {
        self.bytes().and_then(|digits| whole(&digits))
    }
}

fn fault(word: &str) -> Option<FenceFault> {
    match word {
        "type" => Some(FenceFault::Type),
        "value" => Some(FenceFault::Value),
        "exhausted" => Some(FenceFault::Exhausted),
        "queue" => Some(FenceFault::Queue),
        _ => None,
    }
}

/// The number of a grant: 1 to 2^53 - 1.
fn number(digits: &[u8]) -> Option<FencingToken> {
    whole(digits).filter(|number| *number > 0).and_then(FencingToken::new)
}

/// A whole number as scripts spell it: digits, and none before it that says nothing.
fn whole(digits: &[u8]) -> Option<u64> {
    let is_plain =
        digits.iter().all(u8::is_ascii_digit) && (digits == b"0" || !digits.starts_with(b"0"));
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

/// A waiter from its entry and its ticket.
fn waiter(pair: &[Answer]) -> Option<Waiter> {
    let [Answer::Bytes(member), Answer::Bytes(ticket)] = pair else { return None };
    let token = member.split(|&b| b == b' ').next()?;
    let ticket = Ticket::new(whole(ticket)?)?;
    Some(Waiter { holder: Holder::from_value(token), ticket })
}
