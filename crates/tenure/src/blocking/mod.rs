//! The same API for threads.
//!
//! Each call blocks the calling thread until the answer arrives; the engine is the same. Calls work
//! anywhere, inside an async runtime too, where they block a thread of that runtime.

mod park;

use std::time::Duration;

pub use crate::lock::Renewal;
use crate::{
    FencingToken, Holder, Inspection, Lease, LockKey, LossReason, NodeReport, Token, Wait,
    error::{
        AcquireError, CloseError, ConfigError, ExtendError, InspectError, Loss, ReleaseError,
        RenewalFailure, RevalidateError, RunError,
    },
    guard,
    lock::{self, finish},
};
use park::block_on;

/// See [`crate::Client`].
#[derive(Clone, Debug)]
pub struct Client(crate::Client);

impl Client {
    /// See [`crate::Client::connect`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn connect(address: &str) -> Result<Self, ConfigError> {
        crate::Client::connect(address).map(Self)
    }

    /// See [`crate::Client::warnings`].
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        self.0.warnings()
    }

    /// See [`crate::Client::lock`].
    #[must_use]
    pub fn lock(&self, key: impl AsRef<[u8]>) -> Lock {
        Lock(self.0.lock(key))
    }

    /// See [`crate::Client::open_new`].
    ///
    /// # Errors
    ///
    /// [`InspectError`] for a bad TTL, or if the engine has stopped.
    pub fn open_new(&self, longest: Duration) -> Result<Vec<NodeReport>, InspectError> {
        block_on(self.0.open_new(longest))
    }

    /// See [`crate::Client::close`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn close(self) -> Result<(), CloseError> {
        block_on(self.0.close())
    }
}

/// The blocking twin of an async client: the same engine.
impl From<crate::Client> for Client {
    fn from(client: crate::Client) -> Self {
        Self(client)
    }
}

/// See [`crate::Lock`].
#[derive(Clone, Debug)]
pub struct Lock(lock::Lock);

impl Lock {
    /// See [`crate::Lock::ttl`].
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self(self.0.ttl(ttl))
    }

    /// See [`crate::Lock::wait`].
    #[must_use]
    pub fn wait(self, wait: Wait) -> Self {
        Self(self.0.wait(wait))
    }

    /// See [`crate::Lock::renewal`].
    #[must_use]
    pub fn renewal(self, renewal: Renewal) -> Self {
        Self(self.0.renewal(renewal))
    }

    /// See [`crate::Lock::max_hold`].
    #[must_use]
    pub fn max_hold(self, longest: Duration) -> Self {
        Self(self.0.max_hold(longest))
    }

    /// See [`crate::Lock::min_validity`].
    #[must_use]
    pub fn min_validity(self, least: Duration) -> Self {
        Self(self.0.min_validity(least))
    }

    /// See [`crate::Lock::node_limit`].
    #[must_use]
    pub fn node_limit(self, longest: Duration) -> Self {
        Self(self.0.node_limit(longest))
    }

    /// See [`crate::Lock::max_ttl`].
    #[must_use]
    pub fn max_ttl(self, longest: Duration) -> Self {
        Self(self.0.max_ttl(longest))
    }

    /// See [`crate::Lock::repair`].
    #[must_use]
    pub fn repair(self, again: bool) -> Self {
        Self(self.0.repair(again))
    }

    /// See [`crate::Lock::yield_to_pollers`].
    #[must_use]
    pub fn yield_to_pollers(self, hand_overs: u32) -> Self {
        Self(self.0.yield_to_pollers(hand_overs))
    }

    /// See [`crate::Lock::overwrite_data`].
    #[must_use]
    pub fn overwrite_data(self, anything: bool) -> Self {
        Self(self.0.overwrite_data(anything))
    }

    /// See [`crate::Lock::label`].
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Self(self.0.label(label))
    }

    /// See [`crate::Lock::class`].
    #[must_use]
    pub fn class(self, class: &str) -> Self {
        Self(self.0.class(class))
    }

    /// Runs work under the lock. Unlike [`crate::Lock::run`], it cannot stop the work when the
    /// lease is lost: [`RunError::Lost`] then contains the output. Long work should call
    /// [`Lease::ensure_held`] between its steps.
    ///
    /// # Errors
    ///
    /// As [`crate::Lock::run`].
    pub fn run<T>(&self, work: impl FnOnce(Lease) -> T) -> Result<T, RunError<T>> {
        let guard = self.acquire().map_err(RunError::Acquire)?;
        let output = work(guard.lease());
        finish(output, guard.release())
    }

    /// See [`crate::Lock::acquire`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn acquire(&self) -> Result<LockGuard, AcquireError> {
        block_on(self.0.acquire()).map(LockGuard)
    }

    /// See [`crate::Lock::acquire_within`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn acquire_within(&self, longest: Duration) -> Result<LockGuard, AcquireError> {
        block_on(self.0.acquire_within(longest)).map(LockGuard)
    }

    /// See [`crate::Lock::try_acquire`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn try_acquire(&self) -> Result<Option<LockGuard>, AcquireError> {
        Ok(block_on(self.0.try_acquire())?.map(LockGuard))
    }

    /// See [`crate::Lock::resume`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn resume(&self, token: Token) -> Result<Option<LockGuard>, AcquireError> {
        Ok(block_on(self.0.resume(token))?.map(LockGuard))
    }

    /// See [`crate::Lock::release`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn release(&self, token: &Token) -> Result<(), ReleaseError> {
        block_on(self.0.release(token))
    }

    /// See [`crate::Lock::steal`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn steal(&self) -> Result<LockGuard, AcquireError> {
        block_on(self.0.steal()).map(LockGuard)
    }

    /// See [`crate::Lock::force_release`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn force_release(&self) -> Result<Option<Holder>, InspectError> {
        block_on(self.0.force_release())
    }

    /// See [`crate::Lock::inspect`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn inspect(&self) -> Result<Inspection, InspectError> {
        block_on(self.0.inspect())
    }

    /// See [`crate::Lock::inspect_unproved`].
    ///
    /// # Errors
    ///
    /// As [`crate::Lock::inspect_unproved`].
    pub fn inspect_unproved(&self) -> Result<Inspection, InspectError> {
        block_on(self.0.inspect_unproved())
    }

    /// See [`crate::Lock::nodes`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn nodes(&self) -> Result<Vec<NodeReport>, InspectError> {
        block_on(self.0.nodes())
    }
}

/// See [`crate::LockGuard`].
#[clippy::has_significant_drop]
#[derive(Debug)]
#[must_use = "if unused, the lock is released at once"]
pub struct LockGuard(guard::LockGuard);

impl LockGuard {
    /// See [`crate::LockGuard::key`].
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.0.key()
    }

    /// See [`crate::LockGuard::token`].
    #[must_use]
    pub fn token(&self) -> &Token {
        self.0.token()
    }

    /// See [`crate::LockGuard::fencing_token`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.0.fencing_token()
    }

    /// See [`crate::LockGuard::valid_for`].
    #[must_use]
    pub fn valid_for(&self) -> Option<Duration> {
        self.0.valid_for()
    }

    /// See [`crate::LockGuard::renewal_failure`].
    #[must_use]
    pub fn renewal_failure(&self) -> Option<RenewalFailure> {
        self.0.renewal_failure()
    }

    /// Blocks until the lease is lost. See [`crate::LockGuard::lost`].
    #[must_use]
    pub fn lost(&self) -> LossReason {
        block_on(self.0.lost())
    }

    /// See [`crate::LockGuard::ensure_held`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn ensure_held(&self) -> Result<(), Loss> {
        self.0.ensure_held()
    }

    /// See [`crate::LockGuard::lease`].
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.0.lease()
    }

    /// See [`crate::LockGuard::extend`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn extend(&self, ttl: Duration) -> Result<(), ExtendError> {
        block_on(self.0.extend(ttl))
    }

    /// See [`crate::LockGuard::revalidate`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn revalidate(&self) -> Result<(), RevalidateError> {
        block_on(self.0.revalidate())
    }

    /// See [`crate::LockGuard::release`].
    ///
    /// # Errors
    ///
    /// As the async method.
    pub fn release(self) -> Result<(), ReleaseError> {
        block_on(self.0.release())
    }

    /// See [`crate::LockGuard::detach`].
    #[must_use = "without the token nobody can take the lease up again"]
    pub fn detach(self) -> Token {
        self.0.detach()
    }
}
