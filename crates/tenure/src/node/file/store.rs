//! The store, opened when it is needed and as often as that is.

use std::{os::unix::net::UnixDatagram, path::Path, sync::Arc, thread, time::Duration};

use tenure_core::{Op, Place, Reply, Timestamp};
use tokio::sync::mpsc;

use super::{
    boot::BootUnknown,
    opened::{Opened, Unopened},
    place::{Location, Unfit},
    stopped::{Obstacle, StoppedHolder},
    table::Fault,
    turn::pauses,
};
use crate::{
    clock,
    error::{NodeError, NodeErrorKind, is_shortage},
    random,
};

/// A table of rows in a file: the model itself, loaded and stored around each op.
///
/// Nothing is synchronized to the disk, and nothing needs to be: leases do not outlive a boot for
/// longer than they last, and numbers are on the wall clock. A process that dies in the middle of a
/// transaction leaves a journal, which the next one rolls back.
#[derive(Debug)]
pub(super) struct Store {
    name: Arc<str>,
    location: Location,
    opened: Option<Opened>,
    obstacle: Arc<Obstacle>,
    /// Takes the sockets of this client.
    listener: mpsc::UnboundedSender<UnixDatagram>,
}

impl Store {
    pub(super) fn new(
        name: Arc<str>,
        location: Location,
        obstacle: Arc<Obstacle>,
        listener: mpsc::UnboundedSender<UnixDatagram>,
    ) -> Self {
        Self { name, location, opened: None, obstacle, listener }
    }

    /// Carries out one op in one transaction, retrying until the deadline while others are busy;
    /// some ops for longer, unless a stopped process holds the file.
    pub(super) fn apply(&mut self, mut op: Op, deadline: Timestamp) -> Result<Reply, NodeError> {
        let last = deadline + patience(&op);
        let mut pauses = pauses(&op);
        let mut until_look = STOPPED_LOOK;
        let mut look = deadline.min(clock::now() + until_look);
        let mut kept = None;
        loop {
            let opened = opened(&mut self.opened, &self.name, &self.location)?;
            // Others would drop a waiter without a socket. Most acquisitions need none: the lock
            // is free.
            if let Op::Acquire { place, .. } = &mut op
                && !opened.is_listening()
            {
                kept = place.take().or(kept);
            }
            let left = last.since(clock::now());
            let fault = match opened.apply(&op, left.clamp(MIN_BUSY, MAX_BUSY)) {
                Ok(reply) => {
                    let listen = |place: &Place| opened.listen(&place.entry.channel);
                    if let (Reply::Held(_), Op::Acquire { place, .. }) = (&reply, &mut op)
                        && let Some(socket) = kept.as_ref().and_then(listen)
                    {
                        // An engine that has ended needs no socket.
                        _ = self.listener.send(socket);
                        *place = kept.take();
                        continue;
                    }
                    self.obstacle.set(None);
                    return Ok(reply);
                }
                Err(fault) => fault,
            };
            let now = clock::now();
            if fault.is_busy() && now >= look {
                // One that was found stays: the kernel's list may miss locks while it changes.
                if let Some(stopped) = opened.locked().find_map(StoppedHolder::find) {
                    self.obstacle.set(Some(stopped));
                }
                until_look *= 2;
                look = now + until_look;
            }
            let stopped = self.obstacle.get().filter(|_| fault.is_busy());
            let is_over = now >= last || now >= deadline && stopped.is_some();
            if !fault.is_busy() || is_over {
                let file = opened.file().clone();
                let error = self.error(fault, &file);
                return Err(match stopped {
                    Some(stopped) => error.with_source(stopped),
                    None => error,
                });
            }
            thread::sleep(pauses.next_delay(random::jitter()).min(last.since(now)));
        }
    }

    fn error(&mut self, fault: Fault, file: &Path) -> NodeError {
        let kind = fault.kind();
        if kind == NodeErrorKind::UnfitStore {
            // Another file may be put in its place.
            self.opened = None;
        }
        NodeError::of_store(&self.name, kind).with_source(fault.cause(file))
    }
}

/// The store, opened again when it is not the one that is open.
fn opened<'a>(
    opened: &'a mut Option<Opened>,
    name: &Arc<str>,
    location: &Location,
) -> Result<&'a mut Opened, NodeError> {
    // A file that was replaced, or that others may open now, must not be used on.
    opened.take_if(|opened| !opened.is_in_place());
    match opened {
        Some(opened) => Ok(opened),
        none => Ok(none.insert(Opened::new(location).map_err(|why| unopened(name, why))?)),
    }
}

fn unopened(name: &Arc<str>, why: Unopened) -> NodeError {
    let error = |kind| NodeError::of_store(name, kind);
    match why {
        Unopened::Place(Unfit::Io(_, io)) | Unopened::Boot(BootUnknown::Io(_, io))
            if is_shortage(&io) =>
        {
            error(NodeErrorKind::NoResources).with_source(io)
        }
        Unopened::Place(unfit @ Unfit::Io(..)) => {
            error(NodeErrorKind::Unreachable).with_source(unfit)
        }
        Unopened::Place(unfit) => error(NodeErrorKind::UnfitStore).with_source(unfit),
        Unopened::Boot(unknown) => error(NodeErrorKind::UnfitStore).with_source(unknown),
        Unopened::Sql(why, file) => {
            let fault = Fault::from(why);
            error(fault.kind()).with_source(fault.cause(&file))
        }
    }
}

/// How much longer an op may take than its time limit while others are busy: a release that is
/// given up keeps all waiters until the lease ends. An acquisition has its caller's limit, and a
/// renewal is repeated.
pub(super) fn patience(op: &Op) -> Duration {
    match op {
        Op::Release { .. } | Op::ForceRelease { .. } | Op::Inspect { .. } => MAX_LOAD,
        _ => Duration::ZERO,
    }
}

/// Longer than the busiest host takes to give each of five hundred processes its turn.
const MAX_LOAD: Duration = Duration::from_secs(30);

/// How long SQLite tries by itself: only a client without a turn is in its way.
const MAX_BUSY: Duration = Duration::from_millis(25);

/// The last try of an op, too, is more than one look.
const MIN_BUSY: Duration = Duration::from_millis(5);

/// A transaction takes some 100 µs. One that is in the way for so long may be that of a process
/// that was stopped.
const STOPPED_LOOK: Duration = Duration::from_millis(250);
