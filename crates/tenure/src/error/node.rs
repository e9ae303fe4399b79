//! One node's error.

use std::{error::Error, fmt, fs::File, io, sync::Arc, time::Duration};

use rustix::io::Errno;
use tenure_core::{FenceFault, LockKey, Shown};

/// The failure of one server: its error reply, or why there was no reply.
///
/// Never contention: "held by another" is an answer, not an error.
#[derive(Clone)]
pub struct NodeError {
    node: Arc<str>,
    kind: NodeErrorKind,
    maybe_applied: bool,
    out_of_step: bool,
    is_store: bool,
    eligible_in: Option<Duration>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kinds of failure of a server.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeErrorKind {
    /// It cannot be reached: refused, no such host, no such socket.
    Unreachable,
    /// It has as many clients as it accepts: max number of clients reached.
    TooManyClients,
    /// This process has no descriptor, thread or memory left to reach it.
    NoResources,
    /// It is too far away for the lock's TTL: a renewal would be answered only after the lease has
    /// ended.
    TooFar,
    /// It did not answer in time.
    TimedOut,
    /// The connection ended before the answer.
    Disconnected,
    /// It requires a password, and its address has none: NOAUTH.
    PasswordMissing,
    /// It does not accept this user or password: WRONGPASS.
    Denied,
    /// The user may not run the scripts' commands on these keys: NOPERM.
    NoPermission,
    /// It is a replica, or was made one: READONLY.
    ReadOnly,
    /// It is still reading its data: LOADING.
    Loading,
    /// It is busy with a script (BUSY), or others are busy with the store.
    Busy,
    /// It has no memory left and evicts nothing: OOM.
    OutOfMemory,
    /// The disk of the store is full.
    DiskFull,
    /// It cannot save, and therefore refuses writes: MISCONF.
    CannotSave,
    /// It has too few replicas, and therefore refuses writes: NOREPLICAS.
    NoReplicas,
    /// It may have forgotten locks that others hold: it is new, was emptied, restarted without
    /// being declared durable, or was a replica. It does not vote until those locks have ended.
    /// Only with several servers.
    Restarted,
    /// Its wall clock was stepped, so locks that others hold may have ended there: like
    /// [`NodeErrorKind::Restarted`].
    ClockStepped,
    /// A second address of another server, without a vote of its own.
    SameServer,
    /// It cannot serve now: MASTERDOWN, CLUSTERDOWN, TRYAGAIN.
    Down,
    /// It is a Cluster node that does not serve the key's slot: MOVED, ASK, CROSSSLOT.
    WrongNode,
    /// It does not know a command that tenure needs.
    UnknownCommand,
    /// The key that tenure derives for the fencing counter holds something else.
    FenceUnusable,
    /// The key that tenure derives for the queue holds something else.
    QueueUnusable,
    /// Its last fencing number is far ahead of its clock, so it does not vote. Only with several
    /// servers.
    NumberAhead,
    /// The key `tenure:marker`, by which one of several servers shows that it forgot nothing, holds
    /// something else.
    MarkerUnusable,
    /// The store's file cannot be trusted: it belongs to another user, is damaged, or is on a file
    /// system that is not known to be local; or the clock and the boot of this host cannot be read.
    UnfitStore,
    /// It does not speak RESP3, or a reply was not the answer to its request.
    Protocol,
    /// Any other error reply.
    Refused,
}

/// Whether the system has nothing left for this process: descriptors, threads, ports, or memory for
/// them.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let is_one = |error: &io::Error| {
        let error = Errno::from_io_error(error);
        matches!(
            error,
            Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM | Errno::NOBUFS)
        )
    };
    // Some errors, such as those of names that are looked up, do not say what is behind them.
    is_one(error) || File::open("/dev/null").is_err_and(|error| is_one(&error))
}

impl NodeError {
    pub(crate) fn new(node: &Arc<str>, kind: NodeErrorKind) -> Self {
        Self {
            node: Arc::clone(node),
            kind,
            maybe_applied: false,
            out_of_step: false,
            is_store: false,
            eligible_in: None,
            source: None,
        }
    }

    /// The same of an embedded store.
    #[cfg(feature = "sqlite")]
    pub(crate) fn of_store(node: &Arc<str>, kind: NodeErrorKind) -> Self {
        Self { is_store: true, ..Self::new(node, kind) }
    }

    /// Adds what is behind it. What of that cannot be shown as it is, such as the words of a
    /// hostile server, is replaced by what can.
    /// What stands at a derived key of the lock that is not tenure's.
    pub(crate) fn of_fault(node: &Arc<str>, fault: FenceFault, lock: &LockKey) -> Self {
        let (kind, key) = match fault {
            FenceFault::Queue => (NodeErrorKind::QueueUnusable, lock.queue()),
            _ => (NodeErrorKind::FenceUnusable, lock.fence()),
        };
        Self::new(node, kind).with_source(format!("{fault}: {}", Shown::quoted(&key)))
    }

    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        let words = source.to_string();
        let shown = Shown::new(&words).at_most(MAX_BEHIND).to_string();
        let shown: Box<dyn Error + Send + Sync> =
            if shown == words { source } else { shown.into() };
        self.source = Some(shown.into());
        self
    }

    /// Marks that the op was sent and may have been applied, or may yet be.
    pub(crate) fn maybe_applied(mut self) -> Self {
        self.maybe_applied = true;
        self
    }

    /// Marks that a server which does speak RESP3 answered out of step. The next connection is in
    /// step again.
    pub(crate) fn out_of_step(mut self) -> Self {
        self.out_of_step = true;
        self
    }

    /// How long it takes until the node votes again by itself.
    pub(crate) fn eligible_in(mut self, left: Duration) -> Self {
        self.eligible_in = Some(left);
        self
    }

    /// The time until the server votes again by itself, if that is known: until every lock that it
    /// may have forgotten has ended.
    #[must_use]
    pub const fn votes_in(&self) -> Option<Duration> {
        self.eligible_in
    }

    /// Whether the op may have changed something on the node, now or later.
    pub(crate) fn may_be_applied(&self) -> bool {
        self.maybe_applied
    }

    /// Whether the node answered, but may not vote yet.
    pub(crate) fn is_ineligible(&self) -> bool {
        matches!(self.kind, NodeErrorKind::Restarted | NodeErrorKind::ClockStepped)
    }

    /// The error with what is behind it, cause by cause.
    pub(super) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            // Some causes repeat what is behind them.
            let words = error.to_string();
            if !text.ends_with(&words) {
                text += &format!(": {words}");
            }
            cause = error.source();
        }
        text
    }

    /// The server's address, without user and password.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Whether it is an embedded store, not a server.
    #[must_use]
    pub const fn is_store(&self) -> bool {
        self.is_store
    }

    /// The kind of failure.
    #[must_use]
    pub const fn kind(&self) -> NodeErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later without a change of settings.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        use NodeErrorKind as Kind;
        match self.kind {
            Kind::Unreachable
            | Kind::TooManyClients
            | Kind::NoResources
            | Kind::TimedOut
            | Kind::Disconnected
            | Kind::ReadOnly
            | Kind::Loading
            | Kind::Busy
            | Kind::OutOfMemory
            | Kind::DiskFull
            | Kind::CannotSave
            | Kind::NoReplicas
            | Kind::Restarted
            | Kind::ClockStepped
            | Kind::Down => true,
            Kind::Protocol => self.out_of_step,
            Kind::PasswordMissing
            | Kind::TooFar
            | Kind::Denied
            | Kind::NoPermission
            | Kind::WrongNode
            | Kind::UnknownCommand
            | Kind::FenceUnusable
            | Kind::QueueUnusable
            | Kind::NumberAhead
            | Kind::MarkerUnusable
            | Kind::UnfitStore
            | Kind::SameServer
            | Kind::Refused => false,
        }
    }
}

/// The longest path, which has 4 096 bytes, and a sentence.
const MAX_BEHIND: usize = 4_500;

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use NodeErrorKind as Kind;
        let what = match self.kind {
            Kind::Unreachable if self.is_store => "cannot be opened",
            Kind::Unreachable => "cannot be reached",
            Kind::TooManyClients => "has as many clients as it accepts",
            Kind::NoResources => {
                "cannot be reached: this process has no descriptor, thread or memory left"
            }
            Kind::TimedOut => "did not answer in time",
            Kind::TooFar => "is too far away for this TTL",
            Kind::Disconnected => "closed the connection before it answered",
            Kind::PasswordMissing => "wants a password, and its address has none",
            Kind::Denied => "does not accept this user or password",
            Kind::NoPermission => "does not permit this user what a lock needs",
            Kind::ReadOnly => "is a read-only replica",
            Kind::Loading => "is still loading its data",
            Kind::Busy => "is busy",
            Kind::OutOfMemory => "has no memory left",
            Kind::DiskFull => "has no room left on its disk",
            Kind::CannotSave => "cannot save its data and refuses writes",
            Kind::NoReplicas => "has too few replicas and refuses writes",
            Kind::Restarted => "may have forgotten locks and does not vote yet",
            Kind::ClockStepped => "has a wall clock that was stepped and does not vote yet",
            Kind::SameServer => "has no second vote",
            Kind::Down => "cannot serve now",
            Kind::WrongNode => "does not serve this key's slot",
            Kind::UnknownCommand => "does not know a command that a lock needs",
            Kind::FenceUnusable => "has something else than a counter at the fence key",
            Kind::QueueUnusable => "has something else than a queue at the queue key",
            Kind::NumberAhead => "has fencing numbers far ahead of its clock",
            Kind::MarkerUnusable => "has something else than a marker at tenure:marker",
            Kind::UnfitStore => "is not fit for a store of locks",
            Kind::Protocol => "answered out of step",
            Kind::Refused => "refused",
        };
        let noun = if self.is_store { "store" } else { "server" };
        write!(f, "the {noun} {} {what}", self.node)
    }
}

impl fmt::Debug for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeError")
            .field("node", &self.node)
            .field("kind", &self.kind)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Error for NodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_an_error_is_a_plain_line() {
        let error = || NodeError::new(&"a".into(), NodeErrorKind::Refused);
        let odd = error().with_source("ERR x\r\n2026 INFO forged\u{1b}[2J\u{202e}");
        let shown = format!("{odd} {odd:?} {}", odd.source().unwrap());
        assert!(shown.chars().all(Shown::is_plain), "{shown:?}");
        let error = error().with_source(io::Error::from_raw_os_error(111));
        assert!(error.source().unwrap().is::<io::Error>());
    }
}
