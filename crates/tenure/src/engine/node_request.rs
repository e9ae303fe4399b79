//! What is known of an attempt's request to one of several nodes.

use tenure_core::{FencingToken, NodeId};
use tokio::sync::mpsc;

use super::nodes::{Checked, CheckedCall};
use crate::{error::NodeError, task};

/// What is known of the request to one node.
#[derive(Debug, Default)]
pub(super) struct NodeRequest {
    pub(super) answered: bool,
    /// Why its answer is unknown.
    pub(super) trouble: Option<NodeError>,
    /// It was known to be out of reach when it was asked.
    pub(super) dead: Option<NodeError>,
    /// Why its grant is no vote, to the end of the attempt.
    pub(super) ineligible: Option<NodeError>,
    /// What it granted nevertheless.
    pub(super) granted_while_ineligible: Option<FencingToken>,
}

impl NodeRequest {
    /// A request to the node failed. That an earlier one may still arrive is not forgotten for it.
    pub(super) fn failed(&mut self, error: NodeError) {
        if !self.trouble.as_ref().is_some_and(NodeError::may_be_applied) {
            self.trouble = Some(error);
        }
    }
}

pub(super) enum NodeResponse {
    Vote(Result<Checked, NodeError>),
    Confirmed(Result<Checked, NodeError>),
}

/// Delivers a reply when it arrives. The request is not taken back when its receiver is dropped.
pub(super) fn forward(
    responses: &mpsc::UnboundedSender<(NodeId, NodeResponse)>,
    id: NodeId,
    wrap: fn(Result<Checked, NodeError>) -> NodeResponse,
    call: CheckedCall,
) {
    let responses = responses.clone();
    // The attempt may be over.
    task::spawn(async move { _ = responses.send((id, wrap(call.await))) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NodeErrorKind;

    #[test]
    fn a_request_that_may_still_arrive_is_remembered() {
        let error = |kind| NodeError::new(&"n".into(), kind);
        let mut asked = NodeRequest::default();
        let kind = |asked: &NodeRequest| asked.trouble.as_ref().map(NodeError::kind);
        asked.failed(error(NodeErrorKind::Busy));
        assert_eq!(kind(&asked), Some(NodeErrorKind::Busy));
        asked.failed(error(NodeErrorKind::TimedOut).maybe_applied());
        assert_eq!(kind(&asked), Some(NodeErrorKind::TimedOut));
        asked.failed(error(NodeErrorKind::Unreachable));
        assert_eq!(kind(&asked), Some(NodeErrorKind::TimedOut), "nothing was sent the second time");
    }
}
