//! A lock: what is wanted, and how.

mod setters;
mod settings;

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use tenure_core::{
    Held, Holder, HolderLabel, Inspection, LockKey, LossReason, MarkerMode, Op, Release, Reply,
    Token, Wait,
};
use tracing::Instrument as _;

pub use self::settings::Renewal;
use self::settings::Settings;
use crate::{
    engine::{Acquired, Command, Engine, How},
    error::{AcquireError, InspectError, Loss, NodeErrors, ReleaseError, RunError},
    event,
    guard::{Lease, LockGuard},
    random,
    report::NodeReport,
};

/// A named lock and its settings: a cheap handle that holds nothing.
///
/// Made by [`Client::lock`](crate::Client::lock). A bad setting is kept, and the first call returns
/// it as an error before anything is sent.
#[derive(Clone, Debug)]
pub struct Lock {
    engine: Engine,
    default_label: HolderLabel,
    settings: Settings,
}

impl Lock {
    pub(crate) fn new(engine: Engine, default_label: HolderLabel, key: &[u8]) -> Self {
        Self { engine, default_label, settings: Settings::new(key) }
    }
}

/// Operations.
impl Lock {
    /// Runs work under the lock: acquires it, renews it, releases it.
    ///
    /// When the lease is lost, the work's future is dropped at its next await. Tasks that it has
    /// spawned, and code that does not await, continue: such work should call
    /// [`Lease::ensure_held`], and the resource should check [`Lease::fencing_token`].
    ///
    /// # Errors
    ///
    /// [`RunError`], which contains the work's output if there is one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work's, and releases the lock in the background.
    pub async fn run<T, F, W>(&self, work: F) -> Result<T, RunError<T>>
    where
        F: FnOnce(Lease) -> W,
        W: Future<Output = T>,
    {
        let guard = self.acquire().await.map_err(RunError::Acquire)?;
        let lease = guard.lease();
        let work = work(guard.lease()).instrument(event::work(guard.key(), guard.fencing_token()));
        match until_lost(work, guard.lost()).await {
            Ok(output) => finish(output, guard.release().await),
            Err(reason) => {
                // The loss is the news; what the release adds is logged.
                _ = guard.release().await;
                Err(RunError::Lost { loss: lease.loss(reason), output: None })
            }
        }
    }

    /// Acquires the lock, waiting as set by [`Lock::wait`].
    ///
    /// A lock is not re-entrant: a caller that already holds it waits for itself, without a limit
    /// by default. Pass [`LockGuard::lease`] to the work that needs the lock, or use
    /// [`Lock::try_acquire`].
    ///
    /// A single server serves waiters in arrival order. Several servers have no queue: all waiters
    /// are notified of a release and try again, each after a random delay of a few round trips; the
    /// first to get a majority has the lock.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TimedOut`] if another client held the lock for the whole wait.
    /// [`AcquireError::NoQuorum`] if the state is unknown. The two are never confused.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. Dropping the future ends the wait. If the key was set already, it is released
    /// in the background; until then, at most for the TTL, others may see the lock as held.
    pub async fn acquire(&self) -> Result<LockGuard, AcquireError> {
        self.acquire_waiting(self.settings.wait).await
    }

    /// Acquires the lock, waiting at most this long; zero means one attempt.
    ///
    /// A lock that becomes free at the last moment is still acquired; nothing is acquired later.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`].
    pub async fn acquire_within(&self, longest: Duration) -> Result<LockGuard, AcquireError> {
        self.acquire_waiting(Wait::Within(longest)).await
    }

    /// Acquires the lock if it is free now; `None` if another client holds it.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NoQuorum`] if the state is unknown.
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<LockGuard>, AcquireError> {
        Ok(self.ask(How::Try, Wait::No).await?.ok())
    }

    /// Resumes a lease by its token, from [`LockGuard::detach`] or another process.
    ///
    /// The number stays the same and the TTL is raised, never lowered. (With several servers it may
    /// be larger, if not all of those that had agreed on the number answer.) `None` if the token no
    /// longer holds the lock: this never acquires again a lease that has ended.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NoQuorum`] if the state is unknown.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. Dropping the future may release the lease, if it was already resumed.
    pub async fn resume(&self, token: Token) -> Result<Option<LockGuard>, AcquireError> {
        Ok(self.ask(How::Resume(token), Wait::No).await?.ok())
    }

    /// Releases the lock if this token holds it: for a token from [`LockGuard::detach`], without
    /// resuming the lease.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::AlreadyReleased`] if an earlier release with this token succeeded, at most a
    /// minute ago. [`ReleaseError::NotHeld`] if the token does not hold the lock for another
    /// reason, or for an unknown one: `Taken` if another client holds it, `Gone` if nobody does.
    /// Another client's key is never touched. [`ReleaseError::Unconfirmed`] if the outcome is
    /// unknown; this release is not repeated.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo the request.
    pub async fn release(&self, token: &Token) -> Result<(), ReleaseError> {
        let key = self.settings.key().map_err(|error| ReleaseError::Config { error })?;
        let (token, entries) = (token.clone(), Vec::new());
        let of = key.clone();
        // The client that acquired it may be gone, and with it the knowledge of what it asked: a
        // late request for the key must find that the token was given up.
        let leave_tombstone = true;
        let op = Op::Release { key, token, entries, leave_tombstone, yield_ms: 0, number: None };
        let reply = self.ask_node(&of, op).await;
        let reason = match reply {
            Ok(Reply::Released { release: Release::Released(_), .. }) => return Ok(()),
            Ok(Reply::Released { release: Release::Other(holder), .. }) => {
                LossReason::Taken { holder }
            }
            Ok(Reply::Released { release: Release::Free, .. }) => LossReason::Gone,
            Ok(Reply::Released { release: Release::AlreadyReleased, .. }) => {
                return Err(ReleaseError::AlreadyReleased { key: of });
            }
            Err(InspectError::Unanswered(errors)) => return Err(ReleaseError::Unconfirmed(errors)),
            _ => return Err(ReleaseError::EngineStopped { key: of }),
        };
        Err(ReleaseError::NotHeld(Loss::new(&of, reason, None)))
    }

    /// Takes the lock from any holder. The holder notices at its next renewal at the latest, and
    /// both may act until then. Use it only if the holder is known to be gone, or fenced off.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NotALock`] if no lock library writes the value at the key; see
    /// [`Lock::overwrite_data`]. [`AcquireError::NoQuorum`] if the outcome is unknown: the request
    /// is then undone in the background, and takes nothing if it arrives after that.
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`]; the earlier holder does not get the lock back.
    pub async fn steal(&self) -> Result<LockGuard, AcquireError> {
        match self.ask(How::Steal { any: self.settings.overwrite_data }, Wait::No).await? {
            Ok(guard) => Ok(guard),
            Err(missed) => Err(missed.into_error()),
        }
    }

    /// Deletes the key of any holder, and returns the holder; `None` if there was none. With
    /// several servers, it returns the holder whose key was deleted on most of those that had one.
    ///
    /// As with [`Lock::steal`], the holder continues until it notices. Some other libraries set the
    /// key again when they renew.
    ///
    /// # Errors
    ///
    /// [`InspectError::NotALock`] if no lock library writes the value at the key; see
    /// [`Lock::overwrite_data`]. [`InspectError::Unanswered`] if the outcome is unknown; the key
    /// may have been deleted. The request is cancelled in the background, so that it has no effect
    /// later.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo the request.
    pub async fn force_release(&self) -> Result<Option<Holder>, InspectError> {
        let key = self.key()?;
        let random = random::token().map_err(|_| stopped(&key))?;
        let token = Token::new(random, &self.default_label);
        let op = Op::ForceRelease { key: key.clone(), token, any: self.settings.overwrite_data };
        match self.ask_node(&key, op).await? {
            Reply::Released { release: Release::Released(holder), .. } => Ok(Some(holder)),
            Reply::Released { release: Release::Other(found), .. } => {
                Err(InspectError::NotALock { key, found })
            }
            _ => Ok(None),
        }
    }

    /// Reads the state of the lock, for people: it may have changed by the time the answer arrives.
    ///
    /// # Errors
    ///
    /// [`InspectError::Unanswered`] if too few servers answered.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it changes nothing.
    pub async fn inspect(&self) -> Result<Inspection, InspectError> {
        self.inspected(false).await
    }

    /// Like [`Lock::inspect`], but also reads at a replica, or as a user without write permission.
    /// The answer may be out of date; [`Inspection::source`] says where it comes from.
    ///
    /// Such a user needs `EVAL`, `EVALSHA` and the commands that read, on all three keys. From the
    /// first call on, this client stays connected to a replica, which refuses everything else.
    ///
    /// # Errors
    ///
    /// [`InspectError::Unanswered`] if too few servers answered.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it changes nothing.
    pub async fn inspect_unproved(&self) -> Result<Inspection, InspectError> {
        self.inspected(true).await
    }

    async fn inspected(&self, unproved: bool) -> Result<Inspection, InspectError> {
        let key = self.key()?;
        match self.ask_node(&key, Op::Inspect { key: key.clone(), unproved }).await? {
            Reply::Inspected(inspection) => Ok(inspection),
            _ => Err(stopped(&key)),
        }
    }

    /// Checks whether each server would vote on this lock now, in the order of the addresses.
    ///
    /// A single server votes whenever it answers. One of several does not vote if it may have
    /// forgotten locks, if its clock was stepped, if another address leads to the same server, or
    /// if it is a replica. Only an acquisition shows whether a server has room left, and permits
    /// this user what a lock needs.
    ///
    /// # Errors
    ///
    /// [`InspectError::Config`] for a bad TTL. A server's failure is in its report.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it changes nothing.
    pub async fn nodes(&self) -> Result<Vec<NodeReport>, InspectError> {
        let key = self.key()?;
        let bad = |error| InspectError::Config { key: Some(key.clone()), error };
        let max_ttl = self.settings.max_ttl().map_err(bad)?;
        let mode = MarkerMode::Peek;
        let asked = Some(key.clone());
        let command = |reply| Command::Nodes { key: asked, max_ttl, mode, reply };
        let reports = self.engine.ask(command).await;
        reports.ok_or_else(|| stopped(&key))
    }

    fn key(&self) -> Result<LockKey, InspectError> {
        self.settings.key().map_err(|error| InspectError::Config { key: None, error })
    }

    async fn acquire_waiting(&self, wait: Wait) -> Result<LockGuard, AcquireError> {
        match self.ask(How::Try, wait).await? {
            Ok(guard) => Ok(guard),
            Err(missed) => Err(missed.into_error()),
        }
    }

    async fn ask(&self, how: How, wait: Wait) -> Result<Result<LockGuard, Missed>, AcquireError> {
        let request = self.settings.request(how, wait, &self.default_label);
        let key = || self.settings.key().ok();
        let request = request.map_err(|error| AcquireError::Config { key: key(), error })?;
        let engine = &self.engine;
        let span = event::acquisition(&request.key, &request.class);
        let key = request.key.clone();
        let command = |reply| Command::Acquire { request, reply };
        match engine
            .ask(command)
            .instrument(span)
            .await
            .unwrap_or_else(|| Err(AcquireError::EngineStopped { key: key.clone() }))
            .map_err(|error| error.of_lock(&key))?
        {
            Acquired::Yes(holding) => Ok(Ok(LockGuard::new(holding, engine.clone()))),
            Acquired::Held { held, waited } => Ok(Err(Missed { key, waited, held: Some(held) })),
            Acquired::Free => Ok(Err(Missed { key, waited: Duration::ZERO, held: None })),
            Acquired::NotALock(found) => Err(AcquireError::NotALock { key, found }),
        }
    }

    async fn ask_node(&self, key: &LockKey, op: Op) -> Result<Reply, InspectError> {
        let answer = self.engine.ask(|reply| Command::Ask { op, reply }).await;
        let answer: Result<Reply, NodeErrors> = answer.ok_or_else(|| stopped(key))?;
        answer.map_err(|errors| InspectError::Unanswered(errors.of_lock(key)))
    }
}

fn stopped(key: &LockKey) -> InspectError {
    InspectError::EngineStopped { key: Some(key.clone()) }
}

/// Does the work until the lease is lost. Not with tokio's `select!`, which polls nothing once the
/// budget of the surrounding tokio task is spent: another executor that blocks in that task would
/// wait forever.
async fn until_lost<T>(
    work: impl Future<Output = T>,
    lost: impl Future<Output = LossReason>,
) -> Result<T, LossReason> {
    let (mut work, mut lost) = (pin!(work), pin!(lost));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => lost.as_mut().poll(cx).map(Err),
    })
    .await
}

/// A lock that was not had.
struct Missed {
    key: LockKey,
    waited: Duration,
    held: Option<Held>,
}

impl Missed {
    fn into_error(self) -> AcquireError {
        let Self { key, waited, held } = self;
        match held {
            Some(Held { holder, ttl_left }) => {
                AcquireError::TimedOut { key, waited, holder, ttl_left }
            }
            None => AcquireError::EngineStopped { key },
        }
    }
}

/// What a piece of work and the release after it come to.
pub(crate) fn finish<T>(output: T, released: Result<(), ReleaseError>) -> Result<T, RunError<T>> {
    match released {
        Ok(()) => Ok(output),
        Err(ReleaseError::NotHeld(loss)) => Err(RunError::Lost { loss, output: Some(output) }),
        Err(error) => Err(RunError::Release { error, output }),
    }
}
