//! The library as a case sees it: the same verbs, async or blocking.
//!
//! The async half runs on an executor that is not tokio's: the futures need nothing of it.

use std::time::Duration;

use smol::block_on;
use tenure::{
    AcquireError, CloseError, ExtendError, FencingToken, Holder, InspectError, Inspection, Lease,
    Loss, LossReason, NodeReport, ReleaseError, Renewal, RevalidateError, RunError, Token, Wait,
    blocking,
};

/// How the library is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Async,
    Blocking,
}

#[derive(Clone, Debug)]
pub(crate) enum Client {
    Async(tenure::Client),
    Blocking(blocking::Client),
}

impl Client {
    pub(crate) fn connect(way: Way, address: &str) -> Self {
        match way {
            Way::Async => Self::Async(tenure::Client::connect(address).unwrap()),
            Way::Blocking => Self::Blocking(blocking::Client::connect(address).unwrap()),
        }
    }

    pub(crate) fn lock(&self, key: impl AsRef<[u8]>) -> Lock {
        match self {
            Self::Async(client) => Lock::Async(client.lock(key)),
            Self::Blocking(client) => Lock::Blocking(client.lock(key)),
        }
    }

    pub(crate) fn close(self) -> Result<(), CloseError> {
        match self {
            Self::Async(client) => block_on(client.close()),
            Self::Blocking(client) => client.close(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Lock {
    Async(tenure::Lock),
    Blocking(blocking::Lock),
}

/// Settings have the same name and the same one argument on both sides.
macro_rules! settings {
    ($($name:ident: $type:ty),+) => {
        impl Lock {
            $(pub(crate) fn $name(self, value: $type) -> Self {
                match self {
                    Self::Async(lock) => Self::Async(lock.$name(value)),
                    Self::Blocking(lock) => Self::Blocking(lock.$name(value)),
                }
            })+
        }
    };
}

settings!(
    ttl: Duration, wait: Wait, renewal: Renewal, max_hold: Duration, min_validity: Duration,
    yield_to_pollers: u32, node_limit: Duration, max_ttl: Duration, repair: bool,
    label: &str
);

/// Operations are futures on one side, and block on the other.
macro_rules! operations {
    ($($name:ident($($arg:ident: $type:ty)?) -> $output:ty, $wrap:expr;)+) => {
        impl Lock {
            $(pub(crate) fn $name(&self $(, $arg: $type)?) -> $output {
                match self {
                    Self::Async(lock) => {
                        block_on(lock.$name($($arg)?)).map(|got| $wrap(got, Guard::Async))
                    }
                    Self::Blocking(lock) => {
                        lock.$name($($arg)?).map(|got| $wrap(got, Guard::Blocking))
                    }
                }
            })+
        }
    };
}

operations! {
    acquire() -> Result<Guard, AcquireError>, one;
    acquire_within(longest: Duration) -> Result<Guard, AcquireError>, one;
    try_acquire() -> Result<Option<Guard>, AcquireError>, perhaps;
    resume(token: Token) -> Result<Option<Guard>, AcquireError>, perhaps;
    steal() -> Result<Guard, AcquireError>, one;
    release(token: &Token) -> Result<(), ReleaseError>, none;
    force_release() -> Result<Option<Holder>, InspectError>, none;
    inspect() -> Result<Inspection, InspectError>, none;
    nodes() -> Result<Vec<NodeReport>, InspectError>, none;
}

fn one<G>(guard: G, wrap: impl FnOnce(G) -> Guard) -> Guard {
    wrap(guard)
}

fn perhaps<G>(guard: Option<G>, wrap: impl FnOnce(G) -> Guard) -> Option<Guard> {
    guard.map(wrap)
}

fn none<T, G>(value: T, _wrap: impl FnOnce(G) -> Guard) -> T {
    value
}

impl Lock {
    /// The work blocks in both ways, so that one case serves both.
    pub(crate) fn run<T>(&self, work: impl FnOnce(Lease) -> T) -> Result<T, RunError<T>> {
        match self {
            Self::Async(lock) => block_on(lock.run(async |lease| work(lease))),
            Self::Blocking(lock) => lock.run(work),
        }
    }
}

#[derive(Debug)]
#[must_use = "if unused, the lock is released at once"]
pub(crate) enum Guard {
    Async(tenure::LockGuard),
    Blocking(blocking::LockGuard),
}

/// The getters of a guard have the same names on both sides, and send nothing.
macro_rules! tells {
    ($($name:ident -> $output:ty),+) => {
        impl Guard {
            $(pub(crate) fn $name(&self) -> $output {
                match self {
                    Self::Async(guard) => guard.$name(),
                    Self::Blocking(guard) => guard.$name(),
                }
            })+
        }
    };
}

tells!(
    key -> &tenure::LockKey, token -> &Token, fencing_token -> FencingToken,
    valid_for -> Option<Duration>, ensure_held -> Result<(), Loss>, lease -> Lease
);

impl Guard {
    pub(crate) fn lost(&self) -> LossReason {
        match self {
            Self::Async(guard) => block_on(guard.lost()),
            Self::Blocking(guard) => guard.lost(),
        }
    }

    pub(crate) fn extend(&self, ttl: Duration) -> Result<(), ExtendError> {
        match self {
            Self::Async(guard) => block_on(guard.extend(ttl)),
            Self::Blocking(guard) => guard.extend(ttl),
        }
    }

    pub(crate) fn revalidate(&self) -> Result<(), RevalidateError> {
        match self {
            Self::Async(guard) => block_on(guard.revalidate()),
            Self::Blocking(guard) => guard.revalidate(),
        }
    }

    pub(crate) fn release(self) -> Result<(), ReleaseError> {
        match self {
            Self::Async(guard) => block_on(guard.release()),
            Self::Blocking(guard) => guard.release(),
        }
    }

    pub(crate) fn detach(self) -> Token {
        match self {
            Self::Async(guard) => guard.detach(),
            Self::Blocking(guard) => guard.detach(),
        }
    }
}
