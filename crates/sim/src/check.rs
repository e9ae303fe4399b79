//! The rules, in every state and at every step.

use crate::{
    Violation,
    attempt::Phase,
    message::{Ask, PendingRequest},
    rank::Rank,
    state::{Line, QueueEntry, QueueState, Who},
    violation::Kind,
};

/// The rules that every state keeps.
pub(crate) fn check(state: &QueueState) -> Result<(), Violation> {
    let mut believer: Option<Who> = None;
    for who in state.everyone() {
        let attempt = state.attempt(who);
        if attempt.release_known {
            stays_released(state, who)?;
        }
        let Some(belief) = attempt.belief.filter(|_| !attempt.robbed) else { continue };
        if let Some(other) = believer.replace(who) {
            return Err(Violation::new(Kind::TwoBelieve, format!("{other} and {who}")));
        }
        match state.server.lock {
            Some((owner, left)) if owner == who && left >= belief.left => {}
            lock => {
                let lock =
                    lock.map_or_else(|| "nobody".into(), |(who, left)| format!("{who}, {left} ms"));
                let words = format!("{who} believes for {} ms, held by {lock}", belief.left);
                return Err(Violation::new(Kind::Belief, words));
            }
        }
    }
    Ok(())
}

fn stays_released(state: &QueueState, who: Who) -> Result<(), Violation> {
    if state.server.lock.is_some_and(|(owner, _)| owner == who) {
        return Err(Violation::new(Kind::LateHolder, who.to_string()));
    }
    if state.server.queue.iter().any(|entry| entry.who == who) {
        return Err(Violation::new(Kind::LateWaiter, who.to_string()));
    }
    Ok(())
}

/// The rule of a step by which somebody begins to believe.
pub(crate) fn believes(
    state: &mut QueueState,
    who: Who,
    number: Option<Rank>,
) -> Result<(), Violation> {
    let Some(number) = number.filter(|_| !state.attempt(who).robbed) else { return Ok(()) };
    if let Some((highest, other)) = state.highest
        && (number < highest || (number == highest && other != who))
    {
        let words = format!("{who} has {number}, {other} had {highest}");
        return Err(Violation::new(Kind::Numbers, words));
    }
    state.highest = Some((number, who));
    Ok(())
}

/// The rules of a step by which the server grants: nobody was passed over, the caller included.
pub(crate) fn passed_over(
    before: &QueueState,
    granted: Who,
    request: &PendingRequest,
) -> Result<(), Violation> {
    let PendingRequest { who: caller, epoch, age: _, ask } = *request;
    let (mut brought, mut suspected, mut leaves) = (None, None, false);
    match ask {
        Ask::Acquire { ticket, suspect, .. } => (brought, suspected) = (ticket, suspect),
        Ask::Release { .. } => leaves = true,
        Ask::Renew | Ask::Force(_) | Ask::Keep(_) => {}
    }
    let queue = &before.server.queue;
    let score = |who: Who| {
        let stood = queue.iter().filter(|entry| entry.who == who).map(|entry| entry.ticket);
        let brought = brought.filter(|_| who == caller);
        stood.chain(brought).min().unwrap_or(Rank::MAX)
    };
    let place = score(granted);
    let first = before.attempt(granted).joined.map_or(place, |joined| joined.min(place));
    let asks = QueueEntry { ticket: score(caller), who: caller, epoch };
    let others = queue.iter().filter(|entry| entry.who != caller).chain([&asks]);
    for entry in others.filter(|entry| entry.who != granted && before.listens(entry)) {
        let QueueEntry { who: other, epoch, ticket } = *entry;
        let line = Line { client: other.client, epoch };
        let excused = suspected == Some(line) || (leaves && other == caller);
        if ticket < place && !excused {
            return Err(Violation::new(Kind::Fifo, format!("{granted} goes before {other}")));
        }
        let ticket = before.attempt(other).ticket;
        if ticket.is_some_and(|ticket| ticket < first) && !excused {
            return Err(Violation::new(Kind::Place, format!("{granted} goes before {other}")));
        }
    }
    Ok(())
}

/// The clients that wait for the lock and have not ended.
pub(crate) fn waiters(state: &QueueState) -> impl Iterator<Item = Who> {
    state.everyone().filter(|who| state.attempt(*who).phase == Phase::Waiting)
}
