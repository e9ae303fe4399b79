//! Nodes and their majority.

use std::fmt;

/// The place of a node in its quorum, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "only an index")]
pub struct NodeId(pub usize);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many nodes vote; one server is a quorum of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    nodes: usize,
}

impl Quorum {
    /// One server.
    pub const ONE: Self = Self { nodes: 1 };

    /// A quorum of this many nodes, or `None` for none.
    #[must_use]
    pub const fn new(nodes: usize) -> Option<Self> {
        if nodes == 0 { None } else { Some(Self { nodes }) }
    }

    /// All nodes, reachable or not: a majority of the reachable ones could exist twice.
    #[must_use]
    pub const fn nodes(self) -> usize {
        self.nodes
    }

    /// Grants needed: more than half, so that two majorities share a node.
    #[must_use]
    pub const fn needed(self) -> usize {
        self.nodes / 2 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_majorities_always_share_a_node() {
        let needed: Vec<_> = (1..=6).map(|n| Quorum::new(n).unwrap().needed()).collect();
        assert_eq!(needed, [1, 2, 2, 3, 3, 4]);
        assert!((1..=6).all(|n| 2 * Quorum::new(n).unwrap().needed() > n));
        assert_eq!(Quorum::new(0), None);
    }
}
