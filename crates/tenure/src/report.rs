//! What is told of each server.

use crate::error::NodeError;

/// Whether one server of a client would vote on a lock now. Made by
/// [`Lock::nodes`](crate::Lock::nodes).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// The server, by its address without user and password.
    pub node: String,
    /// Why it would not vote; `None` when it would.
    pub trouble: Option<NodeError>,
}
