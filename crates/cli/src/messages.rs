//! Messages on standard error. None of them ever holds up the tool: it may hold a lock.

use std::{
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use crate::{
    failure::one_line,
    system::{Standard, block_terminal_stops},
};

/// Says something on standard error, as one line. Returns at once: when nobody reads, the line is
/// dropped.
pub(crate) fn say(message: &str) {
    // One write, so that lines of several tools on one terminal do not mix.
    let line = format!("tenure: {}\n", one_line(message));
    match WRITER.get_or_init(Writer::start) {
        Some(writer) => writer.push(line),
        // Without a thread it is written only where that takes no time.
        None if Standard::Error.is_writable() => _ = Standard::Error.write_all(line.as_bytes()),
        None => {}
    }
}

/// Waits until all messages are written, but no longer than a reader that is there needs.
pub(crate) fn flush() {
    if let Some(Some(writer)) = WRITER.get() {
        writer.flush();
    }
}

static WRITER: OnceLock<Option<Writer>> = OnceLock::new();

/// A thread that writes lines. It has its own blocking write: others share the descriptor, so it
/// must not be made non-blocking for them.
#[derive(Debug)]
struct Writer {
    lines: SyncSender<String>,
    unwritten: Arc<Unwritten>,
}

#[derive(Debug, Default)]
struct Unwritten {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Writer {
    /// Starts the thread; `None` when the system has none left.
    fn start() -> Option<Self> {
        let (lines, receiver) = sync_channel(MAX_LINES);
        let unwritten = Arc::new(Unwritten::default());
        let shared = Arc::clone(&unwritten);
        let thread = thread::Builder::new().name("tenure-messages".into());
        thread.spawn(move || write(&receiver, &shared)).ok()?;
        Some(Self { lines, unwritten })
    }

    fn push(&self, line: String) {
        *self.unwritten.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        if self.lines.try_send(line).is_err() {
            self.unwritten.done();
        }
    }

    fn flush(&self) {
        let mut blocked = Duration::ZERO;
        for _ in 0..MAX_SLICES {
            let count = self.unwritten.count.lock().unwrap_or_else(PoisonError::into_inner);
            let waited =
                self.unwritten.changed.wait_timeout_while(count, SLICE, |count| *count > 0);
            let is_over = waited.is_ok_and(|(_, waited)| !waited.timed_out());
            // On a busy machine the thread may have to wait for its turn.
            blocked = if Standard::Error.is_writable() { Duration::ZERO } else { blocked + SLICE };
            if is_over || blocked >= FLUSH {
                return;
            }
        }
    }
}

impl Unwritten {
    fn done(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.changed.notify_all();
    }
}

fn write(lines: &Receiver<String>, unwritten: &Unwritten) {
    block_terminal_stops();
    for line in lines {
        // A standard error that is closed or full takes no messages.
        _ = Standard::Error.write_all(line.as_bytes());
        unwritten.done();
    }
}

/// More than the tool ever says in one go.
const MAX_LINES: usize = 64;

/// How long a reader that takes nothing is waited for at the end.
const FLUSH: Duration = Duration::from_millis(250);

/// How often it is looked whether anybody reads.
const SLICE: Duration = Duration::from_millis(50);

/// Five seconds: on a busier machine even a reader that is there misses the last message.
const MAX_SLICES: u32 = 100;
