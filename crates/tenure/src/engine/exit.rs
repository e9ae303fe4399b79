//! The end of the program: what handles in a `static` have released is written before it.
//!
//! Nobody drops a `static`, so the last handle's flush never comes. The C library calls this one,
//! on the way out of `main` and of [`std::process::exit`].

use std::{
    mem,
    sync::{Arc, Condvar, Mutex, Once, PoisonError, TryLockError, Weak},
    thread,
    time::{Duration, Instant},
};

use super::{Command, EXIT_FLUSH, EXIT_GRACE, Inner};

/// The engines of this process.
static ENGINES: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Has an engine flushed at the end of the program.
pub(super) fn register(engine: &Arc<Inner>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[expect(unsafe_code, reason = "no safe crate registers an exit handler")]
        // SAFETY: the function may be called at any time, on any thread, and does not unwind. When
        // the C library has no room for it, nothing is flushed at the end.
        unsafe {
            libc::atexit(flush);
        }
    });
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    engines.retain(|engine| engine.strong_count() > 0);
    engines.push(Arc::downgrade(engine));
}

/// Waits, at most as long as the last handle's drop, until all that was released is written.
///
/// Uses no thread-local value with a destructor: those of this thread may be gone.
extern "C" fn flush() {
    let end = Instant::now() + EXIT_FLUSH + EXIT_GRACE;
    let mut flushed = Vec::new();
    for engine in engines(end).iter().filter_map(Weak::upgrade) {
        if engine.status.is_alive() && engine.status.has_open_releases() {
            let done = Arc::new(Done::default());
            engine.inbox.send(Command::Flush(Flush(Arc::clone(&done))));
            flushed.push(done);
        }
        // It may have become the last handle, whose drop is not made for this moment.
        mem::forget(engine);
    }
    for done in flushed {
        done.wait_until(end);
    }
}

/// The engines, unless the list stays locked: in a forked child it may.
fn engines(end: Instant) -> Vec<Weak<Inner>> {
    loop {
        match ENGINES.try_lock() {
            Ok(mut engines) => return mem::take(&mut engines),
            Err(TryLockError::Poisoned(engines)) => return mem::take(&mut engines.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
struct Done {
    is_done: Mutex<bool>,
    changed: Condvar,
}

impl Done {
    fn wait_until(&self, end: Instant) {
        let is_done = self.is_done.lock().unwrap_or_else(PoisonError::into_inner);
        let left = end.saturating_duration_since(Instant::now());
        drop(self.changed.wait_timeout_while(is_done, left, |is_done| !*is_done));
    }
}

/// A flush under way: dropped when it is over, or when nobody can do it.
#[derive(Debug)]
pub(crate) struct Flush(Arc<Done>);

impl Drop for Flush {
    fn drop(&mut self) {
        *self.0.is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}
