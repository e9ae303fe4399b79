//! Whether the engines of tables in memory have anything left to do.
//!
//! They have no network to wait for: whatever a caller asks is done before its call returns. A
//! runtime with a paused clock depends on that. It moves its clock as soon as its tasks are idle,
//! and would fire every time-out around a call that another thread has yet to answer.

use std::{
    cell::Cell,
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::address::Address;

/// Engines that may have work for each other.
#[derive(Debug, Default)]
struct Quiet {
    state: Mutex<WorkState>,
    became: Condvar,
}

#[derive(Debug, Default)]
struct WorkState {
    /// Engines that have something to do.
    busy: usize,
    /// How often none had.
    moments: u64,
}

/// The work of one engine.
#[derive(Debug)]
pub(crate) struct Work {
    quiet: Arc<Quiet>,
    load: Mutex<Load>,
}

#[derive(Debug, Default)]
struct Load {
    /// Commands and messages on their way to the engine.
    coming: usize,
    is_busy: bool,
    is_over: bool,
}

thread_local! {
    /// An engine must not wait for itself. Without a destructor, so usable to the thread's end.
    static IS_ENGINE: Cell<bool> = const { Cell::new(false) };
}

impl Work {
    /// For an engine with these nodes; `None` when one of them is not in memory.
    pub(crate) fn of(nodes: &[Address]) -> Option<Arc<Self>> {
        let names = nodes.iter().map(|node| match node {
            Address::Memory(name) => Some(name.is_some()),
            #[cfg(feature = "sqlite")]
            Address::File(_) => None,
            Address::Server(_) => None,
        });
        let names: Vec<_> = names.collect::<Option<_>>()?;
        // Clients share the tables that have a name.
        static SHARED: LazyLock<Arc<Quiet>> = LazyLock::new(Arc::default);
        let quiet = if names.contains(&true) { Arc::clone(&SHARED) } else { Arc::default() };
        Some(Arc::new(Self { quiet, load: Mutex::default() }))
    }

    /// This thread is the engine's.
    pub(crate) fn adopt_thread() {
        IS_ENGINE.set(true);
    }

    /// Something is about to be sent to the engine; returns the moments of quiet so far.
    pub(crate) fn expect(&self) -> u64 {
        let mut load = lock(&self.load);
        load.coming += 1;
        self.begin(&mut load);
        lock(&self.quiet.state).moments
    }

    /// The engine has taken it, or it could not be sent.
    pub(crate) fn arrived(&self) {
        let mut load = lock(&self.load);
        load.coming = load.coming.saturating_sub(1);
    }

    /// The engine goes on.
    pub(crate) fn resume(&self) {
        self.begin(&mut lock(&self.load));
    }

    /// The engine has nothing to do but what is on its way.
    pub(crate) fn rest(&self) {
        let mut load = lock(&self.load);
        if load.coming == 0 {
            self.end(&mut load);
        }
    }

    /// The engine has stopped.
    pub(crate) fn stop(&self) {
        let mut load = lock(&self.load);
        load.is_over = true;
        self.end(&mut load);
    }

    /// Waits until no engine has anything to do, once after `moments`.
    pub(crate) fn until_quiet(&self, moments: u64) {
        if IS_ENGINE.get() {
            return;
        }
        let state = lock(&self.quiet.state);
        let goes_on = |state: &mut WorkState| state.moments == moments && state.busy > 0;
        // When it takes too long the caller waits as it would for a server.
        drop(self.quiet.became.wait_timeout_while(state, MAX, goes_on));
    }

    fn begin(&self, load: &mut Load) {
        if !load.is_busy && !load.is_over {
            load.is_busy = true;
            lock(&self.quiet.state).busy += 1;
        }
    }

    fn end(&self, load: &mut Load) {
        if std::mem::take(&mut load.is_busy) {
            let mut state = lock(&self.quiet.state);
            state.busy -= 1;
            if state.busy == 0 {
                state.moments += 1;
                self.quiet.became.notify_all();
            }
        }
    }
}

/// A change is one assignment, which no panic can cut in half.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An engine of tables in memory needs microseconds; this is for one that gets no processor.
const MAX: Duration = Duration::from_secs(1);
