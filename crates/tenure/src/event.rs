//! What is told to logs and metrics, in one place.
//!
//! Metrics are labelled by the class that the user names for a lock, never by its key: keys are
//! without number. The names are part of the public interface; README lists them.

use std::time::Duration;

use tenure_core::{FencingToken, Holder, LockKey, LossReason};

use crate::error::NodeError;

/// A class of locks, for metrics: `"default"` unless the user names one.
pub(crate) type Class = std::sync::Arc<str>;

macro_rules! count {
    ($name:literal, $class:expr) => {
        #[cfg(feature = "metrics")]
        metrics::counter!($name, "class" => $class.to_string()).increment(1);
    };
}

macro_rules! measure {
    ($name:literal, $class:expr, $span:expr) => {
        #[cfg(feature = "metrics")]
        metrics::histogram!($name, "class" => $class.to_string()).record($span.as_secs_f64());
    };
}

/// The span of a call that acquires, on the caller's side.
pub(crate) fn acquisition(key: &LockKey, class: &Class) -> tracing::Span {
    tracing::debug_span!("acquire", %key, %class)
}

/// The span of the work that is run under a lock.
pub(crate) fn work(key: &LockKey, number: FencingToken) -> tracing::Span {
    tracing::debug_span!("work", %key, fencing_token = number.get())
}

pub(crate) fn acquired(key: &LockKey, class: &Class, waited: Duration) {
    tracing::debug!(%key, %class, ?waited, "acquired");
    count!("tenure_acquired_total", class);
    measure!("tenure_wait_seconds", class, waited);
}

pub(crate) fn contended(key: &LockKey, class: &Class, holder: &Holder) {
    tracing::debug!(%key, %class, %holder, "held by another");
    count!("tenure_contended_total", class);
}

pub(crate) fn untold(key: &LockKey, class: &Class, error: &NodeError) {
    let what = "a server could not tell whether the lock is free";
    if error.is_doubt() {
        // News of the node have told it, once.
        tracing::debug!(%key, %class, %error, "{what}");
    } else {
        tracing::warn!(%key, %class, %error, "{what}");
    }
    count!("tenure_untold_total", class);
}

pub(crate) fn renewal_failed(key: &LockKey, class: &Class, error: &NodeError) {
    tracing::warn!(%key, %class, %error, "a renewal was not answered");
    count!("tenure_renewal_failed_total", class);
}

pub(crate) fn lost(key: &LockKey, class: &Class, reason: &LossReason) {
    tracing::error!(%key, %class, %reason, "lost");
    count!("tenure_lost_total", class);
}

pub(crate) fn held_again(key: &LockKey, class: &Class) {
    tracing::warn!(%key, %class, "held again: it had run out here, and not on the servers");
    count!("tenure_held_again_total", class);
}

pub(crate) fn released(key: &LockKey, class: &Class, held: Duration) {
    tracing::debug!(%key, %class, ?held, "released");
    count!("tenure_released_total", class);
    measure!("tenure_hold_seconds", class, held);
}

pub(crate) fn release_unconfirmed(key: &LockKey, error: &NodeError) {
    tracing::warn!(%key, %error, "a release was not answered; it is repeated");
}

/// What is told of one of several nodes, once each time that it comes to be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeNews {
    /// Another run of the server is at the address now.
    Restarted,
    /// The server has started less than the longest TTL ago.
    Young,
    /// It does not tell its run.
    RunHidden,
    /// It is another of the nodes, too.
    SameServer,
    /// It is a replica.
    NotPrimary,
    /// Its wall clock did what clocks do not do by themselves.
    ClockJumped,
}

/// Each kind has an event of its own name, and is one label of a counter.
pub(crate) fn node_news(node: &str, news: NodeNews, words: &str) {
    macro_rules! warn {
        ($kind:literal, $message:literal) => {{
            tracing::warn!(name: concat!("tenure.node.", $kind), node, words, $message);
            #[cfg(feature = "metrics")]
            metrics::counter!("tenure_node_news_total", "kind" => $kind).increment(1);
        }};
    }
    match news {
        NodeNews::Restarted => {
            warn!("restarted", "the server restarted and may have forgotten locks");
        }
        NodeNews::Young => {
            warn!("young", "the server has not run for long and may have forgotten locks");
        }
        NodeNews::RunHidden => {
            warn!("run_hidden", "the server hides whether it restarted");
        }
        NodeNews::SameServer => {
            warn!("same_server", "two addresses lead to one server, which has one vote");
        }
        NodeNews::NotPrimary => warn!("not_primary", "the server is a replica"),
        NodeNews::ClockJumped => warn!("clock_jumped", "the server's wall clock jumped"),
    }
}

/// Loud the first time, quiet while the outage goes on.
pub(crate) fn node_lost(error: &NodeError, is_news: bool) {
    let cause = std::error::Error::source(error).map(tracing::field::display);
    let node = error.node();
    if is_news {
        tracing::warn!(node, %error, cause, "the connection to the server is over");
    } else {
        tracing::debug!(node, %error, cause, "still no connection to the server");
    }
}
