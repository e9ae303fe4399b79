//! A lease that is held: when to renew it, and when it is lost.

use std::{fmt, time::Duration};

use crate::{Holder, Timestamp, Ttl, backoff::spread, loss_margin};

/// Why a lease is not held any more.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// Its validity ran out by the local clock before a renewal succeeded.
    Expired,
    /// Its key is gone from the servers: deleted, flushed, evicted, or lost in a failover.
    Gone,
    /// Another holds the lock.
    Taken {
        /// Who.
        holder: Holder,
    },
    /// It was held for the longest time that its lock allows.
    MaxHold,
    /// It was released, or its guard was dropped or detached.
    Released,
    /// The client was closed, its engine stopped, or this is a forked child: nobody renews.
    EngineStopped,
}

impl std::error::Error for LossReason {}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the lease ran out before a renewal succeeded"),
            Self::Gone => f.write_str("the key is gone from the server"),
            Self::Taken { holder } => write!(f, "the lock is held by another: {holder}"),
            Self::MaxHold => f.write_str("the lock was held for the longest time allowed"),
            Self::Released => f.write_str("the lock was released"),
            Self::EngineStopped => f.write_str("the client's engine stopped, so nobody renews"),
        }
    }
}

/// How a lease is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain settings, all needed")]
pub struct LeaseSettings {
    /// The TTL that the grant asked for, and that each renewal asks for.
    pub ttl: Ttl,
    /// Renew in the background.
    pub renewed: bool,
    /// The longest the lease may be held.
    pub max_hold: Option<Duration>,
}

/// A lease that is held, until it is lost. Loss is one-way, but for one that time alone told: who
/// has the key still has lost nothing.
///
/// Its driver must call [`Lease::handle_time`] at [`Lease::poll_timeout`], send a renewal whenever
/// [`Lease::poll_renewal`] says so, and hand in each answer with the moment before its request was
/// queued. Loss by time needs no server to answer.
#[derive(Clone, Debug)]
pub struct Lease {
    settings: LeaseSettings,
    granted: Timestamp,
    /// The end of validity: from before the last successful request, less the drift.
    deadline: Timestamp,
    margin: Duration,
    renew_at: Timestamp,
    in_flight: bool,
    lost: Option<LossReason>,
}

impl Lease {
    /// A lease whose grant was asked for at `sent`.
    #[must_use]
    pub fn new(sent: Timestamp, settings: LeaseSettings) -> Self {
        let validity = settings.ttl.validity();
        Self {
            settings,
            granted: sent,
            deadline: sent + validity,
            margin: loss_margin(settings.ttl),
            renew_at: sent + validity / 3,
            in_flight: false,
            lost: None,
        }
    }

    /// The end of validity. Never moves back.
    #[must_use]
    pub const fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// Why the lease is lost, once it is.
    #[must_use]
    pub const fn lost(&self) -> Option<&LossReason> {
        self.lost.as_ref()
    }

    /// The TTL that renewals ask for.
    #[must_use]
    pub const fn ttl(&self) -> Ttl {
        self.settings.ttl
    }

    /// When [`Lease::handle_time`] or [`Lease::poll_renewal`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Timestamp {
        if self.lost.is_some() {
            return Timestamp::MAX;
        }
        let renewal =
            if self.settings.renewed && !self.in_flight { self.renew_at } else { Timestamp::MAX };
        renewal.min(self.lost_at()).min(self.hold_until())
    }

    /// Marks the lease lost when its time is over.
    pub fn handle_time(&mut self, now: Timestamp) {
        if now >= self.lost_at() {
            self.lose(LossReason::Expired);
        } else if now >= self.hold_until() {
            self.lose(LossReason::MaxHold);
        }
    }

    /// Whether to send a renewal now; it then counts as in flight until an answer is handed in.
    ///
    /// `ahead` lets renewals that are due a little later go along with one that is due now.
    #[must_use]
    pub fn poll_renewal(&mut self, now: Timestamp, ahead: Duration) -> bool {
        self.handle_time(now);
        let idle = self.settings.renewed && !self.in_flight && self.lost.is_none();
        let due = idle && now + ahead >= self.renew_at;
        self.in_flight |= due;
        due
    }

    /// Takes a success of a request that was queued at `sent`: a renewal, or an extension by the
    /// caller to `ttl`. The deadline is raised, never lowered.
    pub fn handle_renewed(&mut self, now: Timestamp, sent: Timestamp, ttl: Ttl) {
        self.in_flight = false;
        // The answer may be here after the loss; what was signalled stays so.
        self.handle_time(now);
        if self.lost.is_some() {
            return;
        }
        self.deadline = self.deadline.max(sent + ttl.validity());
        self.renew_at = sent + self.settings.ttl.validity() / 3;
    }

    /// Takes a renewal that was not answered: tried again after a twelfth of the validity.
    pub fn handle_unknown(&mut self, now: Timestamp, random: u64) {
        self.in_flight = false;
        self.renew_at = now + spread(self.settings.ttl.validity() / 12, random);
        self.handle_time(now);
    }

    /// Why not even a [proof](Lease::handle_proved) would keep it at `now`: anything but that its
    /// time ran out.
    #[must_use]
    pub fn over_for_good(&self, now: Timestamp) -> Option<LossReason> {
        match &self.lost {
            None | Some(LossReason::Expired) => {
                (now >= self.hold_until()).then_some(LossReason::MaxHold)
            }
            Some(reason) => Some(reason.clone()),
        }
    }

    /// Takes the proof that its key was there from the grant on: the nodes raised its TTL when they
    /// were asked at `sent`, and nothing ever makes the key anew. If its time ran out, it is held
    /// again, as if it had been renewed then.
    pub fn handle_proved(&mut self, now: Timestamp, sent: Timestamp) {
        self.handle_time(now);
        let is_soon_enough = now < (sent + self.settings.ttl.validity()).before(self.margin);
        if is_soon_enough && self.over_for_good(now).is_none() {
            self.lost = None;
            self.deadline = self.deadline.max(sent + self.settings.ttl.validity());
        }
        self.handle_renewed(now, sent, self.settings.ttl);
    }

    /// Takes the news that the lease is over. The first reason stays.
    pub fn lose(&mut self, reason: LossReason) {
        self.lost.get_or_insert(reason);
    }

    fn lost_at(&self) -> Timestamp {
        // The longest TTLs end after the last timestamp there is: those never run out.
        if self.deadline == Timestamp::MAX {
            return Timestamp::MAX;
        }
        self.deadline.before(self.margin)
    }

    fn hold_until(&self) -> Timestamp {
        self.settings.max_hold.map_or(Timestamp::MAX, |longest| self.granted + longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn settings(ttl: u64) -> LeaseSettings {
        LeaseSettings { ttl: Ttl::new(ms(ttl)).unwrap(), renewed: true, max_hold: None }
    }

    #[test]
    fn renewed_at_a_third_and_lost_a_margin_before_the_end() {
        // TTL 10 s: drift 102 ms, validity 9 898 ms, margin 200 ms.
        let mut lease = Lease::new(at(0), settings(10_000));
        assert_eq!(lease.deadline(), at(9_898));
        assert_eq!(lease.poll_timeout().as_nanos(), 9_898_000_000 / 3);
        assert!(!lease.poll_renewal(at(3_299), Duration::ZERO));
        assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
        assert_eq!(lease.poll_timeout(), at(9_698), "in flight: only the loss is due");
        lease.handle_time(at(9_697));
        assert_eq!(lease.lost(), None);
        lease.handle_time(at(9_698));
        assert_eq!(lease.lost(), Some(&LossReason::Expired));
        assert_eq!(lease.poll_timeout(), Timestamp::MAX);
    }

    #[test]
    fn validity_counts_from_before_the_request() {
        let mut lease = Lease::new(at(0), settings(10_000));
        assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
        lease.handle_renewed(at(4_000), at(3_300), lease.ttl());
        assert_eq!(lease.deadline(), at(3_300 + 9_898));
        // An answer to an older, shorter request never lowers the deadline.
        lease.handle_renewed(at(4_001), at(100), lease.ttl());
        assert_eq!(lease.deadline(), at(3_300 + 9_898));
    }

    #[test]
    fn a_failed_renewal_is_tried_again_soon_and_blips_do_not_add_up() {
        let mut lease = Lease::new(at(0), settings(12_000));
        assert!(lease.poll_renewal(at(4_000), Duration::ZERO));
        lease.handle_unknown(at(4_500), 500);
        let wait = lease.poll_timeout().since(at(4_500));
        assert!((ms(980)..ms(1_000)).contains(&wait), "{wait:?}");
        assert!(lease.poll_renewal(at(5_500), Duration::ZERO));
        lease.handle_renewed(at(5_501), at(5_500), lease.ttl());
        assert_eq!(lease.deadline(), at(5_500 + 11_878));
        assert_eq!(lease.poll_timeout().since(at(5_500)), ms(11_878) / 3);
    }

    #[test]
    fn loss_is_one_way() {
        let mut lease = Lease::new(at(0), settings(10_000));
        assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
        lease.handle_renewed(at(9_800), at(3_300), lease.ttl());
        assert_eq!(lease.lost(), Some(&LossReason::Expired));
        assert_eq!(lease.deadline(), at(9_898));
        lease.lose(LossReason::Gone);
        assert_eq!(lease.lost(), Some(&LossReason::Expired));
        assert!(!lease.poll_renewal(at(9_801), Duration::ZERO));
    }

    #[test]
    fn a_lease_that_ran_out_is_held_again_when_its_key_was_there_all_the_time() {
        let mut lease = Lease::new(at(0), settings(10_000));
        assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
        lease.handle_time(at(20_000));
        assert_eq!(lease.lost(), Some(&LossReason::Expired));
        assert_eq!(lease.over_for_good(at(20_000)), None);
        lease.handle_proved(at(20_010), at(20_001));
        assert_eq!(lease.lost(), None);
        assert_eq!(lease.deadline(), at(20_001 + 9_898));
        // Renewals go on, though the one that was under way was never answered.
        assert_eq!(lease.poll_timeout().since(at(20_001)), ms(9_898) / 3);
        assert!(lease.poll_renewal(at(23_301), Duration::ZERO));
        // And it ends as others do.
        lease.handle_time(at(20_001 + 9_698));
        assert_eq!(lease.lost(), Some(&LossReason::Expired));
    }

    #[test]
    fn a_proof_that_comes_too_late_or_to_one_that_is_over_changes_nothing() {
        let mut lease = Lease::new(at(0), settings(10_000));
        lease.handle_proved(at(30_000), at(30_000 - 9_698));
        assert_eq!(lease.lost(), Some(&LossReason::Expired));
        assert_eq!(lease.deadline(), at(9_898));

        let longest = LeaseSettings { max_hold: Some(ms(15_000)), ..settings(10_000) };
        let mut lease = Lease::new(at(0), longest);
        lease.handle_time(at(14_000));
        assert_eq!(lease.over_for_good(at(15_000)), Some(LossReason::MaxHold));
        lease.handle_proved(at(15_000), at(14_999));
        assert_eq!(lease.lost(), Some(&LossReason::Expired));

        for reason in [LossReason::Gone, LossReason::Released, LossReason::MaxHold] {
            let mut lease = Lease::new(at(0), settings(10_000));
            lease.lose(reason.clone());
            assert_eq!(lease.over_for_good(at(1)), Some(reason.clone()));
            lease.handle_proved(at(1), at(1));
            assert_eq!(lease.lost(), Some(&reason));
        }
    }

    #[test]
    fn a_proof_renews_a_lease_that_is_held() {
        let mut lease = Lease::new(at(0), settings(10_000));
        lease.handle_proved(at(1_001), at(1_000));
        assert_eq!(lease.deadline(), at(1_000 + 9_898));
        // A longer extension stays.
        lease.handle_renewed(at(1_002), at(1_000), Ttl::new(ms(60_000)).unwrap());
        lease.handle_proved(at(1_003), at(1_003));
        assert_eq!(lease.deadline(), at(1_000 + 59_398));
    }

    #[test]
    fn a_longest_hold_ends_the_lease() {
        let mut lease =
            Lease::new(at(0), LeaseSettings { max_hold: Some(ms(5_000)), ..settings(10_000) });
        assert!(lease.poll_renewal(at(4_999), Duration::ZERO));
        lease.handle_renewed(at(4_999), at(4_999), lease.ttl());
        assert_eq!(lease.poll_timeout(), at(5_000));
        lease.handle_time(at(5_000));
        assert_eq!(lease.lost(), Some(&LossReason::MaxHold));
    }

    #[test]
    fn without_renewal_only_the_end_is_due() {
        let mut lease = Lease::new(at(0), LeaseSettings { renewed: false, ..settings(1_000) });
        assert_eq!(lease.poll_timeout(), at(988 - 50));
        assert!(!lease.poll_renewal(at(900), Duration::ZERO));
        // The caller extends by hand.
        lease.handle_renewed(at(901), at(900), Ttl::new(ms(2_000)).unwrap());
        assert_eq!(lease.deadline(), at(900 + 1_978));
    }

    #[test]
    fn the_longest_ttl_is_not_lost_at_once() {
        for ttl in [Ttl::MAX_MS, 10_000 * 365 * 24 * 3_600_000, 500 * 365 * 24 * 3_600_000] {
            let mut lease = Lease::new(at(5), settings(ttl));
            lease.handle_time(at(1_000_000));
            assert_eq!(lease.lost(), None, "{ttl} ms");
        }
    }

    #[test]
    fn renewals_go_along_with_one_that_is_due() {
        let mut lease = Lease::new(at(0), settings(10_000));
        assert!(!lease.poll_renewal(at(3_000), ms(200)));
        assert!(lease.poll_renewal(at(3_100), ms(200)));
    }
}
