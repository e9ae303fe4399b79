//! A process with some clients that all want the same lock.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use tenure::blocking::{Client, Lock, LockGuard};

use super::{holds::Hold, relay::Relay, setup::Contestant};
use crate::{
    Trouble,
    options::BenchOptions,
    process::{answer_orders, monotonic, sleep_until},
};

/// A client, whatever its side.
pub(super) trait Contender: Send {
    /// Waits for the lock; returns the number.
    fn acquire(&mut self) -> Result<u64, Trouble>;

    /// Releases it, and waits for the server's word.
    fn release(&mut self) -> Result<(), Trouble>;
}

/// Connects and contends as ordered.
pub(crate) fn contender(options: &mut BenchOptions) -> Result<(), Trouble> {
    let side: String = options.needed("side")?;
    let side = Contestant::named(&side).ok_or("no such side")?;
    let server: String = options.needed("server")?;
    let key: String = options.needed("key")?;
    let clients: u32 = options.needed("clients")?;
    let hold = Duration::from_micros(options.needed("hold-us")?);
    let mut idle: Vec<Box<dyn Contender>> = Vec::new();
    answer_orders(|order| match order.split_once(' ') {
        None => {
            for client in 0..clients {
                idle.push(connect(side, &server, &key, client)?);
            }
            Ok(Vec::new())
        }
        Some((_, until)) => contend(std::mem::take(&mut idle), hold, until.parse()?),
    })
}

fn connect(
    side: Contestant,
    server: &str,
    key: &str,
    client: u32,
) -> Result<Box<dyn Contender>, Trouble> {
    Ok(match side {
        Contestant::Tenure | Contestant::Polling => Box::new(Ours::connect(server, key, client)?),
        Contestant::Relay | Contestant::Control => Box::new(Relay::connect(server, key, client)?),
    })
}

/// Lets all of them loose until that moment, and answers with what they did. They go on until the
/// process ends: a waiter would not notice the moment.
fn contend(
    clients: Vec<Box<dyn Contender>>,
    hold: Duration,
    until: u64,
) -> Result<Vec<f64>, Trouble> {
    let mut loose = Vec::new();
    for (client, mut contender) in (0..).zip(clients) {
        let held = Arc::new(Mutex::new(Vec::with_capacity(ROOM)));
        let diary = Arc::clone(&held);
        let all = move || -> Result<(), Trouble> {
            loop {
                let asked = monotonic();
                let number = contender.acquire()?;
                let acquired = monotonic();
                if !hold.is_zero() {
                    thread::sleep(hold);
                }
                let released = monotonic();
                let hold = Hold { client, number, asked, acquired, released };
                // Before the release, which the next one may outrun: no hold is ever missing.
                diary.lock().unwrap_or_else(PoisonError::into_inner).push(hold);
                contender.release()?;
            }
        };
        loose.push((thread::spawn(all), held));
    }
    sleep_until(until);
    let mut answer = Vec::new();
    for (thread, held) in loose {
        ensure_goes_on(thread)?;
        let held = held.lock().unwrap_or_else(PoisonError::into_inner);
        answer.extend(held.iter().flat_map(write));
    }
    Ok(answer)
}

fn ensure_goes_on(thread: JoinHandle<Result<(), Trouble>>) -> Result<(), Trouble> {
    if !thread.is_finished() {
        return Ok(());
    }
    thread.join().map_err(|_| "a client panicked")?
}

/// Numbers and moments are below 2^53.
#[expect(clippy::cast_precision_loss, reason = "numbers and moments are below 2^53")]
fn write(hold: &Hold) -> [f64; 5] {
    let Hold { client, number, asked, acquired, released } = *hold;
    [f64::from(client), number as f64, asked as f64, acquired as f64, released as f64]
}

/// The holds in an answer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as written")]
pub(super) fn read(answer: &[f64]) -> impl Iterator<Item = Hold> {
    answer.chunks_exact(5).filter_map(|fields| {
        let [client, number, asked, acquired, released] = *fields else { return None };
        Some(Hold {
            client: client as u32,
            number: number as u64,
            asked: asked as u64,
            acquired: acquired as u64,
            released: released as u64,
        })
    })
}

/// A client of the library with an engine and a connection of its own.
struct Ours {
    lock: Lock,
    guard: Option<LockGuard>,
}

impl Ours {
    /// Waits for a lock of its own once: the connection and the scripts are there, then, and
    /// whether channels may be used is known.
    fn connect(server: &str, key: &str, client: u32) -> Result<Self, Trouble> {
        let own = Client::connect(server)?;
        own.lock(format!("{key}-{}-{client}", std::process::id())).acquire()?.release()?;
        Ok(Self { lock: own.lock(key), guard: None })
    }
}

impl Contender for Ours {
    fn acquire(&mut self) -> Result<u64, Trouble> {
        let guard = self.lock.acquire()?;
        let number = guard.fencing_token().get();
        self.guard = Some(guard);
        Ok(number)
    }

    fn release(&mut self) -> Result<(), Trouble> {
        Ok(self.guard.take().ok_or("nothing is held")?.release()?)
    }
}

/// A round's holds of one client, without growing.
const ROOM: usize = 1 << 16;
