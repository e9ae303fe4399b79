//! The stock keeper: the resource that the lock protects.
//!
//! It stands for a database, a file store, a payment service: something that workers reach over a
//! wire and that knows nothing about locks. All it knows is the fence. Workers send it lines:
//!
//! ```text
//! read [NUMBER TOKEN]         →  the pieces left, or `stale`
//! write LEFT [NUMBER TOKEN]   →  `ok`, or `stale`
//! ```
//!
//! `NUMBER` and `TOKEN` are the fencing number and the token of the worker's lease.

use std::{
    error::Error,
    io::{self, BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use tenure::{FenceGate, FencingToken, Token};

/// The keeper, with its door open.
pub(crate) struct Keeper {
    socket: PathBuf,
    desk: Arc<Desk>,
}

#[derive(Default)]
struct Desk {
    ledger: Mutex<Ledger>,
    was_read: Condvar,
    /// The whole of fencing on the side of the resource.
    gate: FenceGate,
}

/// What happened to the stock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) left: u32,
    pub(crate) refused: u32,
    /// The fencing number of each sale, in order; 0 for one without.
    pub(crate) numbers: Vec<u64>,
    reads: u32,
}

impl Ledger {
    /// A worker sells a piece for each write that was taken.
    pub(crate) fn sold(&self) -> u32 {
        u32::try_from(self.numbers.len()).unwrap_or(u32::MAX)
    }
}

impl Keeper {
    /// Opens a shop with this stock, at a socket of its own.
    pub(crate) fn open(stock: u32) -> io::Result<Self> {
        let socket = std::env::temp_dir().join(format!("tenure-stock-{}", std::process::id()));
        let listener = UnixListener::bind(&socket)?;
        let desk = Arc::new(Desk::default());
        desk.ledger().left = stock;
        let behind = Arc::clone(&desk);
        thread::spawn(move || {
            for worker in listener.incoming().flatten() {
                let desk = Arc::clone(&behind);
                thread::spawn(move || desk.serve(worker));
            }
        });
        Ok(Self { socket, desk })
    }

    /// Where the workers find it.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until a worker has read the stock.
    pub(crate) fn wait_for_a_read(&self) {
        let was_read = &self.desk.was_read;
        let ledger = was_read.wait_while(self.desk.ledger(), |ledger| ledger.reads == 0);
        drop(ledger);
    }

    /// Closes the door and gives the ledger.
    pub(crate) fn close(self) -> Ledger {
        drop(std::fs::remove_file(&self.socket));
        self.desk.ledger().clone()
    }
}

impl Desk {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one worker, line by line, until it goes.
    fn serve(&self, worker: UnixStream) {
        let lines = BufReader::new(&worker).lines().map_while(Result::ok);
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let answer = self.answer(&words).unwrap_or_else(|error| format!("what? {error}"));
            if writeln!(&worker, "{answer}").is_err() {
                return;
            }
        }
    }

    /// Each single request is atomic, as it would be in a database. What is not atomic, and what
    /// the lock is for, is a worker's read and write together.
    fn answer(&self, words: &[&str]) -> Result<String, Box<dyn Error>> {
        let mut ledger = self.ledger();
        let number = match words {
            ["read", fence @ ..] | ["write", _, fence @ ..] => self.admit(fence)?,
            _ => return Err("unknown request".into()),
        };
        let Some(number) = number else {
            ledger.refused += 1;
            return Ok("stale".into());
        };
        match words {
            ["write", left, ..] => {
                ledger.left = left.parse()?;
                ledger.numbers.push(number);
                Ok("ok".into())
            }
            _ => {
                ledger.reads += 1;
                self.was_read.notify_all();
                Ok(ledger.left.to_string())
            }
        }
    }

    /// The number that was shown, 0 without one, or `None` when it is stale.
    ///
    /// Reads show it too: else a stale write could slip in between the next holder's read, which
    /// would not have shown us its number, and its write.
    fn admit(&self, fence: &[&str]) -> Result<Option<u64>, Box<dyn Error>> {
        let [number, token] = fence else { return Ok(Some(0)) };
        let number = FencingToken::new(number.parse()?).ok_or("no fencing number")?;
        let token: Token = token.parse()?;
        Ok(self.gate.admit(number, &token).is_ok().then_some(number.get()))
    }
}
