//! What leaves no lease behind, over all nodes: an inspection, a release by force or by token, and
//! whether they vote.

use std::{rc::Rc, time::Duration};

use tenure_core::{
    FencingToken, Holder, Inspection, LockKey, MarkerMode, Next, NodeId, Op, Quorum, Release,
    Reply, Source, Token, Ttl, is_far_ahead,
};

use super::{
    majority::{KeyState, MajorityCount, QuorumResult},
    nodes::{Answers, each, each_until},
    state::State,
};
use crate::{
    clock,
    error::{NodeError, NodeErrorKind, NodeErrors},
    node::Residue,
    report::NodeReport,
};

impl State {
    /// Asks every node, and makes one answer of theirs. The ops are queued when this returns.
    pub(super) fn ask_all(
        self: &Rc<Self>,
        op: &Op,
        limit: Duration,
    ) -> impl Future<Output = Result<Reply, NodeErrors>> + use<> {
        let mut op = op.clone();
        if let (Op::Release { number, .. }, None) = (&mut op, self.nodes.sole()) {
            // Waiters are notified of a release that stores a number. A release by
            // token does not know the lease's number.
            number.get_or_insert(FencingToken::MIN);
        }
        let calls =
            self.nodes.iter().map(|(id, _)| self.nodes.call(id, op.clone(), limit)).collect();
        let state = Rc::clone(self);
        let is_inspection = matches!(&op, Op::Inspect { .. });
        let forcing = match &op {
            Op::ForceRelease { key, token, .. } => Some((key.clone(), token.clone())),
            _ => None,
        };
        async move {
            let is_forced = forcing.is_some();
            let quorum = state.nodes.quorum();
            let merge = |answers: Answers| match (is_inspection, is_forced) {
                (true, _) => inspected(quorum, answers).map(Reply::Inspected),
                (_, true) => forced(quorum, answers).map(released),
                _ => given_back(quorum, answers).map(released),
            };
            // The others do not change what is certain without them. A release by token
            // still reaches them; one by force is not sent when nobody waits for it.
            let are_enough = |answers| !is_forced && merge(answers).is_ok();
            let answers = each_until(calls, are_enough).await;
            let answers = match forcing {
                Some((key, token)) => state.forced(&key, &token, answers),
                None => answers,
            };
            if let (Some(_), Some(answer)) = (state.nodes.sole(), answers.first()) {
                return answer.clone().map_err(NodeErrors::from);
            }
            let out_of_step =
                || NodeError::new(state.nodes.first().name(), NodeErrorKind::Protocol).into();
            // With no error there is an answer, or a node did not answer what it was asked.
            merge(answers).map_err(|errors| errors.unwrap_or_else(out_of_step))
        }
    }

    /// Takes the answers to a release by force. Each node is to refuse one that it did not answer:
    /// it may still arrive, and the next holder's key would be gone.
    fn forced(self: &Rc<Self>, key: &LockKey, token: &Token, answers: Answers) -> Answers {
        let nodes = self.nodes.iter().zip(answers);
        let taken = nodes.map(|((id, node), answer)| match answer {
            Ok(Reply::Faulty(fault)) => Err(NodeError::of_fault(node.name(), fault, key)),
            Err(error) if error.may_be_applied() => {
                let residue = Residue { ambiguous: true, ..Residue::default() };
                self.undo(id, key.clone(), token.clone(), residue, clock::now());
                Err(error)
            }
            answer => answer,
        });
        taken.collect()
    }

    /// Asks every node for its clock and, where a lock is named, for what stands at its keys, and
    /// returns whether it would vote now; opens those without a marker, where that is asked for by
    /// hand. The ops are queued when this returns.
    pub(super) fn report(
        self: &Rc<Self>,
        key: Option<LockKey>,
        max_ttl: Ttl,
        mode: MarkerMode,
        limit: Duration,
    ) -> impl Future<Output = Vec<NodeReport>> + use<> {
        let call = |id| self.nodes.call_marker(id, Op::Clock, max_ttl, mode, limit);
        let calls = self.nodes.iter().map(|(id, _)| call(id)).collect();
        let looks = key.map(|key| {
            let op = Op::Inspect { key: key.clone(), unproved: false };
            let looks = self.nodes.iter().map(|(id, _)| self.nodes.call(id, op.clone(), limit));
            (key, looks.collect())
        });
        let state = Rc::clone(self);
        async move {
            let answers = each(calls).await;
            let nodes = state.nodes.iter().zip(answers);
            let mut reports: Vec<_> = nodes
                .map(|((id, node), answer)| {
                    let is_opened = answer.as_ref().is_ok_and(|answer| answer.is_opened);
                    let judged = answer.and_then(|answer| {
                        answer.ineligible.map_or_else(|| state.nodes.judge(id, max_ttl), Err)
                    });
                    let node = node.name().to_string();
                    NodeReport { node, is_opened, trouble: judged.err() }
                })
                .collect();
            if let Some((key, looks)) = looks {
                let looks = state.nodes.iter().zip(each(looks).await);
                for (report, ((id, _), look)) in reports.iter_mut().zip(looks) {
                    let trouble = look.ok().and_then(|look| state.key_trouble(id, &key, look));
                    report.trouble = report.trouble.take().or(trouble);
                }
            }
            reports
        }
    }

    /// Why a node that was looked at cannot vote on the lock, by what stands at the lock's keys.
    fn key_trouble(&self, id: NodeId, key: &LockKey, look: Reply) -> Option<NodeError> {
        let Reply::Inspected(Inspection { fault, last_number, wall_us, .. }) = look else {
            return None;
        };
        match fault {
            Some(fault) => Some(NodeError::of_fault(self.nodes.get(id).name(), fault, key)),
            None if self.nodes.sole().is_some() => None,
            None => self.nodes.number_trouble(id, last_number, wall_us),
        }
    }
}

const fn released(release: Release) -> Reply {
    Reply::Released { release, next: Next::Nobody }
}

/// The holder of the lock on a majority of all nodes. There is none if no majority is possible: a
/// client that has the lock on some of them is about to release it, or to lose it.
fn inspected(quorum: Quorum, answers: Answers) -> Result<Inspection, Option<NodeErrors>> {
    let (mut inspections, mut failed) = (Vec::<Inspection>::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(Reply::Inspected(inspection)) => inspections.push(inspection),
            Ok(_) => {}
            Err(error) => failed.push(error),
        }
    }
    let silent = quorum.nodes() - inspections.len();
    let holders = inspections.iter().filter_map(|one| one.held.as_ref());
    let count = |holder: &Holder| holders.clone().filter(|held| held.holder == *holder).count();
    let most = holders.clone().max_by_key(|held| count(&held.holder));
    let count = most.map_or(0, |held| count(&held.holder));
    let of_majority = most.filter(|_| count >= quorum.needed()).map(|held| {
        // So long a majority has the key at least.
        let mut held: Vec<_> =
            holders.clone().filter(|one| one.holder == held.holder).cloned().collect();
        held.sort_by_key(|held| (held.ttl_left.get().is_none(), held.ttl_left.get()));
        held.swap_remove(held.len() - quorum.needed())
    });
    if of_majority.is_none() && count + silent >= quorum.needed() {
        return Err(NodeErrors::of(failed));
    }
    let spare = quorum.nodes() - quorum.needed();
    let fault = inspections.iter().filter_map(|one| one.fault).nth(spare);
    let is_primary = |one: &&Inspection| one.source == Source::Primary;
    let source =
        inspections.iter().find(|one| !is_primary(one)).map_or(Source::Primary, |one| one.source);
    let holder = of_majority.as_ref().map(|held| &held.holder);
    let is_of = |one: &Inspection| one.held.as_ref().map(|held| &held.holder) == holder;
    let of_holder: Vec<_> =
        inspections.iter().filter(|one| holder.is_none() || is_of(one)).collect();
    let is_near =
        |number: &FencingToken, one: &Inspection| !is_far_ahead(*number, None, one.wall_us);
    let mut numbers: Vec<_> = of_holder
        .iter()
        .map(|one| one.last_number.filter(|number| holder.is_some() || is_near(number, one)))
        .collect();
    numbers.sort_unstable();
    // A majority knows the holder's. A larger one was granted on a node that it missed.
    let rank = if holder.is_some() { quorum.needed() } else { 1 };
    let last_number =
        numbers.len().checked_sub(rank).and_then(|index| numbers.get(index).copied().flatten());
    // The clock in the middle: one wrong clock of three makes no age wrong.
    let mut clocks: Vec<_> = of_holder.iter().map(|one| one.wall_us).collect();
    clocks.sort_unstable();
    let wall_us = clocks.get(clocks.len() / 2).copied().unwrap_or_default();
    let (waiters, waiting) = (Vec::new(), None);
    let held = of_majority;
    Ok(Inspection { held, last_number, fault, waiters, waiting, wall_us, source })
}

/// Whose keys were deleted on most of the nodes, when a majority has answered; or what was left
/// alone, where that was on a majority, or all that was found.
fn forced(quorum: Quorum, answers: Answers) -> Result<Release, Option<NodeErrors>> {
    let (mut holders, mut answered, mut failed) = (Vec::new(), 0, Vec::new());
    let mut left = Vec::new();
    for answer in answers {
        match answer {
            Ok(Reply::Released { release, .. }) => {
                answered += 1;
                match release {
                    Release::Released(holder) => holders.push(holder),
                    Release::Other(holder) => left.push(holder),
                    Release::Free | Release::AlreadyReleased => {}
                }
            }
            Ok(_) => {}
            Err(error) => failed.push(error),
        }
    }
    if answered < quorum.needed() {
        return Err(NodeErrors::of(failed));
    }
    if left.len() >= quorum.needed() || holders.is_empty() {
        let left = left.into_iter().next();
        return Ok(left.map_or(Release::Free, Release::Other));
    }
    let count = |holder: &Holder| holders.iter().filter(|other| *other == holder).count();
    let most = holders.iter().max_by_key(|holder| count(holder)).cloned();
    Ok(most.map_or(Release::Free, Release::Released))
}

/// What the release of a token comes to.
fn given_back(quorum: Quorum, answers: Answers) -> Result<Release, Option<NodeErrors>> {
    let mut majority = MajorityCount::new(quorum);
    let mut ours = None;
    for answer in answers {
        match answer {
            Ok(Reply::Released { release, .. }) => {
                majority.add(KeyState::of_release(Ok(&release)));
                if let Release::Released(holder) = release {
                    ours = Some(holder);
                }
            }
            Ok(_) => {}
            Err(error) => majority.add(KeyState::of_release(Err(&error))),
        }
    }
    match (majority.result(), ours) {
        (Some(QuorumResult::Ours), Some(holder)) => Ok(Release::Released(holder)),
        (Some(QuorumResult::Gone), _) => Ok(Release::Free),
        (Some(QuorumResult::Other(holder)), _) => Ok(Release::Other(holder)),
        (Some(QuorumResult::GivenUp), _) => Ok(Release::AlreadyReleased),
        (Some(QuorumResult::Indeterminate(errors)), _) => Err(Some(errors)),
        _ => Err(None),
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Held, TtlLeft};

    use super::*;

    fn quorum() -> Quorum {
        Quorum::new(3).unwrap()
    }

    fn seen(holder: Option<&[u8]>) -> Result<Reply, NodeError> {
        let holder = holder.map(Holder::from_value);
        let held = holder.map(|holder| Held { holder, ttl_left: TtlLeft::Never });
        let inspection = Inspection {
            held,
            last_number: None,
            fault: None,
            waiters: Vec::new(),
            waiting: Some(0),
            wall_us: 0,
            source: Source::Primary,
        };
        Ok(Reply::Inspected(inspection))
    }

    /// Of three nodes.
    #[test]
    fn two_equal_replies_are_enough_and_one_is_not() {
        let certain = |answers: &[Option<&[u8]>]| {
            inspected(quorum(), answers.iter().copied().map(seen).collect()).is_ok()
        };
        assert!(!certain(&[None]) && !certain(&[Some(b"x")]));
        assert!(certain(&[None, None]) && certain(&[Some(b"x"), Some(b"x")]));
        assert!(!certain(&[None, Some(b"x")]) && !certain(&[Some(b"y"), Some(b"x")]));
        assert!(certain(&[None, Some(b"x"), Some(b"y")]));
        let given = |releases: &[Release]| {
            let answers = releases.iter().cloned().map(|release| Ok(released(release)));
            given_back(quorum(), answers.collect()).is_ok()
        };
        let ours = Release::Released(Holder::from_value(b"x"));
        assert!(!given(std::slice::from_ref(&ours)) && !given(&[Release::Free]));
        assert!(given(&[ours.clone(), ours.clone()]) && given(&[Release::Free, Release::Free]));
        assert!(!given(&[ours, Release::Free]));
    }
}
