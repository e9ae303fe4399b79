//! What is known of an attempt's request to one of several nodes.

use tenure_core::{FencingToken, NodeId};
use tokio::sync::mpsc;

use super::nodes::{Checked, CheckedCall};
use crate::{error::NodeError, task};

/// What is known of the request to one node.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) answered: bool,
    /// Why it did not tell.
    pub(super) trouble: Option<NodeError>,
    /// It was known to be out of reach when it was asked.
    pub(super) dead: Option<NodeError>,
    /// Why its grant is no vote, to the end of the attempt.
    pub(super) doubt: Option<NodeError>,
    /// What it granted all the same.
    pub(super) granted_in_doubt: Option<FencingToken>,
}

pub(super) enum Says {
    Vote(Result<Checked, NodeError>),
    Confirmed(Result<Checked, NodeError>),
}

/// Has an answer told when it is there. Its request is not taken back when nobody listens.
pub(super) fn hear(
    says: &mpsc::UnboundedSender<(NodeId, Says)>,
    id: NodeId,
    wrap: fn(Result<Checked, NodeError>) -> Says,
    call: CheckedCall,
) {
    let says = says.clone();
    // The attempt may be over.
    task::spawn(async move { _ = says.send((id, wrap(call.await))) });
}
