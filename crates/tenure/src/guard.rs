//! What a caller holds.

use std::{fmt, sync::Arc, time::Duration};

use tenure_core::{FencingToken, LockKey, LossReason, Token, Ttl};

use crate::{
    engine::{Command, Engine, Holding, LeaseCell, Leased},
    error::{ConfigError, ExtendError, Loss, ReleaseError, RenewalFailure, RevalidateError},
};

/// A held lock. Dropping the guard releases the lock in the background.
///
/// A guard does not prove exclusion: a paused process can outlive its lease, and only the resource
/// can detect that. Pass [`fencing_token`](Self::fencing_token) to the resource that the lock
/// protects (see [`FenceGate`](crate::FenceGate)), and stop the work when [`lost`](Self::lost)
/// resolves.
///
/// Unless its lock says otherwise, the lease is renewed in the background for as long as the guard
/// lives, so leaking the guard holds the lock until the process ends; see
/// [`Lock::max_hold`](crate::Lock::max_hold).
#[clippy::has_significant_drop]
#[must_use = "if unused, the lock is released at once"]
pub struct LockGuard {
    // Before the engine: the release must be queued before the last handle's exit flush.
    holding: Holding,
    engine: Engine,
}

impl LockGuard {
    pub(crate) fn new(holding: Holding, engine: Engine) -> Self {
        Self { holding, engine }
    }

    /// The lock's key.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.holding.cell().key()
    }

    /// The token at the key. It is a secret: with it, anybody can extend and release the lock.
    #[must_use]
    pub fn token(&self) -> &Token {
        self.holding.cell().token()
    }

    /// The number of this acquisition: larger than that of every earlier one of this lock.
    ///
    /// It never changes, even after a loss.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.holding.cell().number()
    }

    /// How much longer the lease is valid by the local clock, or `None` once it is lost.
    ///
    /// Counted from before the last successful request was sent, less an allowance for clock drift,
    /// on a clock that runs while the machine is suspended. Sends nothing.
    #[must_use]
    pub fn valid_for(&self) -> Option<Duration> {
        self.holding.cell().valid_for()
    }

    /// Why renewals fail, or failed until the lease was lost; `None` once a renewal succeeds. Sends
    /// nothing.
    #[must_use]
    pub fn renewal_failure(&self) -> Option<RenewalFailure> {
        self.holding.cell().renewal_failure()
    }

    /// Resolves when the lease is lost, with the reason. A loss is final, unless
    /// [`revalidate`](Self::revalidate) proves that the key never ended.
    ///
    /// It resolves before the key's TTL can end on the server, by the local clock alone: no server
    /// needs to answer. If another client deletes or takes the key, it resolves at the next
    /// renewal, which [`Renewal::Manual`](crate::Renewal::Manual) leaves to the caller. With a
    /// single server that tracks keys for this client, it resolves within milliseconds once the
    /// lease has been held for 250 ms.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future changes nothing.
    pub async fn lost(&self) -> LossReason {
        self.holding.cell().lost().await
    }

    /// Fails once the lease is lost. Call it between the steps of the work.
    ///
    /// # Errors
    ///
    /// [`Loss`]: the lock, the reason, and what the servers answered to the last renewal.
    pub fn ensure_held(&self) -> Result<(), Loss> {
        self.holding.cell().ensure_held()
    }

    /// A handle on the lease that can be cloned and passed to the work. It cannot release the lock.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease { cell: Arc::clone(self.holding.cell()) }
    }

    /// Raises the key's TTL, once, to at least this long from now. Never shortens it; renewals
    /// continue with the lock's own TTL.
    ///
    /// # Errors
    ///
    /// [`ExtendError::Config`] for a bad TTL; with several servers, also for one above
    /// [`Lock::max_ttl`](crate::Lock::max_ttl). [`ExtendError::NotHeld`] if the lease is lost: no
    /// key is created. [`ExtendError::Unconfirmed`] if too few servers answered; the deadline stays
    /// as it was.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo the request: the TTL may still be raised.
    pub async fn extend(&self, ttl: Duration) -> Result<(), ExtendError> {
        let key = || self.key().clone();
        let ttl = Ttl::new(ttl).map_err(ConfigError::Ttl);
        let ttl = ttl.map_err(|error| ExtendError::Config { key: key(), error })?;
        let lease = self.leased();
        let result = self.engine.ask(|reply| Command::Extend { lease, ttl, reply }).await;
        result.unwrap_or_else(|| Err(ExtendError::EngineStopped { key: key() }))
    }

    /// Asks the servers whether the key existed without a break since the lock was acquired, and if
    /// it did, restores the lease. It is for a process that was stopped, or suspended with its
    /// machine, until its lease expired.
    ///
    /// `Ok` means that a majority of the servers has had the key all the time, so no other client
    /// has held the lock. The lease is then valid again for a whole TTL, less the drift, from
    /// before the servers were asked, and is renewed as before. Earlier calls of
    /// [`lost`](Self::lost) have resolved; a new call waits for the next loss.
    ///
    /// Only [`LossReason::Expired`] and [`LossReason::Paused`] can be undone. `Ok` proves nothing
    /// about the time after it: the process may be stopped again before its next write, so the
    /// resource must still check [`fencing_token`](Self::fencing_token).
    ///
    /// # Errors
    ///
    /// [`RevalidateError::NotHeld`] if a majority does not have the key, or has a new one. The
    /// same, without a request, if the lease was not lost by time, or
    /// [`Lock::max_hold`](crate::Lock::max_hold) is over. [`RevalidateError::Unconfirmed`] if too
    /// few servers answered; the lease stays as it was.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo the request: the lease may still be restored.
    pub async fn revalidate(&self) -> Result<(), RevalidateError> {
        let lease = self.leased();
        let result = self.engine.ask(|reply| Command::Revalidate { lease, reply }).await;
        result.unwrap_or_else(|| Err(RevalidateError::EngineStopped { key: self.key().clone() }))
    }

    /// Releases the lock and waits until the servers confirm it.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::NotHeld`] if the lease was lost earlier: work under it may have overlapped
    /// another client's. Another client's key is never touched. [`ReleaseError::AlreadyReleased`]
    /// if the lock was released earlier by its token. [`ReleaseError::Unconfirmed`] if too few
    /// servers answered; the release is repeated in the background until the key has ended, unless
    /// the server refuses it permanently.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo the release: it continues in the background.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        let lease = self.holding.disarm();
        let open = self.holding.cell().open_release();
        let command = |reply| Command::Release { lease, reply: Some(reply), open };
        let reply = self.engine.ask(command).await;
        reply.unwrap_or_else(|| Err(ReleaseError::EngineStopped { key: self.key().clone() }))
    }

    /// The lease that a command is about.
    fn leased(&self) -> Leased {
        (self.holding.id(), Arc::clone(self.holding.cell()))
    }

    /// Stops renewing and leaves the key to its TTL, or to the owner of the token.
    ///
    /// [`Lock::resume`](crate::Lock::resume) resumes the lease, in another process too.
    #[must_use = "without the token nobody can take the lease up again"]
    pub fn detach(mut self) -> Token {
        let lease = self.holding.disarm();
        // At once: the receiver of the token may act before the engine has read the command.
        self.holding.cell().lose(LossReason::Released);
        self.engine.send(Command::Detach { lease });
        self.token().clone()
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "LockGuard", self.holding.cell())
    }
}

/// A handle on a held lease, for the work that is done under the lock.
///
/// Clones refer to the same lease, which ends with the guard.
#[derive(Clone)]
pub struct Lease {
    cell: Arc<LeaseCell>,
}

impl Lease {
    /// The lock's key.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.cell.key()
    }

    /// See [`LockGuard::fencing_token`].
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.cell.number()
    }

    /// See [`LockGuard::token`].
    #[must_use]
    pub fn token(&self) -> &Token {
        self.cell.token()
    }

    /// See [`LockGuard::valid_for`]. `None` after the release, too.
    #[must_use]
    pub fn valid_for(&self) -> Option<Duration> {
        self.cell.valid_for()
    }

    /// See [`LockGuard::renewal_failure`].
    #[must_use]
    pub fn renewal_failure(&self) -> Option<RenewalFailure> {
        self.cell.renewal_failure()
    }

    /// See [`LockGuard::lost`]. Resolves after the release, too.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future changes nothing.
    pub async fn lost(&self) -> LossReason {
        self.cell.lost().await
    }

    /// See [`LockGuard::ensure_held`]. Fails after the release, too.
    ///
    /// # Errors
    ///
    /// [`Loss`], as there.
    pub fn ensure_held(&self) -> Result<(), Loss> {
        self.cell.ensure_held()
    }

    /// A loss of this lease, for this reason.
    pub(crate) fn loss(&self, reason: LossReason) -> Loss {
        self.cell.lost_by(reason)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, "Lease", &self.cell)
    }
}

fn describe(f: &mut fmt::Formatter<'_>, name: &str, cell: &LeaseCell) -> fmt::Result {
    f.debug_struct(name)
        .field("key", cell.key())
        .field("fencing_token", &cell.number())
        .field("valid_for", &cell.valid_for())
        .finish_non_exhaustive()
}
