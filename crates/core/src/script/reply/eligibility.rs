//! The two fields that a check of the server's marker adds to a reply.

use std::time::Duration;

use super::{Answer, fields::Fields};
use crate::{Closure, Eligibility, MarkerCause};

/// Takes them from the end.
pub(super) fn take(fields: &mut Vec<Answer>) -> Option<Eligibility> {
    let (left, word) = (fields.pop()?, fields.pop()?);
    let Answer::Bytes(word) = word else { return None };
    let is_empty = matches!(&left, Answer::Bytes(left) if left.is_empty());
    let plain = |eligibility| is_empty.then_some(eligibility);
    let forgetful = |cause, left| {
        let left = Duration::from_millis(Fields::new(vec![left]).whole()?);
        Some(Eligibility::Closed(Closure::Forgetful(cause, left)))
    };
    match word.as_slice() {
        b"eligible" => plain(Eligibility::Eligible),
        b"opened" => plain(Eligibility::Opened),
        b"new" => forgetful(MarkerCause::New, left),
        b"changed" => forgetful(MarkerCause::Changed, left),
        b"hidden" => plain(Eligibility::Closed(Closure::Hidden)),
        b"unusable" => plain(Eligibility::Closed(Closure::Unusable)),
        _ => None,
    }
}
