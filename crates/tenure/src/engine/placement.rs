//! Where a lease has its key.

use tenure_core::{NodeId, RenewalAnswer, Timestamp};

use super::majority::KeyState;
use crate::{error::NodeError, node::Residue};

/// What is known of a lease on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeHold {
    /// What of its wait may still be on the node.
    pub(super) residue: Residue,
    /// When the node first reported to have the key, since which it has not reported to have
    /// lost it.
    since: Option<Timestamp>,
    /// A request for the key was not answered: it may still arrive.
    pub(super) is_unsure: bool,
    /// The lease was resumed without a word from the node, which may have had the key before.
    is_unanswered: bool,
    /// The lease was resumed: what the client before has asked may still arrive.
    is_taken_up: bool,
}

impl NodeHold {
    /// The node has the key, as it reported at `now`.
    pub(super) fn granted(residue: Residue, now: Timestamp) -> Self {
        Self { residue, since: Some(now), ..Self::default() }
    }

    /// The same, for a lease that was resumed.
    pub(super) fn taken_up(self) -> Self {
        Self { is_taken_up: true, ..self }
    }

    /// What of it a release has to reckon with.
    pub(super) fn residue_at_release(&self) -> Residue {
        let mut residue = self.residue.clone();
        residue.ambiguous |= self.is_taken_up;
        residue
    }

    /// Whether nothing of the lease is on the node, nor may yet arrive there.
    pub(super) fn is_vacant(&self) -> bool {
        self.since.is_none() && !self.is_unanswered && !self.may_still_be_set()
    }

    /// Whether a request for the key may still arrive.
    fn may_still_be_set(&self) -> bool {
        self.is_unsure || self.residue.ambiguous
    }

    /// The node was asked for the key, and has not answered.
    pub(super) fn asked() -> Self {
        Self { is_unsure: true, ..Self::default() }
    }

    /// The node did not answer when the lease was resumed.
    pub(super) fn unanswered() -> Self {
        Self { is_unanswered: true, is_taken_up: true, ..Self::default() }
    }
}

/// Where a lease has its key, and where it had it all the time.
///
/// A majority of the nodes must have had the key at every moment, or another may have held the lock
/// in between. So a node that got its key later counts from the next renewal on: then it had the
/// key already when the last renewal was sent that a majority answered.
///
/// One that was asked with the others, and whose grant came after it was settled but within its
/// time limit, counts as they do. That trusts the others to have kept their keys for that moment.
#[derive(Debug)]
pub(super) struct Placement {
    holds: Vec<NodeHold>,
    /// When it was acquired.
    began: Timestamp,
    /// A majority had the key at this moment.
    proved: Timestamp,
}

impl Placement {
    /// Those of a lease that a majority granted before `now`.
    pub(super) fn new(holds: Vec<NodeHold>, now: Timestamp) -> Self {
        Self { holds, began: now, proved: now }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &NodeHold> {
        self.holds.iter()
    }

    /// Takes a node's answer to a renewal at `now`, and says what it counts for.
    ///
    /// When the lease has run out, the key may have ended there unnoticed, and a request for it
    /// that was on its way may have created it again: then only a node counts to which none was.
    pub(super) fn renewed(
        &mut self,
        now: Timestamp,
        node: NodeId,
        answer: &Result<RenewalAnswer, NodeError>,
        has_run_out: bool,
    ) -> Option<KeyState> {
        let hold = self.holds.get_mut(node.0)?;
        Some(match answer {
            Ok(RenewalAnswer::Renewed) => {
                let since = *hold.since.get_or_insert(now);
                let may_be_new = has_run_out && hold.may_still_be_set();
                if since <= self.proved && !may_be_new { KeyState::Ours } else { KeyState::Gone }
            }
            Ok(RenewalAnswer::Other(holder)) => {
                hold.since = None;
                KeyState::Other(holder.clone())
            }
            Ok(RenewalAnswer::Gone) => {
                hold.since = None;
                KeyState::Gone
            }
            // It comes as an error.
            Ok(RenewalAnswer::Refused(_)) => return None,
            Err(error) => KeyState::Indeterminate(error.clone()),
        })
    }

    /// A majority had the key when a renewal that was sent then was answered.
    pub(super) fn prove(&mut self, sent: Timestamp) {
        self.proved = self.proved.max(sent);
    }

    /// The node is asked for the key once more.
    pub(super) fn ask(&mut self, node: NodeId) {
        if let Some(hold) = self.holds.get_mut(node.0) {
            hold.is_unsure = true;
        }
    }

    /// The node has answered that: it has the key now, or another has it.
    pub(super) fn reported(&mut self, now: Timestamp, node: NodeId, has_key: bool) {
        if let Some(hold) = self.holds.get_mut(node.0) {
            hold.is_unsure = false;
            if has_key {
                hold.since.get_or_insert(now);
            }
        }
    }

    /// The node's vote came after the others had decided, and it granted.
    pub(super) fn voted(&mut self, node: NodeId) {
        self.reported(self.began, node, true);
    }

    /// The node did not answer that: the request may be carried out at any time.
    pub(super) fn indeterminate(&mut self, node: NodeId) {
        if let Some(hold) = self.holds.get_mut(node.0) {
            hold.residue.ambiguous = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::Holder;

    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    fn is_ours(placement: &mut Placement, now: u64, node: usize, has_run_out: bool) -> bool {
        let answer = Ok(RenewalAnswer::Renewed);
        matches!(
            placement.renewed(at(now), NodeId(node), &answer, has_run_out),
            Some(KeyState::Ours)
        )
    }

    fn renew(placement: &mut Placement, now: u64, node: usize) -> bool {
        is_ours(placement, now, node, false)
    }

    /// The second node has its key since after the first renewal was sent.
    #[test]
    fn a_key_with_a_gap_does_not_count() {
        let granted = NodeHold::granted(Residue::default(), at(1));
        let mut placement = Placement::new(vec![granted, NodeHold::asked()], at(1));
        assert!(renew(&mut placement, 10, 0));
        assert!(!renew(&mut placement, 11, 1), "seen for the first time");
        assert!(!renew(&mut placement, 12, 1), "no renewal was proved since");
        placement.prove(at(10));
        assert!(!renew(&mut placement, 13, 1), "it was sent before");
        placement.prove(at(11));
        assert!(renew(&mut placement, 14, 1));
        placement.prove(at(5));
        assert!(renew(&mut placement, 15, 1), "an answer that comes late proves no less");
        // What was lost and granted again is new.
        let other = RenewalAnswer::Other(Holder::from_value(b"x"));
        for (lost, now) in [(RenewalAnswer::Gone, 20), (other, 30)] {
            let state = placement.renewed(at(now), NodeId(1), &Ok(lost), false);
            assert!(matches!(state, Some(KeyState::Gone | KeyState::Other(_))));
            placement.reported(at(now + 1), NodeId(1), true);
            assert!(!renew(&mut placement, now + 2, 1));
            assert!(renew(&mut placement, now + 2, 0));
            placement.prove(at(now + 2));
            assert!(renew(&mut placement, now + 3, 1));
        }
    }

    /// Only a node is left alone at a release that has nothing of the lease and never will.
    #[test]
    fn a_release_covers_everything_that_may_be_on_the_node() {
        let mut indeterminate = Placement::new(vec![NodeHold::default()], at(1));
        indeterminate.indeterminate(NodeId(0));
        let indeterminate = indeterminate.holds.remove(0);
        let granted = NodeHold::granted(Residue::default(), at(1));
        for (hold, is_vacant, is_ambiguous) in [
            (NodeHold::default(), true, false),
            (granted.clone(), false, false),
            (NodeHold::asked(), false, false),
            (indeterminate, false, true),
            (granted.taken_up(), false, true),
            (NodeHold::unanswered(), false, true),
        ] {
            let found = (hold.is_vacant(), hold.residue_at_release().ambiguous);
            assert_eq!(found, (is_vacant, is_ambiguous), "{hold:?}");
        }
    }

    /// The second was asked once more than it has answered, the third has its key since after the
    /// last proof.
    #[test]
    fn after_expiry_only_a_key_that_cannot_be_new_counts() {
        let granted = || NodeHold::granted(Residue::default(), at(1));
        let mut placement = Placement::new(vec![granted(), granted(), NodeHold::default()], at(1));
        placement.ask(NodeId(1));
        placement.indeterminate(NodeId(1));
        placement.reported(at(5), NodeId(1), true);
        placement.reported(at(9), NodeId(2), true);
        assert!(renew(&mut placement, 10, 1), "while it is held, others prove that it was");
        assert!(is_ours(&mut placement, 20, 0, true));
        assert!(!is_ours(&mut placement, 20, 1, true), "the request may have come after the end");
        assert!(!is_ours(&mut placement, 20, 2, true), "nobody knows who had the key before");
        // The end of one moment proves nothing about the next.
        placement.prove(at(20));
        assert!(is_ours(&mut placement, 21, 2, true));
        assert!(!is_ours(&mut placement, 21, 1, true));
    }
}
