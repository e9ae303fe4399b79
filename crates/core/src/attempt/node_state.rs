//! What an attempt knows of one node.

use super::Vote;
use crate::{Confirmation, FencingToken, Held, Holder, TtlLeft};

/// What an attempt knows of one node. To compare attempts, as models do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeState {
    pub(super) vote: Option<Vote>,
    /// The node's largest last number at a moment when the lock was ours there.
    number: Option<FencingToken>,
    /// The lock was ours there and is not any more, or another was seen to hold it.
    lost: bool,
    /// Who was seen to hold it when it was to be confirmed.
    taken: Option<Held>,
    /// It is to be asked for a confirmation.
    pub(super) to_confirm: bool,
    /// Confirmations it was asked for and has not answered.
    pub(super) unanswered: u8,
}

impl NodeState {
    /// Its vote, as far as there is one.
    #[must_use]
    pub const fn vote(&self) -> Option<&Vote> {
        self.vote.as_ref()
    }

    /// Takes a vote. Only what was unknown can still become known.
    pub(super) fn record_vote(&mut self, vote: Vote) {
        if !matches!(self.vote, None | Some(Vote::Unknown)) {
            return;
        }
        if let Vote::Granted(number) = vote {
            self.is_ours(number);
        }
        self.vote = Some(vote);
    }

    /// Takes the answer to a confirmation, or that there was none.
    pub(super) fn confirmed(&mut self, answer: Option<Confirmation>) {
        self.unanswered = self.unanswered.saturating_sub(1);
        match answer {
            Some(Confirmation::Ours(number)) => self.is_ours(number),
            // Only a key that was there can be lost: the request for it may still arrive.
            Some(Confirmation::Gone) => self.lost |= self.number.take().is_some(),
            Some(Confirmation::Other(held)) => {
                (self.number, self.lost, self.taken) = (None, true, Some(held));
            }
            Some(Confirmation::Faulty(_)) | None => {}
        }
    }

    /// A number grows while the lock is ours, so the largest is the last.
    fn is_ours(&mut self, number: FencingToken) {
        if !self.lost {
            self.number = self.number.max(Some(number));
        }
    }

    /// Its number, if the lock is ours there.
    pub(super) fn number(&self) -> Option<FencingToken> {
        self.number
    }

    /// The holder of the lock there, if the node named one.
    pub(super) fn refusal(&self) -> Option<&Held> {
        match &self.vote {
            Some(Vote::Refused { held, .. }) => Some(held),
            _ => self.taken.as_ref(),
        }
    }

    /// For whom it refused, if it did.
    pub(super) fn refuser(&self) -> Option<Refuser<'_>> {
        let number = match &self.vote {
            Some(Vote::Refused { last_number, .. }) => *last_number,
            _ => None,
        };
        Some(Refuser { holder: &self.refusal()?.holder, number })
    }

    /// Its vote may still come.
    pub(super) fn is_open(&self) -> bool {
        self.vote.is_none() && !self.lost && self.number.is_none()
    }

    /// It may still report that the lock is ours there, under this number at least.
    pub(super) fn may_confirm(&self) -> bool {
        !self.lost && self.refusal().is_none() && (self.to_confirm || self.unanswered > 0)
    }

    /// A confirmation could make it agree on this number.
    pub(super) fn can_be_asked(&self, number: FencingToken) -> bool {
        !self.lost && self.refusal().is_none() && self.number != Some(number)
    }
}

/// The holder that a node named when it refused, and its number if the node reported one.
pub(super) struct Refuser<'a> {
    holder: &'a Holder,
    number: Option<FencingToken>,
}

impl Refuser<'_> {
    /// Whether it may be the same one. Holders of other libraries have no numbers.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        let differ = self.number.zip(other.number).is_some_and(|(one, other)| one != other);
        self.holder == other.holder && (self.holder.is_foreign() || !differ)
    }
}

/// Of the refusals, the one with whose end at most `spare` are left: a majority may be free then.
pub(super) fn last_to_end<'a>(
    refusals: impl Iterator<Item = &'a Held>,
    spare: usize,
) -> Option<&'a Held> {
    let mut refusals: Vec<_> = refusals.collect();
    let end = |held: &&Held| match held.ttl_left {
        TtlLeft::Ends(left) => (false, Some(left)),
        TtlLeft::Never => (true, None),
    };
    refusals.sort_by_key(end);
    let must_end = refusals.len().checked_sub(spare + 1)?;
    refusals.get(must_end).copied()
}
