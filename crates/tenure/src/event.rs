//! What is logged and counted, in one place.
//!
//! Metrics are labelled by the class that the user names for a lock, never by its key: keys are
//! without number. The names are part of the public interface; `docs/logs.md` and
//! `docs/metrics.md` list them.

use std::time::Duration;

use tenure_core::{FencingToken, Holder, LockKey, LossReason, Shown};

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

fn shown(class: &Class) -> Shown<'_> {
    Shown::new(class.as_bytes())
}

/// The span of a call that acquires, on the caller's side.
pub(crate) fn acquisition(key: &LockKey, class: &Class) -> tracing::Span {
    tracing::debug_span!("acquire", %key, class = %shown(class))
}

/// The span of the work that is run under a lock.
pub(crate) fn work(key: &LockKey, number: FencingToken) -> tracing::Span {
    tracing::debug_span!("work", %key, fencing_token = number.get())
}

pub(crate) fn acquired(key: &LockKey, class: &Class, number: FencingToken, waited: Duration) {
    let fencing_token = number.get();
    tracing::debug!(%key, class = %shown(class), fencing_token, ?waited, "acquired");
    count!("tenure_acquired_total", class);
    measure!("tenure_wait_seconds", class, waited);
}

pub(crate) fn contended(key: &LockKey, class: &Class, holder: &Holder) {
    tracing::debug!(%key, class = %shown(class), %holder, "held by another");
    count!("tenure_contended_total", class);
}

/// There is no time for the next poll: a key without a TTL.
pub(crate) fn held_without_end(key: &LockKey, class: &Class, holder: &Holder) {
    tracing::warn!(%key, class = %shown(class), %holder, "held by another, without a TTL");
}

pub(crate) fn indeterminate(key: &LockKey, class: &Class, error: &NodeError) {
    let what = "a server could not determine whether the lock is free";
    if error.is_ineligible() {
        // An event about the node has logged it, once.
        tracing::debug!(%key, class = %shown(class), %error, "{what}");
    } else {
        tracing::warn!(%key, class = %shown(class), %error, "{what}");
    }
    count!("tenure_indeterminate_total", class);
}

pub(crate) fn renewal_failed(key: &LockKey, class: &Class, error: &NodeError) {
    tracing::warn!(%key, class = %shown(class), %error, "a renewal was not answered");
    count!("tenure_renewal_failed_total", class);
}

pub(crate) fn lost(key: &LockKey, class: &Class, reason: &LossReason) {
    tracing::error!(%key, class = %shown(class), %reason, "lost");
    count!("tenure_lost_total", class);
}

pub(crate) fn held_again(key: &LockKey, class: &Class) {
    let what = "held again: the lease had expired locally, but not on the servers";
    tracing::warn!(%key, class = %shown(class), "{what}");
    count!("tenure_held_again_total", class);
}

pub(crate) fn released(key: &LockKey, class: &Class, number: FencingToken, held: Duration) {
    let fencing_token = number.get();
    tracing::debug!(%key, class = %shown(class), fencing_token, ?held, "released");
    count!("tenure_released_total", class);
    measure!("tenure_hold_seconds", class, held);
}

pub(crate) fn release_unconfirmed(key: &LockKey, error: &NodeError) {
    tracing::warn!(%key, %error, "a release was not answered; it is repeated");
}

/// Something that a user should change about an address, and need not.
pub(crate) fn unwise_address(warning: &str) {
    tracing::warn!(warning, "unsafe address");
}

/// What a user should know about one of several nodes; logged once each time it becomes so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeWarning {
    /// The server restarted, or was a replica, and may have forgotten locks.
    Restarted,
    /// The server has no marker: it is new, or it was emptied.
    Unmarked,
    /// It does not show its run id.
    RunHidden,
    /// It is another of the nodes, too.
    SameServer,
    /// It is a replica.
    NotPrimary,
    /// Its wall clock did what clocks do not do by themselves.
    ClockStepped,
    /// Its last number is far ahead of its clock.
    NumberAhead,
}

/// Each kind has an event of its own name, and is one label of a counter.
pub(crate) fn node_warning(node: &str, warning: NodeWarning, words: &str) {
    macro_rules! warn {
        ($kind:literal, $message:literal) => {{
            tracing::warn!(name: concat!("tenure.node.", $kind), node, words, $message);
            #[cfg(feature = "metrics")]
            metrics::counter!("tenure_node_warnings_total", "kind" => $kind).increment(1);
        }};
    }
    match warning {
        NodeWarning::Restarted => {
            warn!("restarted", "the server restarted and may have forgotten locks");
        }
        NodeWarning::Unmarked => {
            warn!("unmarked", "the server is new or was emptied and may have forgotten locks");
        }
        NodeWarning::RunHidden => {
            warn!("run_hidden", "the server hides whether it restarted");
        }
        NodeWarning::SameServer => {
            warn!("same_server", "two addresses lead to one server, which has one vote");
        }
        NodeWarning::NotPrimary => warn!("not_primary", "the server is a replica"),
        NodeWarning::ClockStepped => warn!("clock_stepped", "the server's wall clock was stepped"),
        NodeWarning::NumberAhead => {
            warn!("number_ahead", "the server's fencing numbers are far ahead of its clock");
        }
    }
}

/// Loud the first time, quiet while the outage goes on.
pub(crate) fn node_lost(error: &NodeError, is_first: bool) {
    let cause = std::error::Error::source(error).map(tracing::field::display);
    let node = error.node();
    if is_first {
        tracing::warn!(node, %error, cause, "the connection to the server ended");
    } else {
        tracing::debug!(node, %error, cause, "still no connection to the server");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fmt::{self, Write as _},
        sync::{Arc, Mutex},
    };

    use tracing::{
        Event, Metadata, Subscriber,
        field::{Field, Visit},
        span::{Attributes, Id, Record},
    };

    use super::*;
    use crate::error::NodeErrorKind;

    /// Writes every field down as a log would.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<String>>);

    impl Visit for Log {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            write!(self.0.lock().unwrap(), "{field}={value:?} ").unwrap();
        }

        fn record_str(&mut self, field: &Field, value: &str) {
            write!(self.0.lock().unwrap(), "{field}={value} ").unwrap();
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            span.record(&mut self.clone());
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn no_field_can_forge_a_line_of_a_log() {
        let odd = "x\r\n2026 INFO forged\u{1b}[2J\u{202e}\u{200b}";
        let (key, class): (_, Class) = (LockKey::new(odd).unwrap(), odd.into());
        let holder = Holder::ForeignType(odd.into());
        let reason = LossReason::Taken { holder: holder.clone() };
        let error = NodeError::new(&"a".into(), NodeErrorKind::Refused).with_source(odd);
        let number = FencingToken::new(1).unwrap();
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || {
            drop(acquisition(&key, &class));
            drop(work(&key, number));
            acquired(&key, &class, number, Duration::ZERO);
            contended(&key, &class, &holder);
            held_without_end(&key, &class, &holder);
            indeterminate(&key, &class, &error);
            renewal_failed(&key, &class, &error);
            lost(&key, &class, &reason);
            held_again(&key, &class);
            released(&key, &class, number, Duration::ZERO);
            release_unconfirmed(&key, &error);
            node_lost(&error, true);
            node_lost(&error, false);
        });
        let log = log.0.lock().unwrap().clone();
        assert!(log.matches("forged").count() >= 13, "{log:?}");
        assert!(log.chars().all(Shown::is_plain), "{log:?}");
    }
}
