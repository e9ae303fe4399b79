//! One op on its way to a server.

use std::{cell::Cell, rc::Rc};

use tenure_core::{Op, Reply};
use tokio::sync::oneshot;

use crate::{
    error::NodeError,
    node::{QueueWaiter, RetryContext},
};

/// One op on its way.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) op: Op,
    pub(super) number: u64,
    /// The waiter, beside the caller: it gets its place when the connection is known.
    pub(super) waiter: Option<(Rc<QueueWaiter>, RetryContext)>,
    pub(super) answer: oneshot::Sender<Result<Reply, NodeError>>,
    pub(super) sent: Rc<Cell<bool>>,
}

impl Request {
    /// Whether nobody waits for it and nothing is lost when it is never sent.
    pub(super) fn is_pointless(&self) -> bool {
        self.answer.is_closed() && !matches!(self.op, Op::Release { .. })
    }

    /// Whether it releases what the other asks for.
    pub(super) fn undoes(&self, other: &Self) -> bool {
        let Op::Release { token: released, .. } = &self.op else { return false };
        match other.op.unchecked() {
            Op::Acquire { token, .. }
            | Op::Steal { token, .. }
            | Op::ForceRelease { token, .. } => token == released,
            _ => false,
        }
    }

    pub(super) fn answer(self, result: Result<Reply, NodeError>) {
        // A caller that has stopped waiting is no error.
        _ = self.answer.send(result);
    }
}
