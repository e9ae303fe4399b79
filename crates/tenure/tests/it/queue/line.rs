//! A lock that is held, and callers that wait for it one behind the other.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::Path,
    pin::Pin,
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tenure::{
    AcquireError, LockGuard, ReleaseError,
    blocking::{Client, Lock},
};
use tenure_testkit::{Monitor, Server, eventually, scale};

use crate::{
    LIMIT, program,
    program::{Program, heed, setting},
};

/// A waiter that may be cancelled.
pub(super) type Acquiring = Pin<Box<dyn Future<Output = Result<LockGuard, AcquireError>>>>;

/// One who had the lock.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) who: usize,
    pub(crate) number: u64,
    pub(crate) at: Instant,
}

/// The waiters. Each holds the lock for no longer than it takes to say so.
pub(crate) struct Line {
    look: Lock,
    says: Sender<Served>,
    served: Receiver<Served>,
    waiters: Vec<JoinHandle<()>>,
}

impl Line {
    /// Before the lock that `look` looks at.
    pub(crate) fn before(look: Lock) -> Self {
        let (says, served) = channel();
        Self { look, says, served, waiters: Vec::new() }
    }

    /// How many are in the queue, by the server's word.
    pub(crate) fn waiting(&self) -> u64 {
        self.look.inspect().unwrap().waiting.unwrap()
    }

    /// One more waiter, which is behind all others when this returns.
    pub(crate) fn join(&mut self, lock: &Lock) {
        let before = self.waiting();
        self.ask(lock);
        self.grows_to(before + 1);
    }

    /// One more, who may not stand anywhere yet.
    pub(crate) fn ask(&mut self, lock: &Lock) {
        let (who, says, lock) = (self.waiters.len(), self.says.clone(), lock.clone());
        self.waiters.push(thread::spawn(move || {
            let guard = lock.acquire_within(LIMIT * 6).unwrap();
            let number = guard.fencing_token().get();
            // The test may have failed meanwhile.
            drop(says.send(Served { who, number, at: Instant::now() }));
            // Its connection may end before the answer: then it goes on releasing by itself.
            let released = guard.release();
            assert!(!matches!(released, Err(ReleaseError::NotHeld(_))), "{released:?}");
        }));
    }

    /// One more, who is in another process.
    pub(crate) fn join_from(&self, program: &mut Program, who: &str) {
        let before = self.waiting();
        program.tell(who);
        self.grows_to(before + 1);
    }

    fn grows_to(&self, count: u64) {
        eventually(LIMIT, "it is in the queue", || self.waiting() == count);
    }

    /// The next who had the lock.
    pub(crate) fn next(&self) -> Served {
        self.served.recv_timeout(LIMIT).expect("somebody has the lock")
    }

    /// All holders since then, in their order, once every waiter has been served.
    pub(crate) fn all(self) -> Vec<Served> {
        self.waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        drop(self.says);
        let served: Vec<_> = self.served.into_iter().collect();
        assert!(served.is_sorted_by(|a, b| a.number < b.number), "numbers do not grow: {served:?}");
        served
    }

    /// Everybody had it, in the order in which they came.
    pub(crate) fn was_served_in_order(self) {
        let who: Vec<_> = self.all().iter().map(|served| served.who).collect();
        assert!(who.is_sorted_by(|a, b| a < b), "served in this order: {who:?}");
    }
}

/// A process with waiters in the queue: one for each line that it reads, until "end". Each
/// writes that line to a file when it has the lock.
pub(crate) fn wait_in_queue() {
    let client = Client::connect(&setting("SERVER")).unwrap();
    let ttl = Duration::from_millis(setting("TTL_MS").parse().unwrap());
    let lock = client.lock(setting("KEY")).ttl(ttl).label("process");
    let log = setting("LOG");
    let mut waiters = Vec::new();
    program::say("ready");
    loop {
        let line = heed();
        if line == "end" {
            break;
        }
        let (lock, log) = (lock.clone(), log.clone());
        waiters.push(thread::spawn(move || {
            let guard = lock.acquire_within(LIMIT * 6).unwrap();
            note(Path::new(&log), &line);
            guard.release().unwrap();
        }));
    }
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
}

/// Adds a line to a file that several processes write.
fn note(log: &Path, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(log).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A process with waiters in the queue.
pub(crate) fn start(server: &str, key: &str, ttl: Duration, log: &Path) -> Program {
    let (ttl, log) = (ttl.as_millis().to_string(), log.display().to_string());
    let settings = [("SERVER", server), ("KEY", key), ("TTL_MS", &ttl), ("LOG", &log)];
    let mut program = Program::start("wait in the queue", &settings);
    assert_eq!(program.hear(), "ready");
    program
}

/// The labels of those whom the lock was set for since, in that order.
pub(super) fn granted(monitor: &mut Monitor, key: &str) -> Vec<String> {
    let set = format!("\"SET\" \"{key}\" \"");
    let lines = monitor.so_far();
    let tokens = lines.iter().filter_map(|line| line.split_once(&set)?.1.split('"').next());
    tokens.filter_map(|token| Some(token.split_once('@')?.1.to_owned())).collect()
}

/// The key of the queue, of a lock whose name has no braces.
pub(crate) fn queue(key: &str) -> String {
    format!("{{{key}}}:tenure.queue")
}

/// The channels of the queued waiters, in order.
pub(crate) fn channels(server: &Server, key: &str) -> Vec<String> {
    let entries = server.cmd(&["ZRANGEBYSCORE", &queue(key), "-inf", "(8e15"]);
    let channel = |entry: &str| entry.split(' ').nth(1).map(str::to_owned);
    entries.array().iter().filter_map(|entry| channel(entry.text()?)).collect()
}

/// Whether the lock is free, nobody is in its queue, and whatever else there is ends.
pub(crate) fn nothing_is_left(server: &Server, key: &str) -> bool {
    let ends = |key: &str| server.cmd(&["PTTL", key]).int() != -1;
    let fence = format!("{{{key}}}:tenure.fence");
    assert!(ends(key) && ends(&queue(key)) && ends(&fence), "a key without a TTL");
    server.cmd(&["EXISTS", key]).int() == 0 && channels(server, key).is_empty()
}

/// Prints how long something took, and holds it to that only in the soak.
#[expect(clippy::print_stdout, reason = "figures are part of the output of tests")]
pub(crate) fn figure(what: &str, took: Duration, most: Duration) {
    println!("figure: {what}: {:.1} ms of {} ms", took.as_secs_f64() * 1e3, most.as_millis());
    if scale(0, 1) == 1 {
        assert!(took <= most, "{what}: {took:?}, at most {most:?}");
    }
}
