//! A lock: what is wanted, and how.

mod settings;

use std::time::Duration;

use tenure_core::{Holder, HolderLabel, Inspection, LossReason, Op, Release, Reply, Token, Wait};
use tracing::Instrument as _;

pub use self::settings::Renewal;
use self::settings::Settings;
use crate::{
    engine::{Acquired, Command, Engine, How},
    error::{AcquireError, InspectError, NodeError, ReleaseError, RunError},
    event,
    guard::{Lease, LockGuard},
};

/// A named lock, and how it is to be taken: a cheap handle, not a holding.
///
/// Made by [`Client::lock`](crate::Client::lock). A setting that cannot be used is kept, and
/// returned by the first call before anything is sent.
#[derive(Clone, Debug)]
pub struct Lock {
    engine: Engine,
    default_label: HolderLabel,
    settings: Settings,
}

/// Settings.
impl Lock {
    pub(crate) fn new(engine: Engine, default_label: HolderLabel, key: &[u8]) -> Self {
        Self { engine, default_label, settings: Settings::new(key) }
    }

    /// The lifetime of the key: how long others wait for a holder that died.
    ///
    /// 10 s unless set; from 100 ms (10 ms with [`Renewal::Manual`]) to 2^53 ms. A longer one
    /// outlasts longer outages of the server; a shorter one frees the lock sooner after a crash and
    /// costs more renewals. It says nothing about how long the lock may be held: see
    /// [`Lock::renewal`] and [`Lock::max_hold`].
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long [`Lock::acquire`] and [`Lock::run`] wait; [`Wait::Forever`] unless set.
    ///
    /// A wait without an end outlasts an outage of the server only after the server has answered
    /// once that the lock is held: a server that was never reached fails the call.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.settings.wait = wait;
        self
    }

    /// Whether the lease is renewed in the background; [`Renewal::Background`] unless set.
    #[must_use]
    pub fn renewal(mut self, renewal: Renewal) -> Self {
        self.settings.renewal = renewal;
        self
    }

    /// The longest a lease may be held; without an end unless set.
    ///
    /// When it is over, [`LockGuard::lost`] resolves and nothing is renewed any more: the bound on
    /// a task that hangs. The key then still lives for up to the TTL, so the holder has time to
    /// stop.
    #[must_use]
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.settings.max_hold = Some(longest);
        self
    }

    /// The least validity that a new lease must have left; none unless set.
    ///
    /// An answer that comes so late that less is left counts as no answer, and the attempt is
    /// undone.
    #[must_use]
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.settings.min_validity = Some(least);
        self
    }

    /// How long each of several servers may take to grant or refuse the lock: a twentieth of the
    /// TTL unless set, from 50 ms to 1 s. One server alone has more time.
    ///
    /// All are asked at once, so a server that hangs costs this once, and only where the others do
    /// not decide without it.
    #[must_use]
    pub fn node_limit(mut self, longest: Duration) -> Self {
        self.settings.node_limit = Some(longest);
        self
    }

    /// The label that others see as the holder: `host/pid` unless set, at most 64 bytes.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.settings.label = Some(label.into());
        self
    }

    /// Has one in so many hand-overs, on average, leave the key free for 300 ms first; never unless
    /// set, and at least 1.
    ///
    /// While waiters of tenure queue, a release hands the lock to the next of them, and the clients
    /// of other libraries, which poll, never find it free: without this they starve for as long as
    /// there is a queue. With it, a release leaves the key free a little longer than most of them
    /// pause, and the next waiter in the queue takes it after that if nobody else has. It costs
    /// that pause, and how often the others win is theirs: a chance, and no place in the queue.
    #[must_use]
    pub fn let_others_in(mut self, hand_overs: u32) -> Self {
        self.settings.let_others_in = Some(hand_overs);
        self
    }

    /// The name under which this lock is counted in metrics: `default` unless set.
    ///
    /// Keys are without number and make no good label; name the kind of lock instead.
    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        self.settings.class = class.into();
        self
    }
}

/// Operations.
impl Lock {
    /// Runs work under the lock: acquires it, renews it, releases it.
    ///
    /// When the lease is lost, the work's future is dropped at its next await. What it has spawned,
    /// and code that does not await, goes on: such work should look at
    /// [`Lease::ensure_held`], and the resource at [`Lease::fencing_token`].
    ///
    /// # Errors
    ///
    /// [`RunError`], which has the work's output inside wherever there is one.
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
        let work = work(guard.lease()).instrument(event::work(guard.key(), guard.fencing_token()));
        let ended = tokio::select! {
            biased;
            output = work => Ok(output),
            reason = guard.lost() => Err(reason),
        };
        match ended {
            Ok(output) => finish(output, guard.release().await),
            Err(reason) => {
                // The loss is the news; what the release adds is logged.
                _ = guard.release().await;
                Err(RunError::Lost { reason, output: None })
            }
        }
    }

    /// Acquires the lock, waiting as [`Lock::wait`] says.
    ///
    /// At one node waiters are served in the order in which they came. Several nodes have no queue:
    /// all who wait are told of a release and try again, each after a random time of a few round
    /// trips; whoever has a majority first has the lock.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TimedOut`] when another held the lock for the whole wait, and
    /// [`AcquireError::NoQuorum`] when the server could not tell: never the one for the other.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. Dropping the future ends the wait. A key that was set already is released in
    /// the background; until then others may see the lock as held, at most for the TTL.
    pub async fn acquire(&self) -> Result<LockGuard, AcquireError> {
        self.acquire_waiting(self.settings.wait).await
    }

    /// Acquires the lock, waiting at most this long; zero is one try.
    ///
    /// A lock that is free at the last moment is still taken, and none is taken later.
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

    /// Acquires the lock if it is free now; `None` when another holds it.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NoQuorum`] when the server could not tell.
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`].
    pub async fn try_acquire(&self) -> Result<Option<LockGuard>, AcquireError> {
        Ok(self.ask(How::Try, Wait::No).await?.ok())
    }

    /// Takes up a lease again by its token, from [`LockGuard::detach`] or another process.
    ///
    /// The number stays the same and the TTL is raised, never lowered. `None` when the token holds
    /// the lock no more: a lease that has ended is not taken again as if it had never ended.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NoQuorum`] when the server could not tell.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. Dropping the future may release the lease, if it was already taken up.
    pub async fn resume(&self, token: Token) -> Result<Option<LockGuard>, AcquireError> {
        Ok(self.ask(How::Resume(token), Wait::No).await?.ok())
    }

    /// Releases the lock if this token holds it: for a token of [`LockGuard::detach`], without
    /// taking the lease up again.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::NotHeld`] when the token holds the lock no more: `Taken` when another does,
    /// `Gone` when nobody does. Another's key is never touched.
    /// [`ReleaseError::Unconfirmed`] when the server could not tell; it is not repeated here.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the request back.
    pub async fn release(&self, token: &Token) -> Result<(), ReleaseError> {
        let key = self.settings.key().map_err(ReleaseError::Config)?;
        let (token, entries) = (token.clone(), Vec::new());
        let reply = self
            .ask_node(Op::Release { key, token, entries, bury: false, open_ms: 0, number: None })
            .await;
        let reason = match reply {
            Ok(Reply::Released { release: Release::Released(_), .. }) => return Ok(()),
            Ok(Reply::Released { release: Release::Other(holder), .. }) => {
                LossReason::Taken { holder }
            }
            Ok(Reply::Released { release: Release::Free, .. }) => LossReason::Gone,
            Err(InspectError::Unanswered(error)) => return Err(ReleaseError::Unconfirmed(error)),
            _ => return Err(ReleaseError::EngineStopped),
        };
        Err(ReleaseError::NotHeld(reason))
    }

    /// Takes the lock whoever holds it. The holder notices at its next renewal at the latest, and
    /// both may act until then: only for when the holder is known to be gone, or fenced off.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NoQuorum`] when the server could not tell.
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`]; the earlier holder does not get the lock back.
    pub async fn steal(&self) -> Result<LockGuard, AcquireError> {
        match self.ask(How::Steal, Wait::No).await? {
            Ok(guard) => Ok(guard),
            Err(missed) => Err(missed.into_error()),
        }
    }

    /// Deletes the key whoever holds it, and says who did; `None` when nobody did.
    ///
    /// As with [`Lock::steal`], the holder goes on until it notices. Some other libraries set the
    /// key again when they renew.
    ///
    /// # Errors
    ///
    /// [`InspectError::Unanswered`] when the server could not tell; the key may be deleted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the request back.
    pub async fn force_release(&self) -> Result<Option<Holder>, InspectError> {
        let key = self.settings.key().map_err(InspectError::Config)?;
        match self.ask_node(Op::ForceRelease { key }).await? {
            Reply::Released { release: Release::Released(holder), .. } => Ok(Some(holder)),
            _ => Ok(None),
        }
    }

    /// Reads who holds the lock, for people: it may have changed by the time the answer is here.
    ///
    /// # Errors
    ///
    /// [`InspectError::Unanswered`] when the server could not tell.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it changes nothing.
    pub async fn inspect(&self) -> Result<Inspection, InspectError> {
        let key = self.settings.key().map_err(InspectError::Config)?;
        match self.ask_node(Op::Inspect { key }).await? {
            Reply::Inspected(inspection) => Ok(inspection),
            _ => Err(InspectError::EngineStopped),
        }
    }

    async fn acquire_waiting(&self, wait: Wait) -> Result<LockGuard, AcquireError> {
        match self.ask(How::Try, wait).await? {
            Ok(guard) => Ok(guard),
            Err(missed) => Err(missed.into_error()),
        }
    }

    async fn ask(&self, how: How, wait: Wait) -> Result<Result<LockGuard, Missed>, AcquireError> {
        let request = self.settings.request(how, wait, &self.default_label);
        let request = request.map_err(AcquireError::Config)?;
        let engine = &self.engine;
        let span = event::acquisition(&request.key, &request.class);
        let command = |reply| Command::Acquire { request: Box::new(request), reply };
        match engine
            .ask(command)
            .instrument(span)
            .await
            .unwrap_or(Err(AcquireError::EngineStopped))?
        {
            Acquired::Yes(holding) => Ok(Ok(LockGuard::new(holding, engine.clone()))),
            Acquired::Held { held, waited } => {
                Ok(Err(Missed { waited, holder: Some(held.holder) }))
            }
            Acquired::Free => Ok(Err(Missed { waited: Duration::ZERO, holder: None })),
        }
    }

    async fn ask_node(&self, op: Op) -> Result<Reply, InspectError> {
        let answer = self.engine.ask(|reply| Command::Ask { op, reply }).await;
        let answer: Result<Reply, NodeError> = answer.ok_or(InspectError::EngineStopped)?;
        answer.map_err(InspectError::Unanswered)
    }
}

/// A lock that was not had.
struct Missed {
    waited: Duration,
    holder: Option<Holder>,
}

impl Missed {
    fn into_error(self) -> AcquireError {
        let Self { waited, holder } = self;
        holder
            .map_or(AcquireError::EngineStopped, |holder| AcquireError::TimedOut { waited, holder })
    }
}

/// What a piece of work and the release after it come to.
pub(crate) fn finish<T>(output: T, released: Result<(), ReleaseError>) -> Result<T, RunError<T>> {
    match released {
        Ok(()) => Ok(output),
        Err(ReleaseError::NotHeld(reason)) => Err(RunError::Lost { reason, output: Some(output) }),
        Err(error) => Err(RunError::Release { error, output }),
    }
}
