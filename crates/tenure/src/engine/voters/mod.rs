//! Which of several nodes may vote.
//!
//! A majority excludes others only if its nodes remember whom they granted the lock, for as long
//! as it is held. A server that came back without its keys does not, nor does one whose wall clock
//! was stepped, since TTLs run on it; and two addresses of one server remember once what counts
//! twice. So a node is *ineligible* until every lease that it may have forgotten is over: it is
//! asked as the others are, what it says of keys is true, but its grant is no vote. A second
//! address of a server counts for nothing at all.
//!
//! That a server may have forgotten says its own marker, with each answer: a client that has never
//! met the server sees it, too. Clock steps and second addresses are found by observation; what is
//! known of them holds for all locks. How long a node is ineligible depends on the longest TTL that
//! anybody takes the lock with.

mod clock;
mod record;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, rc::Rc};

use tenure_core::{Eligibility, MarkerCheck, MarkerMode, NodeId, Reply, Timestamp, Ttl};

use self::record::VoterRecord;
use crate::{clock as local, error::NodeError, node::Node};

/// What is known of each node. An only one has nobody to outvote it, and nobody whom it could
/// deceive: it is never ineligible.
#[derive(Debug)]
pub(super) struct Voters {
    records: RefCell<Vec<VoterRecord>>,
    is_sole: bool,
}

impl Voters {
    /// Of these nodes, each with its database, and whether it keeps its keys over a restart.
    pub(super) fn new(nodes: impl Iterator<Item = (Rc<dyn Node>, u32, bool)>) -> Self {
        let record = |(node, database, is_durable)| VoterRecord::new(node, database, is_durable);
        let records: Vec<_> = nodes.map(record).collect();
        Self { is_sole: records.len() == 1, records: RefCell::new(records) }
    }

    /// Takes what the nodes' connections have learned, and what a node has just answered to a
    /// request of that time. An error when its answers count for nothing.
    pub(super) fn answered(
        &self,
        id: NodeId,
        sent: Timestamp,
        answer: &Result<Reply, NodeError>,
    ) -> Result<(), NodeError> {
        if self.is_sole {
            return Ok(());
        }
        let mut records = self.records.borrow_mut();
        meet(&mut records);
        let Some(record) = records.get_mut(id.0) else { return Ok(()) };
        if let Ok(
            Reply::Voted { wall_us, .. }
            | Reply::Confirmed { wall_us, .. }
            | Reply::Clock { wall_us },
        ) = answer.as_ref().map(Reply::unchecked)
        {
            record.clock.observe(sent, local::now(), *wall_us);
        }
        record.is_counted()
    }

    /// Whether anything that the node says counts.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(super) fn is_counted(&self, id: NodeId) -> Result<(), NodeError> {
        self.records.borrow().get(id.0).map_or(Ok(()), VoterRecord::is_counted)
    }

    /// Whether a grant of this node is a vote, where nobody has a longer TTL.
    ///
    /// # Errors
    ///
    /// Why not, and until when.
    pub(super) fn judge(&self, id: NodeId, longest: Ttl) -> Result<(), NodeError> {
        if self.is_sole {
            return Ok(());
        }
        let mut records = self.records.borrow_mut();
        records.get_mut(id.0).map_or(Ok(()), |record| record.judge(local::now(), longest))
    }

    /// What a request brings to a node's marker, where nobody has a longer TTL.
    pub(super) fn check(&self, id: NodeId, longest: Ttl, mode: MarkerMode) -> Option<MarkerCheck> {
        self.records.borrow().get(id.0).map(|record| record.check(longest, mode))
    }

    /// Takes what a node's marker says, where nobody has a longer TTL.
    ///
    /// # Errors
    ///
    /// Why what the node grants and keeps is no vote, and until when.
    pub(super) fn marked(
        &self,
        id: NodeId,
        longest: Ttl,
        eligibility: Eligibility,
    ) -> Result<(), NodeError> {
        let mut records = self.records.borrow_mut();
        records.get_mut(id.0).map_or(Ok(()), |record| record.marked(longest, eligibility))
    }

    /// How far the nodes' wall clocks are ahead of the clock of leases, in microseconds: the median
    /// of what they reported, so that one wrong clock of three changes nothing.
    pub(super) fn ahead_us(&self) -> Option<i64> {
        let records = self.records.borrow();
        let mut ahead: Vec<_> =
            records.iter().filter_map(|record| record.clock.ahead_us()).collect();
        ahead.sort_unstable();
        ahead.get(ahead.len().checked_sub(1)? / 2).copied()
    }
}

/// Looks whom the connections have met since the last time, in the order of the addresses.
fn meet(records: &mut [VoterRecord]) {
    records.iter_mut().for_each(VoterRecord::check_role);
    for index in 0..records.len() {
        if !records.get(index).is_some_and(VoterRecord::has_changed) {
            continue;
        }
        let others = records.iter().enumerate().filter(|(other, _)| *other != index);
        let others: Vec<_> = others.filter_map(|(_, other)| other.server()).collect();
        if let Some(record) = records.get_mut(index) {
            record.meet(&others);
        }
    }
}
