//! Reading what a script replied.
//!
//! Each op has its own grammar, the one in its script's header, and nothing beside it: a form of
//! another op, a number in another spelling, or a field too many is no answer to any question.

mod eligibility;
mod fields;
#[cfg(test)]
mod tests;

use self::fields::Fields;
use crate::{Op, Reply};

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
    let Answer::Array(mut fields) = answer else { return Err(Misread::WrongRequest { request }) };
    let malformed = || Misread::Malformed { script: super::script_of(op).name };
    if let Op::Checked { op: inner, .. } = op {
        let eligibility = eligibility::take(&mut fields).ok_or_else(malformed)?;
        let reply = Box::new(read(inner, request, Answer::Array(fields))?);
        return Ok(Reply::Checked { eligibility, reply });
    }
    let mut fields = Fields::new(fields);
    if fields.bytes().as_deref() != Some(request.to_string().as_bytes()) {
        return Err(Misread::WrongRequest { request });
    }
    let reply = match op {
        Op::Acquire { token, proposal: None, place, .. } => fields.acquired(token, place.is_some()),
        Op::Acquire { token, proposal: Some(_), place, .. } => fields.voted(token, place.is_some()),
        Op::Resume { token, .. } => fields.resumed(token),
        Op::Steal { token, .. } => fields.stolen(token),
        Op::Confirm { token, number, .. } => fields.confirmed(token, *number),
        Op::Clock | Op::Checked { .. } => fields.whole().map(|wall_us| Reply::Clock { wall_us }),
        Op::Release { token, yield_ms, .. } => fields.released(token, *yield_ms > 0),
        Op::ForceRelease { .. } => fields.forced(),
        Op::Inspect { unproved, .. } => fields.inspection(*unproved).map(Reply::Inspected),
        Op::Renew(leases) => {
            let answers = fields.each(leases, |fields, lease| fields.renewal(&lease.token));
            answers.map(Reply::Renewed)
        }
        Op::Poll(polls) => {
            let answers = fields.each(polls, |fields, poll| fields.poll(&poll.token));
            answers.map(Reply::Polled)
        }
    };
    reply.filter(|_| fields.is_over()).ok_or_else(malformed)
}
