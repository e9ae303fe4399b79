//! The client of a hostile server: a program of its own, so that its memory can be measured.

use std::{
    fs,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use tenure::{
    AcquireError, Lease, LossReason, ReleaseError,
    blocking::{Client, LockGuard},
};

use crate::{
    ms,
    program::{heed, say, setting},
    secs,
};

/// What the tests here start, by name.
pub(crate) const PROGRAMS: [(&str, fn()); 1] = [("be a hostile server's client", obey)];

const TTL: Duration = secs(1);

/// Does what the test says, a line each, and says what came of it.
fn obey() {
    let mut held = None;
    // Once with everybody honest: what all of it needs is no growth.
    drop(acquire(&mut held));
    held = None;
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmHWM:");
    say("ready");
    loop {
        let began = Instant::now();
        let took = |word: &str| format!("{word} {}", began.elapsed().as_millis());
        let said = match heed().as_str() {
            "acquire" => acquire(&mut held),
            "drop" => {
                held = None;
                took("dropped")
            }
            "release" => {
                let Held { guard, _client, .. } = held.take().unwrap();
                match guard.release() {
                    Ok(()) => took("released"),
                    Err(ReleaseError::Unconfirmed(errors)) => {
                        format!("{} {errors}", took("unconfirmed"))
                    }
                    Err(error) => format!("{} {error}", took("lost")),
                }
            }
            "wait" => held.as_ref().unwrap().wait(3 * TTL / 2),
            "wait long" => held.as_ref().unwrap().wait(10 * TTL),
            "memory" => format!("memory {}", memory("VmHWM:") - before),
            _ => return,
        };
        say(&said);
    }
}

/// Over connections of its own: those of before may have been ended.
fn acquire(held: &mut Option<Held>) -> String {
    let client = Client::connect(&setting("URLS")).unwrap();
    let began = Instant::now();
    let result = client.lock(setting("KEY")).ttl(TTL).acquire_within(TTL / 2);
    let took = began.elapsed().as_millis();
    match result {
        Ok(guard) => {
            let said = format!("granted {took} {}", guard.token().as_str());
            *held = Some(Held::new(client, guard));
            said
        }
        Err(error @ AcquireError::NoQuorum(_)) => format!("unknown {took} {error}"),
        Err(error) => format!("held {took} {error}"),
    }
}

/// A lease, and what is noted of it.
struct Held {
    guard: LockGuard,
    _client: Client,
    /// Its loss, and when it was reported.
    lost: mpsc::Receiver<(LossReason, Instant)>,
    notes: Arc<Mutex<Notes>>,
}

struct Notes {
    /// The lease's end by the last renewal.
    end: Instant,
    /// When this machine had no processor for a thread that only sleeps, and for how long.
    gaps: Vec<(Instant, Duration)>,
}

impl Notes {
    /// Writes down until the lease is lost.
    fn take(notes: &Mutex<Self>, lease: &Lease) {
        let mut before = Instant::now();
        while lease.ensure_held().is_ok() {
            thread::sleep(NAP);
            let now = Instant::now();
            let mut notes = notes.lock().unwrap();
            if let Some(left) = lease.valid_for() {
                notes.end = notes.end.max(now + left);
            }
            notes.gaps.push((now, (now - before).saturating_sub(NAP)));
            before = now;
        }
    }

    /// The longest gap when the loss was due.
    fn gap(&self) -> Duration {
        let due = self.end - TTL / 4;
        let gaps = self.gaps.iter().filter(|(at, _)| *at >= due);
        gaps.map(|(_, gap)| *gap).max().unwrap_or_default()
    }
}

const NAP: Duration = ms(2);

impl Held {
    fn new(client: Client, guard: LockGuard) -> Self {
        let (tell, lost) = mpsc::channel();
        let notes = Arc::new(Mutex::new(Notes { end: Instant::now(), gaps: Vec::new() }));
        // Both end with the lease.
        let lease = guard.lease();
        thread::spawn(move || {
            let reason = smol::block_on(lease.lost());
            _ = tell.send((reason, Instant::now()));
        });
        let (lease, of_thread) = (guard.lease(), Arc::clone(&notes));
        thread::spawn(move || Notes::take(&of_thread, &lease));
        Self { guard, _client: client, lost, notes }
    }

    /// Waits until the lease is lost, at most for so long; says how long after its end that was, in
    /// ms, without what the machine itself was late.
    fn wait(&self, longest: Duration) -> String {
        let lost = self.lost.recv_timeout(longest).ok();
        let now = lost.as_ref().map_or_else(Instant::now, |(_, at)| *at);
        let notes = self.notes.lock().unwrap();
        let (now, end) = (now - notes.gap(), notes.end);
        let ms = |span: Duration| i64::try_from(span.as_millis()).unwrap();
        let late = ms(now.saturating_duration_since(end)) - ms(end.saturating_duration_since(now));
        match lost {
            None => format!("held {late}"),
            Some((LossReason::Expired, _)) => format!("expired {late}"),
            Some((reason, _)) => format!("lost {late} {reason}"),
        }
    }
}

/// A figure of this process, in KiB.
fn memory(name: &str) -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
