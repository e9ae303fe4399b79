//! The fingerprint of a state: equal for states that differ only in which node is which.

use std::hash::{Hash, Hasher};

use super::state::{
    AttemptPhase, Confirm, LockRequest, ModelAttempt, NodeReply, NodeRow, NodeTraffic, Number,
    Quarantine, QuorumState,
};
use crate::print::{Fingerprint, digest};

/// What there is of each node is put in order, and all of it taken apart in full, so that a new
/// field cannot be left out: two different states would be one.
pub(crate) fn print(state: &QuorumState) -> Fingerprint {
    let QuorumState { nodes, attempts, losses } = state;
    let mut columns = [0, 1, 2].map(|index| (column(&nodes[index], attempts, index), index));
    columns.sort();
    let mut bytes = vec![*losses];
    for (column, index) in &columns {
        bytes.extend(column);
        // Which nodes were read, by their new places.
        let read = nodes[*index].quarantine.as_ref().map_or(0, |quarantine| quarantine.read);
        let places = columns.iter().map(|(_, index)| read >> index & 1);
        bytes.push(places.fold(0, |bits, bit| bits << 1 | bit));
    }
    for attempt in attempts {
        let ModelAttempt { phase, machine, lines: _, number, earlier, leaves } = attempt;
        bytes.extend([phase_of(*phase), *earlier, number.unwrap_or(0), *leaves]);
        if let Some(machine) = machine {
            bytes.extend(hash(&machine.progress()).to_le_bytes());
            bytes.push(machine.seen().map_or(0, super::state::number));
        }
    }
    digest(&bytes)
}

fn column(node: &NodeRow, attempts: &[ModelAttempt], index: usize) -> Vec<u8> {
    let NodeRow { owner, last, quarantine } = node;
    let mut bytes = Vec::with_capacity(64);
    bytes.extend([owner.unwrap_or(255), *last, u8::from(quarantine.is_some())]);
    if let Some(Quarantine { delay, read: _, largest }) = quarantine {
        bytes.extend([*delay, *largest]);
    }
    for attempt in attempts.iter().filter(|attempt| attempt.phase != AttemptPhase::Idle) {
        let NodeTraffic { ask, confirms, tainted } = &attempt.lines[index];
        bytes.extend(ask_of(*ask));
        let mut confirms = confirms.map(confirm_of);
        confirms.sort_unstable();
        bytes.extend(confirms.into_iter().flatten());
        bytes.push(u8::from(*tainted));
        if let Some(machine) = &attempt.machine {
            bytes.extend(hash(&machine.node_states()[index]).to_le_bytes());
        }
    }
    bytes
}

fn ask_of(ask: LockRequest) -> [u8; 3] {
    match ask {
        LockRequest::None => [0, 0, 0],
        LockRequest::Sent => [1, 0, 0],
        LockRequest::Late => [2, 0, 0],
        LockRequest::Replied(reply) => [3, reply_of(reply).0, reply_of(reply).1],
        LockRequest::Done(number) => [4, number, 0],
    }
}

fn confirm_of(confirm: Confirm) -> [u8; 3] {
    match confirm {
        Confirm::None => [0, 0, 0],
        Confirm::Sent(number) => [1, number, 0],
        Confirm::Late(number) => [2, number, 0],
        Confirm::Replied(reply) => [3, reply_of(reply).0, reply_of(reply).1],
    }
}

const fn reply_of(reply: NodeReply) -> (u8, Number) {
    match reply {
        NodeReply::Ours(number) => (0, number),
        NodeReply::Gone => (1, 0),
        NodeReply::Other => (2, 0),
        NodeReply::Nothing => (3, 0),
    }
}

const fn phase_of(phase: AttemptPhase) -> u8 {
    match phase {
        AttemptPhase::Idle => 0,
        AttemptPhase::Asking => 1,
        AttemptPhase::Holding => 2,
        AttemptPhase::Over => 3,
    }
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = Bytes(Vec::with_capacity(64));
    what.hash(&mut hasher);
    hasher.finish()
}

/// All that is to be hashed, and then at once.
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn finish(&self) -> u64 {
        u64::try_from(digest(&self.0) >> 64).unwrap_or(0)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}
