//! What several nodes said.

use std::{error::Error, fmt};

use super::NodeError;

/// Why servers could not do their part: one error for each that could not, and at least one.
///
/// Of a single one it is that error, word for word. Of several the text has all of them, each with
/// what is behind it, and nothing is left for [`source`](Error::source).
#[derive(Clone, Debug)]
pub struct NodeErrors {
    first: NodeError,
    others: Vec<NodeError>,
}

impl NodeErrors {
    /// All of these; `None` when there are none.
    pub(crate) fn of(errors: impl IntoIterator<Item = NodeError>) -> Option<Self> {
        let mut errors = errors.into_iter();
        Some(Self { first: errors.next()?, others: errors.collect() })
    }

    /// The first that was told.
    #[must_use]
    pub const fn first(&self) -> &NodeError {
        &self.first
    }

    /// All of them, in the order in which they were told.
    pub fn iter(&self) -> impl Iterator<Item = &NodeError> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<NodeError> for NodeErrors {
    fn from(first: NodeError) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl fmt::Display for NodeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.others.is_empty() {
            return Ok(());
        }
        causes(f, &self.first)?;
        for error in &self.others {
            write!(f, "; {error}")?;
            causes(f, error)?;
        }
        Ok(())
    }
}

/// What is behind an error, cause by cause.
fn causes(f: &mut fmt::Formatter<'_>, error: &NodeError) -> fmt::Result {
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(f, ": {error}")?;
        cause = error.source();
    }
    Ok(())
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
    fn one_error_is_as_it_is() {
        let errors = NodeErrors::of([error("a")]).unwrap();
        assert_eq!(errors.to_string(), "the server a cannot be reached");
        assert_eq!(errors.source().unwrap().to_string(), "no way to a");
    }

    #[test]
    fn of_several_each_is_told_with_what_is_behind_it() {
        let errors = NodeErrors::of(["a", "b"].map(error)).unwrap();
        let text = "the server a cannot be reached: no way to a; \
                    the server b cannot be reached: no way to b";
        assert_eq!(errors.to_string(), text);
        assert!(errors.source().is_none());
        assert_eq!(errors.iter().map(NodeError::node).collect::<Vec<_>>(), ["a", "b"]);
        assert!(NodeErrors::of([]).is_none());
    }
}
