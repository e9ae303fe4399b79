//! What several nodes said.

use std::{error::Error, fmt};

use tenure_core::LockKey;

use super::NodeError;

/// The failures of servers: one error for each that failed, and at least one.
///
/// The text of a single failure is that error's. The text of several lists all of them with their
/// causes, so [`source`](Error::source) returns nothing.
#[derive(Clone, Debug)]
pub struct NodeErrors {
    /// The lock's key, once the errors have left the engine.
    key: Option<LockKey>,
    first: NodeError,
    others: Vec<NodeError>,
}

impl NodeErrors {
    /// All of these; `None` when there are none.
    pub(crate) fn of(errors: impl IntoIterator<Item = NodeError>) -> Option<Self> {
        let mut errors = errors.into_iter();
        Some(Self { key: None, first: errors.next()?, others: errors.collect() })
    }

    /// Names the lock.
    pub(crate) fn of_lock(self, key: &LockKey) -> Self {
        Self { key: Some(key.clone()), ..self }
    }

    /// The lock's key.
    #[must_use]
    pub const fn key(&self) -> Option<&LockKey> {
        self.key.as_ref()
    }

    /// Each of them with what is behind it.
    pub(super) fn in_one_line(&self) -> String {
        let all: Vec<_> = self.iter().map(|error| error.with_causes()).collect();
        all.join("; ")
    }

    /// The first failure that was reported.
    #[must_use]
    pub const fn first(&self) -> &NodeError {
        &self.first
    }

    /// All failures, in the order in which they were reported.
    pub fn iter(&self) -> impl Iterator<Item = &NodeError> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<NodeError> for NodeErrors {
    fn from(first: NodeError) -> Self {
        Self { key: None, first, others: Vec::new() }
    }
}

impl fmt::Display for NodeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.others.is_empty() {
            true => self.first.fmt(f),
            false => f.write_str(&self.in_one_line()),
        }
    }
}

impl Error for NodeErrors {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.others.is_empty().then(|| self.first.source()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NodeErrorKind;

    fn error(node: &str) -> NodeError {
        let error = NodeError::new(&node.into(), NodeErrorKind::Unreachable);
        error.with_source(format!("no way to {node}"))
    }

    #[test]
    fn a_single_error_is_returned_unchanged() {
        let errors = NodeErrors::of([error("a")]).unwrap();
        assert_eq!(errors.to_string(), "the server a cannot be reached");
        assert_eq!(errors.source().unwrap().to_string(), "no way to a");
    }

    #[test]
    fn several_errors_are_each_shown_with_their_causes() {
        let errors = NodeErrors::of(["a", "b"].map(error)).unwrap();
        let text = "the server a cannot be reached: no way to a; \
                    the server b cannot be reached: no way to b";
        assert_eq!(errors.to_string(), text);
        assert!(errors.source().is_none());
        assert_eq!(errors.iter().map(NodeError::node).collect::<Vec<_>>(), ["a", "b"]);
        assert!(NodeErrors::of([]).is_none());
    }
}
