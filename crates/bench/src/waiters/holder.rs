//! The holder of all locks: by hand, so that every script that the server runs is a waiter's.

use std::{sync::mpsc, thread::JoinHandle};

use super::{TTL, key};
use crate::{Trouble, server::connect};

/// Holds, and renews three times a TTL; releases everything when it is dropped.
#[derive(Debug)]
pub(super) struct LockHolder {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LockHolder {
    /// Takes the locks.
    pub(super) fn start(url: &str, run: u32, locks: u32) -> Result<Self, Trouble> {
        let mut connection = connect(url)?;
        let ttl_ms = TTL.as_millis().to_string();
        let mut renewal = redis::pipe();
        let mut deletion = redis::cmd("DEL");
        for number in 0..locks {
            let key = key(run, number);
            renewal.cmd("SET").arg(&key).arg(TOKEN).arg("PX").arg(&ttl_ms).ignore();
            deletion.arg(&key).arg(format!("{{{key}}}:tenure.queue"));
        }
        renewal.query::<()>(&mut connection)?;
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let renewed = || -> redis::RedisResult<()> {
                while stopped.recv_timeout(TTL / 3) == Err(mpsc::RecvTimeoutError::Timeout) {
                    renewal.query::<()>(&mut connection)?;
                }
                deletion.query(&mut connection)
            };
            if let Err(error) = { renewed }() {
                eprintln!("bench: the locks are not held any more: {error}");
            }
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for LockHolder {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has said what went wrong.
            _ = thread.join();
        }
    }
}

/// As a token of ours looks: nobody polls for it.
const TOKEN: &str = "0123456789abcdef0123456789abcdef@bench";
