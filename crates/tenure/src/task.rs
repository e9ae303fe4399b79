//! Tasks on the engine's thread.

use std::{future::Future, rc::Rc};

use tokio::sync::Notify;

thread_local! {
    /// Notified when a task of this thread panics or gives up.
    static OVER: Rc<Notify> = Rc::new(Notify::new());
}

/// Runs a future on the engine's thread.
///
/// The runtime would keep a task's panic to itself; here it ends the engine, since half a protocol
/// is worse than none.
pub(crate) fn spawn(future: impl Future<Output = ()> + 'static) {
    drop(tokio::task::spawn_local(async move {
        let alarm = ThreadAlarm;
        future.await;
        std::mem::forget(alarm);
    }));
}

/// Ends the engine, from a task that cannot do its work.
pub(crate) fn give_up() {
    OVER.with(|over| over.notify_one());
}

/// Waits until a task of this thread has panicked or given up.
pub(crate) async fn given_up() {
    OVER.with(Rc::clone).notified().await;
}

struct ThreadAlarm;

impl Drop for ThreadAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            give_up();
        }
    }
}
