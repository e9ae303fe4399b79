//! Reading what a script replied.

use std::time::Duration;

use crate::{
    Confirmation, FenceFault, FencingToken, Held, Holder, Inspection, LookAnswer, Next, Op,
    Release, RenewalAnswer, Reply, Ticket, TtlLeft, Waiter,
};

/// A server's reply, free of any protocol library's types.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "scripts reply with these kinds and no others")]
pub enum Answer {
    /// An integer.
    Int(i64),
    /// A string, simple or bulk.
    Bytes(Vec<u8>),
    /// An array.
    Array(Vec<Self>),
    /// Anything else.
    Other,
}

/// A reply that cannot be the answer to the request: the connection is out of step.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// The reply begins with another request's number, or with none.
    #[error("the reply is not to request {request}")]
    WrongRequest {
        /// The number that was sent.
        request: u64,
    },
    /// The reply does not have the form that its script documents.
    #[error("the reply of `{script}` has no known form")]
    Malformed {
        /// The script's name.
        script: &'static str,
    },
}

/// Reads the reply to `op`, sent under the number `request`.
///
/// # Errors
///
/// [`Misread`] when this cannot be that reply. Whether the op was applied is unknown then.
pub fn read(op: &Op, request: u64, answer: Answer) -> Result<Reply, Misread> {
    let Answer::Array(fields) = answer else { return Err(Misread::WrongRequest { request }) };
    let mut fields = Fields(fields.into_iter());
    if fields.bytes().as_deref() != Some(request.to_string().as_bytes()) {
        return Err(Misread::WrongRequest { request });
    }
    let reply = match op {
        Op::Acquire { proposal: Some(_), .. } => fields.voted(),
        Op::Acquire { .. } | Op::Resume { .. } | Op::Steal { .. } => fields.grant(),
        Op::Confirm { .. } => fields.confirmed(),
        Op::Clock => fields.digits().map(|wall_us| Reply::Clock { wall_us }),
        Op::Release { .. } | Op::ForceRelease { .. } => fields.release(),
        Op::Inspect { .. } => fields.inspection().map(Reply::Inspected),
        Op::Renew(leases) => fields.each(leases.len(), Fields::renewal).map(Reply::Renewed),
        Op::Look(looks) => fields.each(looks.len(), Fields::look).map(Reply::Looked),
    };
    reply.ok_or_else(|| Misread::Malformed { script: super::script_of(op).name })
}

/// The fields of one reply, taken from the front.
struct Fields(std::vec::IntoIter<Answer>);

impl Fields {
    fn bytes(&mut self) -> Option<Vec<u8>> {
        match self.0.next()? {
            Answer::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    fn grant(&mut self) -> Option<Reply> {
        match self.text()?.as_str() {
            "free" => Some(Reply::Free),
            "queued" => {
                let form = self.text()?;
                let held = self.held(&form)?;
                let ticket = Ticket::new(self.text()?.parse().ok()?)?;
                Some(Reply::Queued { held, ticket, position: self.count()? })
            }
            "cancelled" => Some(Reply::Cancelled),
            "more" => Some(Reply::More),
            "granted" => Some(Reply::Granted(self.number()?)),
            "fault" => self.fault().map(Reply::Faulty),
            form => self.held(form).map(Reply::Held),
        }
    }

    fn fault(&mut self) -> Option<FenceFault> {
        match self.text()?.as_str() {
            "type" => Some(FenceFault::Type),
            "value" => Some(FenceFault::Value),
            "exhausted" => Some(FenceFault::Exhausted),
            "queue" => Some(FenceFault::Queue),
            _ => None,
        }
    }

    fn voted(&mut self) -> Option<Reply> {
        let reply = Box::new(self.grant()?);
        let last_number = self.number_or_none()?;
        Some(Reply::Voted { reply, last_number, wall_us: self.digits()? })
    }

    fn confirmed(&mut self) -> Option<Reply> {
        let wall_us = self.digits()?;
        let answer = match self.text()?.as_str() {
            "ours" => Confirmation::Ours(self.number()?),
            "gone" => Confirmation::Gone,
            "fault" => Confirmation::Faulty(self.fault()?),
            form => Confirmation::Other(self.held(form)?),
        };
        Some(Reply::Confirmed { answer, wall_us })
    }

    fn release(&mut self) -> Option<Reply> {
        let release = match self.text()?.as_str() {
            "released" => Release::Released(Holder::from_value(&self.bytes()?)),
            "released type" => Release::Released(self.foreign_type()?),
            "free" => Release::Free,
            form => {
                let release = Release::Other(self.holder(form)?);
                return Some(Reply::Released { release, next: Next::Nobody });
            }
        };
        let next = match self.text()?.as_str() {
            "nobody" => Next::Nobody,
            "waiter" => Next::Waiter,
            "open" => Next::Open,
            "more" => Next::More,
            _ => return None,
        };
        Some(Reply::Released { release, next })
    }

    fn inspection(&mut self) -> Option<Inspection> {
        let last_number = self.number_or_none()?;
        let waiting = self.count()?;
        let Answer::Array(entries) = self.0.next()? else { return None };
        let waiters = entries.chunks(2).map(waiter).collect::<Option<_>>()?;
        let held = match self.text()?.as_str() {
            "free" => None,
            form => Some(self.held(form)?),
        };
        Some(Inspection { held, last_number, waiters, waiting })
    }

    fn count(&mut self) -> Option<u64> {
        match self.0.next()? {
            Answer::Int(count) => u64::try_from(count).ok(),
            _ => None,
        }
    }

    /// The answers of a batch of so many.
    fn each<T>(&mut self, count: usize, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let answers: Option<Vec<_>> = self
            .0
            .by_ref()
            .map(|answer| match answer {
                Answer::Array(fields) => read(&mut Self(fields.into_iter())),
                _ => None,
            })
            .collect();
        answers.filter(|answers| answers.len() == count)
    }

    fn renewal(&mut self) -> Option<RenewalAnswer> {
        match self.text()?.as_str() {
            "renewed" => Some(RenewalAnswer::Renewed),
            "gone" => Some(RenewalAnswer::Gone),
            "error" => Some(RenewalAnswer::Refused(self.text()?)),
            form => self.holder(form).map(RenewalAnswer::Other),
        }
    }

    fn look(&mut self) -> Option<LookAnswer> {
        match self.text()?.as_str() {
            "go" => Some(LookAnswer::Go),
            form => {
                let held = self.held(form)?;
                Some(LookAnswer::Waits { held, position: self.count()? })
            }
        }
    }

    fn held(&mut self, form: &str) -> Option<Held> {
        let holder = self.holder(form)?;
        let ttl_left = match self.0.next()? {
            Answer::Int(ms) => u64::try_from(ms)
                .map_or(TtlLeft::Never, |ms| TtlLeft::Ends(Duration::from_millis(ms))),
            _ => return None,
        };
        Some(Held { holder, ttl_left })
    }

    fn holder(&mut self, form: &str) -> Option<Holder> {
        match form {
            "held" => Some(Holder::from_value(&self.bytes()?)),
            "type" => self.foreign_type(),
            _ => None,
        }
    }

    fn foreign_type(&mut self) -> Option<Holder> {
        Some(Holder::ForeignType(self.text()?.into()))
    }

    fn number(&mut self) -> Option<FencingToken> {
        FencingToken::new(self.digits()?)
    }

    fn number_or_none(&mut self) -> Option<Option<FencingToken>> {
        match self.text()?.as_str() {
            "" => Some(None),
            digits => FencingToken::new(digits.parse().ok()?).map(Some),
        }
    }

    fn digits(&mut self) -> Option<u64> {
        self.text()?.parse().ok()
    }
}

/// A waiter from its entry and its ticket.
fn waiter(pair: &[Answer]) -> Option<Waiter> {
    let [Answer::Bytes(member), Answer::Bytes(ticket)] = pair else { return None };
    let token = member.split(|&b| b == b' ').next()?;
    let ticket = std::str::from_utf8(ticket).ok()?.parse().ok()?;
    Some(Waiter { holder: Holder::from_value(token), ticket: Ticket::new(ticket)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockKey;

    fn inspect() -> Op {
        Op::Inspect { key: LockKey::new("k").unwrap() }
    }

    fn array(fields: &[&str]) -> Answer {
        Answer::Array(fields.iter().map(|f| Answer::Bytes(f.as_bytes().to_vec())).collect())
    }

    #[test]
    fn a_reply_to_another_request_is_not_taken() {
        let wrong = Err(Misread::WrongRequest { request: 7 });
        assert_eq!(read(&inspect(), 7, array(&["8", "free"])), wrong);
        assert_eq!(read(&inspect(), 7, array(&[])), wrong);
        assert_eq!(read(&inspect(), 7, Answer::Int(7)), wrong);
        assert_eq!(read(&inspect(), 7, Answer::Bytes(b"7".to_vec())), wrong);
    }

    #[test]
    fn a_reply_of_unknown_form_is_not_taken() {
        let malformed = Err(Misread::Malformed { script: "inspect" });
        for fields in [&["7"][..], &["7", "x", "free"], &["7", "", "held", "v"], &["7", "1", "?"]] {
            assert_eq!(read(&inspect(), 7, array(fields)), malformed, "{fields:?}");
        }
        let renew = Op::Renew(Vec::new());
        assert!(read(&renew, 7, array(&["7", "renewed"])).is_err());
    }
}
