//! What a caller holds.

use std::{fmt, sync::Arc, time::Duration};

use tenure_core::{FencingToken, LockKey, LossReason, Token, Ttl};

use crate::{
    engine::{Command, Engine, Holding, LeaseCell, Leased},
    error::{ConfigError, ExtendError, Loss, ReleaseError, RenewalFailure, RevalidateError},
};

/// A held lock. Dropping the guard releases the lock in the background.
///
/// Holding a guard is no proof of exclusion: a paused process can outlive its lease, and only the
/// resource can know. Pass [`fencing_token`](Self::fencing_token) to whatever the lock protects
/// (see [`FenceGate`](crate::FenceGate)), and stop the work when [`lost`](Self::lost) resolves.
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

    /// The token at the key. Anybody who has it can extend and release the lock: a secret.
    #[must_use]
    pub fn token(&self) -> &Token {
        self.holding.cell().token()
    }

    /// The number of this acquisition: larger than that of every earlier one of this lock.
    ///
    /// It stays the same for the guard's life, after a loss too.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.holding.cell().number()
    }

    /// How much longer the lease is valid by the local clock, or `None` once it is lost.
    ///
    /// Counted from before the last successful request was sent, less the drift allowance, on a
    /// clock that goes on while the machine is suspended. Asks nobody.
    #[must_use]
    pub fn valid_for(&self) -> Option<Duration> {
        self.holding.cell().valid_for()
    }

    /// Why renewals fail, while they do and after the lease was lost by that; `None` once one
    /// succeeds. Asks nobody.
    #[must_use]
    pub fn renewal_failure(&self) -> Option<RenewalFailure> {
        self.holding.cell().renewal_failure()
    }

    /// Resolves when the lease is lost, with the reason. A loss is final, unless
    /// [`revalidate`](Self::revalidate) proves that it was none.
    ///
    /// It resolves before the key's TTL can end on the server, by the local clock alone: no server
    /// needs to answer. That another removed or took the key is noticed within milliseconds where
    /// one server has the lock, tracks keys for this client, and the lease is held for longer than
    /// 250 ms; else by the next renewal, which [`Renewal::Manual`](crate::Renewal::Manual) leaves
    /// to the caller.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future changes nothing.
    pub async fn lost(&self) -> LossReason {
        self.holding.cell().lost().await
    }

    /// Fails once the lease is lost: for work that goes in steps.
    ///
    /// # Errors
    ///
    /// [`Loss`]: of which lock, the reason, and what the servers said to the last renewal.
    pub fn ensure_held(&self) -> Result<(), Loss> {
        self.holding.cell().ensure_held()
    }

    /// A handle on the lease that can be cloned and handed to the work. It cannot release.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease { cell: Arc::clone(self.holding.cell()) }
    }

    /// Gives the key at least this TTL from now, once. Never shortens it; renewals go on with the
    /// lock's own TTL.
    ///
    /// # Errors
    ///
    /// [`ExtendError::Config`] for a bad TTL; where several servers vote, for one above
    /// [`Lock::max_ttl`](crate::Lock::max_ttl), too.
    /// [`ExtendError::NotHeld`] when the lease is lost: no key is created.
    /// [`ExtendError::Unconfirmed`] when too few servers answered; the deadline stays as it was.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the request back: the TTL may still be raised.
    pub async fn extend(&self, ttl: Duration) -> Result<(), ExtendError> {
        let key = || self.key().clone();
        let ttl = Ttl::new(ttl).map_err(ConfigError::Ttl);
        let ttl = ttl.map_err(|error| ExtendError::Config { key: key(), error })?;
        let lease = self.leased();
        let result = self.engine.ask(|reply| Command::Extend { lease, ttl, reply }).await;
        result.unwrap_or_else(|| Err(ExtendError::EngineStopped { key: key() }))
    }

    /// Asks the servers whether the lease was held without a break since the lock was acquired, and
    /// if so holds it on: a way back for a process that was stopped, or suspended with its machine,
    /// until its lease ran out.
    ///
    /// `Ok` says that a majority of the servers has had the key all the time, so nobody else has
    /// held the lock. The lease is then valid again for a whole TTL, less the drift, from before
    /// the servers were asked, and renewed as before. That it ran out was reported nevertheless:
    /// [`lost`](Self::lost) has resolved for earlier calls; a call from now on waits for the next
    /// loss.
    ///
    /// Only [`LossReason::Expired`] and [`LossReason::Paused`] can be taken back. It proves nothing
    /// about what comes after it: the process may be stopped again before its next write, so the
    /// resource must check [`fencing_token`](Self::fencing_token) as ever.
    ///
    /// # Errors
    ///
    /// [`RevalidateError::NotHeld`] when a majority does not have the key, or has a new one; and
    /// without asking when the lease was lost for another reason than its time, or
    /// [`Lock::max_hold`](crate::Lock::max_hold) is over.
    /// [`RevalidateError::Unconfirmed`] when too few servers answered; the lease stays as it was.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the request back: the lease may still be held
    /// again.
    pub async fn revalidate(&self) -> Result<(), RevalidateError> {
        let lease = self.leased();
        let result = self.engine.ask(|reply| Command::Revalidate { lease, reply }).await;
        result.unwrap_or_else(|| Err(RevalidateError::EngineStopped { key: self.key().clone() }))
    }

    /// Releases the lock and waits for the server's word.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::NotHeld`] when the lease had been lost before: work done under it may have
    /// overlapped another's. Another's key is never touched.
    /// [`ReleaseError::AlreadyReleased`] when the lock was released by its token before.
    /// [`ReleaseError::Unconfirmed`] when too few servers answered; the release is repeated in
    /// the background until the key has ended, unless the server says that it never will take it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the release back: it goes on in the background.
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
    /// [`Lock::resume`](crate::Lock::resume) takes the lease up again, in another process too.
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

/// The right to act under a lock, for the work that is done under it.
///
/// A handle: cloning it clones no right, and it ends with the guard it came from.
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
