//! How long a node may take to answer.

use std::{fmt, time::Duration};

use tenure_core::{NodeId, Ttl, Wait, Waiting, loss_margin};

use super::{
    command::{AcquireRequest, How},
    nodes::Nodes,
};
use crate::{
    clock,
    error::{NodeError, NodeErrorKind},
};

/// The time limit of one attempt, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) span: Duration,
    source: LimitSource,
}

#[derive(Clone, Copy, Debug)]
enum LimitSource {
    Setting,
    Ttl(Ttl),
    Wait,
}

impl Limit {
    /// The limit of the next attempt: as set, or as the TTL and the way to the nodes want it; and
    /// no longer than what is left of the wait.
    pub(super) fn of(nodes: &Nodes, request: &AcquireRequest, waiting: &Waiting) -> Self {
        let ttl = request.settings.ttl;
        let own = match request.node_limit {
            Some(span) => Self { span, source: LimitSource::Setting },
            None => Self { span: by_ttl(nodes, request), source: LimitSource::Ttl(ttl) },
        };
        match request.wait {
            Wait::Within(budget) if !budget.is_zero() => {
                let left = waiting.left(clock::now()).unwrap_or(own.span).max(LAST_TRY);
                if left < own.span { Self { span: left, source: LimitSource::Wait } } else { own }
            }
            _ => own,
        }
    }

    /// Adds this limit to the error of a node that did not keep it.
    pub(super) fn explain(self, error: NodeError) -> NodeError {
        let is_bare = std::error::Error::source(&error).is_none();
        if error.kind() == NodeErrorKind::TimedOut && is_bare {
            error.with_source(self.to_string())
        } else {
            error
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = self.span;
        match self.source {
            LimitSource::Setting => {
                write!(f, "no answer within {span:?}, the node limit that was set")
            }
            LimitSource::Ttl(ttl) => write!(
                f,
                "no answer within {span:?}, the limit for a TTL of {:?}; \
                 set a longer TTL or node limit",
                ttl.get()
            ),
            LimitSource::Wait => write!(f, "no answer within {span:?}, the rest of the wait"),
        }
    }
}

/// The TTL says how long is short; but a far server gets the round trips that it needs, as long as
/// its answer is of any use.
fn by_ttl(nodes: &Nodes, request: &AcquireRequest) -> Duration {
    let ttl = request.settings.ttl;
    let base = match (nodes.sole(), &request.how) {
        (None, How::Try | How::Steal { .. }) => vote_limit(ttl.get()),
        _ => command_limit(ttl.get()),
    };
    let least = request.min_validity.unwrap_or_default().max(loss_margin(ttl));
    let of_use = ttl.validity().saturating_sub(least);
    let trips = nodes.iter().map(|(_, node)| match node.round_trip() {
        Duration::ZERO => UNMEASURED,
        trip => trip * TRIPS,
    });
    let trips = trips.max().unwrap_or_default().min(of_use).min(MAX_LIMIT);
    base.max(trips)
}

/// How long a node may take for an op of a lease with this TTL.
pub(super) fn op_limit(nodes: &Nodes, node: NodeId, ttl: Ttl) -> Duration {
    let trips = nodes.get(node).round_trip() * TRIPS;
    command_limit(ttl.get()).max(trips.min(MAX_LIMIT))
}

/// Whether a renewal that takes so long could be answered before a lease with this TTL ends.
pub(super) fn can_be_renewed(ttl: Ttl, round_trip: Duration) -> bool {
    let sent = (ttl.validity() / 3).max(round_trip);
    sent + round_trip < ttl.validity().saturating_sub(loss_margin(ttl))
}

/// What a majority of the nodes needs to answer a renewal, as far as it was measured.
pub(super) fn round_trip(nodes: &Nodes) -> Duration {
    let mut trips: Vec<_> = nodes.iter().map(|(_, node)| node.round_trip()).collect();
    trips.sort_unstable();
    trips.get(nodes.quorum().needed() - 1).copied().unwrap_or_default()
}

/// The error of nodes that are too far away for a lease with this TTL.
pub(super) fn too_far(nodes: &Nodes, ttl: Ttl, round_trip: Duration) -> NodeError {
    let wanted = whole_ms(round_trip * TRIPS + MIN_LIMIT * 2);
    let words = format!(
        "a round trip takes {:?}, and a lease with a TTL of {:?} ends before a renewal is \
         answered; set a TTL of at least {wanted:?}",
        whole_ms(round_trip),
        ttl.get()
    );
    NodeError::new(nodes.first().name(), NodeErrorKind::TooFar).with_source(words)
}

fn whole_ms(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

/// How long one op on one node may take: a quarter of the TTL, from 50 ms to 2 s, so that a renewal
/// that is not answered leaves time for others.
fn command_limit(ttl: Duration) -> Duration {
    (ttl / 4).clamp(MIN_LIMIT, MAX_LIMIT)
}

/// How long one of several nodes may take for a vote: a twentieth of the TTL, from 50 ms to 1 s, so
/// that nodes that hang cost little of the validity.
fn vote_limit(ttl: Duration) -> Duration {
    (ttl / 20).clamp(MIN_LIMIT, MAX_VOTE)
}

const MAX_VOTE: Duration = Duration::from_secs(1);

/// Below this a busy machine would time out on a healthy server.
pub(super) const MIN_LIMIT: Duration = Duration::from_millis(50);

/// Longer than any server that is well takes for a script.
pub(super) const MAX_LIMIT: Duration = Duration::from_secs(2);

/// A round trip varies: TCP allows for its mean and four deviations (RFC 6298).
const TRIPS: u32 = 4;

/// A node that was never asked: two round trips to another continent, to connect and to ask.
const UNMEASURED: Duration = Duration::from_millis(500);

/// What the last try of a wait may take: a healthy server on a busy machine answers in it, and a
/// silent one does not keep the caller much longer than it asked.
const LAST_TRY: Duration = Duration::from_millis(250);
