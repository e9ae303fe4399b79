//! What is reported about each server.

use crate::error::NodeError;

/// Whether one server of a client would vote on a lock now. Made by
/// [`Lock::nodes`](crate::Lock::nodes).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeReport {
    /// The server, by its address without user and password.
    pub node: String,
    /// Whether this call opened it: see [`Client::open_new`](crate::Client::open_new).
    pub is_opened: bool,
    /// Why it would not vote, and for how long; `None` if it would.
    pub trouble: Option<NodeError>,
}
