//! The rules, checked when an attempt returns with a number.

use super::{
    config::Timing,
    state::{AttemptPhase, Number, QuorumState},
};
use crate::{Kind, Violation};

/// An attempt returns with this number, and holds.
pub(crate) fn returns(
    state: &mut QuorumState,
    who: u8,
    number: Number,
    timing: Timing,
) -> Result<(), Violation> {
    let attempt = &mut state.attempts[usize::from(who)];
    (attempt.phase, attempt.number) = (AttemptPhase::Holding, Some(number));
    let earlier = attempt.earlier;
    for (other, attempt) in (0..).zip(&state.attempts).filter(|(other, _)| *other != who) {
        let Some(others) = attempt.number else { continue };
        let words = || format!("a{who} returns {number}, a{other} returned {others}");
        let kind = if number == others {
            Kind::SameNumber
        } else if number < others && earlier & (1 << other) != 0 {
            Kind::Order
        } else if timing == Timing::Dishonest {
            continue;
        } else if number < others {
            Kind::ReturnOrder
        } else if attempt.phase == AttemptPhase::Holding {
            Kind::TwoBelieve
        } else {
            continue;
        };
        return Err(Violation::new(kind, words()));
    }
    Ok(())
}
