//! One round of votes for one acquisition.

use std::time::Duration;

use crate::{FencingToken, Held, NodeId, Quorum, Timestamp, Ttl};

/// One node's answer to an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an answer is yes, no, or none")]
pub enum Vote {
    /// The node set our key, under this number.
    Granted(FencingToken),
    /// The node refused: another holds the lock there.
    Refused(Held),
    /// No answer, or one that does not tell. Never taken for a yes or a no: our key may be there.
    Unknown,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every outcome")]
pub enum Outcome {
    /// A majority granted the lock in time.
    Acquired(FencingToken),
    /// So many nodes refused that no majority can grant: another holds the lock.
    Held(Held),
    /// Neither: too many nodes did not tell.
    Unknown,
    /// A majority granted the lock, but too little of its validity was left.
    TooLate,
}

/// One round of votes. It has one token, which no later attempt uses.
///
/// Its driver must
///
/// * call [`Attempt::new`] before the first request is queued: validity counts from there;
/// * ask each node that [`Attempt::poll_ask`] names, and hand in what it answers, or
///   [`Vote::Unknown`] when its time limit is over;
/// * stop when [`Attempt::outcome`] is there, and then, unless the lock was acquired, send a
///   release to each node that [`Attempt::poll_undo`] names, behind the request on the same
///   connection, again and again until the node answers or the TTL is over.
#[derive(Clone, Debug)]
pub struct Attempt {
    quorum: Quorum,
    sent: Timestamp,
    /// A grant at or after this is too late: what is left is less than is wanted.
    latest: Timestamp,
    asked: usize,
    undone: usize,
    votes: Vec<Option<Vote>>,
    too_late: bool,
}

impl Attempt {
    /// Starts a round; `now` is before the first request is queued. A lock that has less than
    /// `min_validity` left when the answers are here counts as not acquired.
    #[must_use]
    pub fn new(now: Timestamp, quorum: Quorum, ttl: Ttl, min_validity: Duration) -> Self {
        Self {
            quorum,
            sent: now,
            latest: now + ttl.validity().saturating_sub(min_validity),
            asked: 0,
            undone: 0,
            votes: vec![None; quorum.nodes()],
            too_late: false,
        }
    }

    /// The next node to ask, or `None` when all have been named.
    #[must_use]
    pub fn poll_ask(&mut self) -> Option<NodeId> {
        let node = (self.asked < self.quorum.nodes()).then_some(NodeId(self.asked));
        self.asked += usize::from(node.is_some());
        node
    }

    /// Takes a node's vote at `now`. A node that has voted cannot change its vote.
    pub fn handle_vote(&mut self, now: Timestamp, node: NodeId, vote: Vote) {
        if let Some(slot) = self.votes.get_mut(node.0)
            && slot.is_none()
        {
            *slot = Some(vote);
            self.too_late |= now >= self.latest;
        }
    }

    /// The outcome, as soon as no further vote can change it.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        let needed = self.quorum.needed();
        let mut numbers = Vec::new();
        let mut refusals = Vec::new();
        let mut unknown = 0;
        for vote in self.votes.iter().flatten() {
            match vote {
                Vote::Granted(number) => numbers.push(*number),
                Vote::Refused(held) => refusals.push(held),
                Vote::Unknown => unknown += 1,
            }
        }
        let blocking = self.quorum.nodes() - needed + 1;
        match (numbers.iter().max(), refusals.first()) {
            (Some(&number), _) if numbers.len() >= needed => {
                Some(if self.too_late { Outcome::TooLate } else { Outcome::Acquired(number) })
            }
            (_, Some(&held)) if refusals.len() >= blocking => Some(Outcome::Held(held.clone())),
            _ if refusals.len() + unknown >= blocking && self.all_voted() => Some(Outcome::Unknown),
            _ => None,
        }
    }

    /// The next node that must be sent a release after a failed attempt: one that granted, did not
    /// tell, or has not answered. A node that refused has no key of ours.
    #[must_use]
    pub fn poll_undo(&mut self) -> Option<NodeId> {
        while self.undone < self.asked {
            let node = NodeId(self.undone);
            self.undone += 1;
            if !matches!(self.votes.get(node.0), Some(Some(Vote::Refused(_)))) {
                return Some(node);
            }
        }
        None
    }

    /// When the attempt began: validity counts from here.
    #[must_use]
    pub const fn sent(&self) -> Timestamp {
        self.sent
    }

    fn all_voted(&self) -> bool {
        self.votes.iter().all(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Holder, TtlLeft};

    fn ttl() -> Ttl {
        Ttl::new(Duration::from_secs(10)).unwrap()
    }

    fn granted(number: u64) -> Vote {
        Vote::Granted(FencingToken::new(number).unwrap())
    }

    fn held() -> Held {
        Held { holder: Holder::from_value(b"x"), ttl_left: TtlLeft::Never }
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    fn round(votes: &[Vote]) -> Attempt {
        let mut attempt =
            Attempt::new(at(0), Quorum::new(votes.len()).unwrap(), ttl(), Duration::ZERO);
        for vote in votes {
            let node = attempt.poll_ask().unwrap();
            attempt.handle_vote(at(1), node, vote.clone());
        }
        assert_eq!(attempt.poll_ask(), None);
        attempt
    }

    #[test]
    fn one_node_decides_alone() {
        let number = FencingToken::new(7).unwrap();
        assert_eq!(round(&[granted(7)]).outcome(), Some(Outcome::Acquired(number)));
        assert_eq!(round(&[Vote::Refused(held())]).outcome(), Some(Outcome::Held(held())));
        assert_eq!(round(&[Vote::Unknown]).outcome(), Some(Outcome::Unknown));
    }

    #[test]
    fn unknown_is_neither_yes_nor_no() {
        let refused = || Vote::Refused(held());
        assert_eq!(
            round(&[granted(1), refused(), Vote::Unknown]).outcome(),
            Some(Outcome::Unknown)
        );
        assert!(matches!(
            round(&[refused(), refused(), Vote::Unknown]).outcome(),
            Some(Outcome::Held(_))
        ));
        let three = [granted(1), granted(3), Vote::Unknown];
        assert_eq!(round(&three).outcome(), FencingToken::new(3).map(Outcome::Acquired));
    }

    #[test]
    fn grants_that_arrive_after_the_validity_do_not_count() {
        let mut attempt = Attempt::new(at(0), Quorum::ONE, ttl(), Duration::ZERO);
        let node = attempt.poll_ask().unwrap();
        // 10 s less 1 % less 2 ms.
        attempt.handle_vote(at(9_898), node, granted(1));
        assert_eq!(attempt.outcome(), Some(Outcome::TooLate));
        assert_eq!(attempt.poll_undo(), Some(node));
        let mut attempt = Attempt::new(at(0), Quorum::ONE, ttl(), Duration::ZERO);
        let node = attempt.poll_ask().unwrap();
        attempt.handle_vote(at(9_897), node, granted(1));
        assert!(matches!(attempt.outcome(), Some(Outcome::Acquired(_))));
    }

    #[test]
    fn a_grant_with_too_little_left_does_not_count() {
        let wanted = Duration::from_millis(9_000);
        let mut attempt = Attempt::new(at(0), Quorum::ONE, ttl(), wanted);
        let node = attempt.poll_ask().unwrap();
        attempt.handle_vote(at(898), node, granted(1));
        assert_eq!(attempt.outcome(), Some(Outcome::TooLate));
    }

    #[test]
    fn all_but_those_that_refused_are_undone() {
        let mut attempt = round(&[granted(1), Vote::Refused(held()), Vote::Unknown]);
        let undone: Vec<_> = std::iter::from_fn(|| attempt.poll_undo()).collect();
        assert_eq!(undone, [NodeId(0), NodeId(2)]);
        // A node that was asked and has not answered is undone too; one not asked is not.
        let mut attempt = Attempt::new(at(0), Quorum::new(3).unwrap(), ttl(), Duration::ZERO);
        let asked = attempt.poll_ask();
        assert_eq!((attempt.poll_undo(), attempt.poll_undo()), (asked, None));
    }

    #[test]
    fn a_vote_stands() {
        let mut attempt = round(&[Vote::Unknown]);
        attempt.handle_vote(at(2), NodeId(0), granted(1));
        assert_eq!(attempt.outcome(), Some(Outcome::Unknown));
    }
}
