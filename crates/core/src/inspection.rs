//! What stands at a lock's keys, for people.

use std::time::Duration;

use crate::{FenceFault, FencingToken, Held, Holder, Ticket};

/// A waiter in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "complete for one entry of the queue")]
pub struct Waiter {
    /// The label of the waiter.
    pub holder: Holder,
    /// Its place: the server's clock, in microseconds, when it joined.
    pub ticket: Ticket,
}

/// Where the answer comes from, and so how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A primary: it has just proved that it may write.
    Primary,
    /// A replica, which may be behind its primary.
    Replica,
    /// The user may not write, so the server may be either.
    Unproved,
}

/// The state of a lock: what its keys contain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "complete for one key")]
pub struct Inspection {
    /// The holder, if the lock is held.
    pub held: Option<Held>,
    /// The number of the last grant, if the fence key exists and is sound.
    pub last_number: Option<FencingToken>,
    /// Why a free lock cannot be acquired.
    pub fault: Option<FenceFault>,
    /// The first [`Inspection::MAX_WAITERS`] waiters, in order.
    pub waiters: Vec<Waiter>,
    /// The number of waiters; `None` over several servers, which have no queue.
    pub waiting: Option<u64>,
    /// The server's wall clock, in microseconds since the epoch: the base of ages.
    pub wall_us: u64,
    /// Who answered.
    pub source: Source,
}

impl Inspection {
    /// The most waiters that an inspection lists, so that it does not delay the server.
    pub const MAX_WAITERS: usize = 100;

    /// How long the holder has had the lock, by the server's clock, from which its number was
    /// drawn. `None` if nobody or another library holds it, or if the number is not a time.
    #[must_use]
    pub fn held_for(&self) -> Option<Duration> {
        self.held.as_ref().filter(|held| !held.holder.is_foreign())?;
        self.since_us(self.last_number?.get())
    }

    /// How long a waiter has been in the queue, by the server's clock. `None` if its ticket is not
    /// a time.
    #[must_use]
    pub fn waiting_for(&self, waiter: &Waiter) -> Option<Duration> {
        self.since_us(waiter.ticket.get())
    }

    fn since_us(&self, us: u64) -> Option<Duration> {
        let since = self.wall_us.checked_sub(us).map(Duration::from_micros);
        since.filter(|since| *since < MAX_HOLD)
    }
}

/// A number that is older was not drawn from a clock.
const MAX_HOLD: Duration = Duration::from_secs(365 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TtlLeft;

    #[test]
    fn ages_are_computed_from_the_server_clock() {
        let wall_us: u64 = 1_760_000_000_000_000;
        let ours = Holder::from_value(b"0123456789abcdef0123456789abcdef@h");
        let of = |holder: Holder, ago_us: i64| Inspection {
            held: Some(Held { holder, ttl_left: TtlLeft::Never }),
            last_number: FencingToken::new(wall_us.saturating_add_signed(-ago_us)),
            fault: None,
            waiters: Vec::new(),
            waiting: Some(0),
            wall_us,
            source: Source::Primary,
        };
        let held_for = |holder: &Holder, ago_us| of(holder.clone(), ago_us).held_for();
        assert_eq!(held_for(&ours, 1_500_000), Some(Duration::from_millis(1_500)));
        assert_eq!(held_for(&ours, 0), Some(Duration::ZERO));
        assert_eq!(held_for(&ours, -1), None, "a number that ran ahead of the clock");
        assert_eq!(held_for(&ours, 366 * 86_400_000_000), None);
        assert_eq!(held_for(&Holder::from_value(b"x"), 1_500_000), None);
        let waiter = Waiter { holder: ours.clone(), ticket: Ticket::new(wall_us - 7).unwrap() };
        assert_eq!(of(ours, 0).waiting_for(&waiter), Some(Duration::from_micros(7)));
    }
}
