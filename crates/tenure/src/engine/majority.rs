//! What the nodes say of one lease, and what a majority of all of them makes of it.

use tenure_core::{Holder, Quorum, Release};

use crate::error::{NodeError, NodeErrors};

/// What one node says of a lease.
#[derive(Clone, Debug)]
pub(super) enum KeyState {
    /// Its key is there; or it was, and is released.
    Ours,
    /// Its key is not there; or it was not all the time.
    Gone,
    /// Another holds the lock there.
    Other(Holder),
    /// An earlier release gave its key up there.
    GivenUp,
    /// The node's answer is unknown, for this reason.
    Indeterminate(NodeError),
}

impl KeyState {
    /// What the answer to a release says.
    pub(super) fn of_release(answer: Result<&Release, &NodeError>) -> Self {
        match answer {
            Ok(Release::Released(_)) => Self::Ours,
            Ok(Release::Free) => Self::Gone,
            Ok(Release::Other(holder)) => Self::Other(holder.clone()),
            Ok(Release::AlreadyReleased) => Self::GivenUp,
            Err(error) => Self::Indeterminate(error.clone()),
        }
    }
}

/// What it comes to.
#[derive(Clone, Debug)]
pub(super) enum QuorumResult {
    /// A majority of all nodes has the key.
    Ours,
    /// So many do not that no majority can, and most of those have no key.
    Gone,
    /// So many do not that no majority can, and another holds the lock on most of those.
    Other(Holder),
    /// A majority of all nodes had the key until a release of its token, and most of those until an
    /// earlier one.
    GivenUp,
    /// None of these: too many answers are unknown, for these reasons.
    Indeterminate(NodeErrors),
}

/// Counts what the nodes say. The unreachable ones count among all: a majority of the others could
/// exist twice.
#[derive(Debug)]
pub(super) struct MajorityCount {
    quorum: Quorum,
    ours: usize,
    gone: usize,
    others: Vec<Holder>,
    given_up: usize,
    failed: Vec<NodeError>,
}

impl MajorityCount {
    pub(super) const fn new(quorum: Quorum) -> Self {
        Self { quorum, ours: 0, gone: 0, others: Vec::new(), given_up: 0, failed: Vec::new() }
    }

    /// Takes what one more node says.
    pub(super) fn add(&mut self, state: KeyState) {
        match state {
            KeyState::Ours => self.ours += 1,
            KeyState::Gone => self.gone += 1,
            KeyState::Other(holder) => self.others.push(holder),
            KeyState::GivenUp => self.given_up += 1,
            KeyState::Indeterminate(error) => self.failed.push(error),
        }
    }

    /// The result, as soon as no further answer can change it.
    pub(super) fn result(&self) -> Option<QuorumResult> {
        let (needed, nodes) = (self.quorum.needed(), self.quorum.nodes());
        let against = self.gone + self.others.len();
        let had_it = self.ours + self.given_up;
        let open = nodes.saturating_sub(had_it + against + self.failed.len());
        if self.ours >= needed {
            return Some(QuorumResult::Ours);
        }
        if had_it >= needed && self.ours + open < needed {
            return Some(QuorumResult::GivenUp);
        }
        if against > nodes - needed {
            let taken = self.others.first().filter(|_| self.others.len() >= self.gone);
            return Some(
                taken.map_or(QuorumResult::Gone, |holder| QuorumResult::Other(holder.clone())),
            );
        }
        let is_certain = had_it + open < needed && against + open <= nodes - needed;
        // When all have answered there is a reason: else one of the two above would be the case.
        let reasons = self.failed.iter().filter(|_| is_certain || open == 0);
        NodeErrors::of(reasons.cloned()).map(QuorumResult::Indeterminate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NodeErrorKind;

    fn result(nodes: usize, said: &str) -> &'static str {
        let mut majority = MajorityCount::new(Quorum::new(nodes).unwrap());
        for one in said.chars() {
            majority.add(match one {
                'y' => KeyState::Ours,
                'g' => KeyState::Gone,
                'o' => KeyState::Other(Holder::from_value(b"x")),
                'u' => KeyState::GivenUp,
                _ => KeyState::Indeterminate(NodeError::new(&"n".into(), NodeErrorKind::TimedOut)),
            });
        }
        match majority.result() {
            None => "open",
            Some(QuorumResult::Ours) => "ours",
            Some(QuorumResult::Gone) => "gone",
            Some(QuorumResult::Other(_)) => "other",
            Some(QuorumResult::GivenUp) => "given up",
            Some(QuorumResult::Indeterminate(_)) => "unknown",
        }
    }

    #[test]
    fn a_majority_of_all_decides_as_soon_as_it_is_certain() {
        for (nodes, said, means) in [
            (1, "y", "ours"),
            (1, "g", "gone"),
            (1, "o", "other"),
            (1, "e", "unknown"),
            (3, "y", "open"),
            (3, "yy", "ours"),
            (3, "gg", "gone"),
            (3, "go", "other"),
            (3, "ye", "open"),
            (3, "yeg", "unknown"),
            (3, "ee", "unknown"),
            (4, "yy", "open"),
            (4, "gg", "gone"),
            (4, "yyg", "open"),
            (4, "yyge", "unknown"),
            (4, "yyy", "ours"),
            (5, "yyegg", "unknown"),
            (5, "eyygg", "unknown"),
            (5, "ggg", "gone"),
            (1, "u", "given up"),
            (3, "uu", "given up"),
            (3, "uy", "open"),
            (3, "yu", "open"),
            (3, "uyy", "ours"),
            (3, "yug", "given up"),
            (3, "uye", "given up"),
            (3, "ug", "open"),
            (3, "ugg", "gone"),
            (3, "uge", "unknown"),
            (5, "uug", "open"),
            (5, "uuyee", "given up"),
        ] {
            assert_eq!(result(nodes, said), means, "{nodes} nodes: {said}");
        }
    }
}
