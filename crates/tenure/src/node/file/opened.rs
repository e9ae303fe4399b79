//! The store while it is open.

use std::{cell::Cell, os::unix::net::UnixDatagram, path::PathBuf, time::Duration};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use tenure_core::{Channel, Eligibility, Notification, Op, Poll, RenewRequest, Reply};

use super::{
    boot::{Boot, BootUnknown},
    place::{self, Identity, Location, Unfit},
    sockets::{OwnSocket, Sockets},
    table::{Fault, StoredTable},
    turn::Turns,
};

#[derive(Debug)]
pub(super) struct Opened {
    connection: Connection,
    boot: Boot,
    file: PathBuf,
    identity: Identity,
    turns: Turns,
    sockets: Sockets,
    /// This client's, once it waits.
    own_socket: Option<OwnSocket>,
    /// The settings are made and the tables are there: a transaction of ours has gone through.
    is_ready: bool,
}

/// Why the store cannot be opened.
#[derive(Debug)]
pub(super) enum Unopened {
    Place(Unfit),
    Boot(BootUnknown),
    Sql(rusqlite::Error, PathBuf),
}

impl Opened {
    /// Makes the file if it is not there, and opens it.
    pub(super) fn new(location: &Location) -> Result<Self, Unopened> {
        let file = place::prepare(location).map_err(Unopened::Place)?;
        let identity = place::check(&file).map_err(Unopened::Place)?;
        let boot = Boot::read().map_err(Unopened::Boot)?;
        // Nothing is read from the file yet, so nobody can be in the way.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let sockets = Sockets::beside(&file);
        let turns = Turns::at(sockets.directory());
        let connection = Connection::open_with_flags(&file, flags)
            .map_err(|error| Unopened::Sql(error, file.clone()))?;
        let (own_socket, is_ready) = (None, false);
        Ok(Self { connection, boot, file, identity, turns, sockets, own_socket, is_ready })
    }

    pub(super) fn file(&self) -> &PathBuf {
        &self.file
    }

    /// What a client has locked during its transaction: the file, and the directory of the turns.
    pub(super) fn locked(&self) -> impl Iterator<Item = Identity> {
        self.turns.identity().into_iter().chain([self.identity])
    }

    /// Whether the file that is open is the one at its path, and nobody else's to open.
    pub(super) fn is_in_place(&self) -> bool {
        place::check(&self.file).is_ok_and(|identity| identity == self.identity)
    }

    /// Whether this client has a socket that others can find.
    pub(super) fn is_listening(&self) -> bool {
        self.own_socket.as_ref().is_some_and(OwnSocket::is_in_place)
    }

    /// Binds a socket for the channel; `None` where that cannot be done.
    pub(super) fn listen(&mut self, channel: &Channel) -> Option<UnixDatagram> {
        self.own_socket = None;
        let (own, socket) = self.sockets.bind(channel).ok()?;
        self.own_socket = Some(own);
        Some(socket)
    }

    /// Carries out one op in one transaction, waiting so long for others.
    pub(super) fn apply(&mut self, op: &Op, patience: Duration) -> Result<Reply, Fault> {
        let _turn = self.turns.take()?;
        self.connection.busy_timeout(patience)?;
        if !self.is_ready {
            self.connection.execute_batch(SETTINGS)?;
        }
        let probe = self.sockets.probe();
        let present = |channel: &Channel| probe.is_there(channel);
        // Exclusive at once: a process that still tries for the lock must not delay the commit of
        // the one that has it.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        // Inside the transaction: nobody else can come between the time and the op.
        let at = self.boot.time();
        let wrote = Cell::new(false);
        let boot = self.boot.id();
        let table = StoredTable { transaction: &transaction, boot, at, present: &present, wrote };
        table.prepare(self.is_ready)?;
        let (reply, notifications) = carry_out(op, &table)?;
        if table.wrote.get() {
            table.sweep()?;
        }
        transaction.commit()?;
        self.is_ready = true;
        notifications.iter().for_each(|notification| probe.send(notification));
        Ok(reply)
    }
}

fn carry_out(op: &Op, table: &StoredTable<'_>) -> Result<(Reply, Vec<Notification>), Fault> {
    let at = table.at;
    Ok(match op {
        // A store that lost its rows is another store.
        Op::Checked { op, .. } => {
            let (reply, notifications) = carry_out(op, table)?;
            let eligibility = Eligibility::Eligible;
            (Reply::Checked { eligibility, reply: Box::new(reply) }, notifications)
        }
        Op::Renew(leases) => {
            let renew = |lease: &RenewRequest| table.with(&lease.key, |row| row.renew(at, lease));
            let answers = leases.iter().map(renew).collect::<Result<_, _>>()?;
            (Reply::Renewed(answers), Vec::new())
        }
        Op::Poll(polls) => {
            let mut answers = Vec::with_capacity(polls.len());
            // A queue is loaded once for all its readers.
            for polls in polls.chunk_by(|one, other| one.key == other.key) {
                let Some(Poll { key, .. }) = polls.first() else { continue };
                answers.extend(table.with(key, |row| {
                    polls.iter().map(|poll| row.poll(at, poll)).collect::<Vec<_>>()
                })?);
            }
            (Reply::Polled(answers), Vec::new())
        }
        Op::Clock => (Reply::Clock { wall_us: at.wall_us }, Vec::new()),
        Op::Inspect { key, .. } => table.with(key, |row| {
            // A list of waiters has none that are gone.
            row.forget_absent(table.present);
            row.apply(at, table.present, op)
        })?,
        Op::Acquire { key, .. }
        | Op::Confirm { key, .. }
        | Op::Resume { key, .. }
        | Op::Steal { key, .. }
        | Op::Release { key, .. }
        | Op::ForceRelease { key, .. } => {
            table.with(key, |row| row.apply(at, table.present, op))?
        }
    })
}

/// A journal that is overwritten in place costs fewer system calls than one that is deleted. What
/// is deleted is overwritten, so that a byte that changes cannot lead to a row of yesterday.
const SETTINGS: &str =
    "PRAGMA synchronous=OFF; PRAGMA secure_delete=ON; PRAGMA journal_mode=PERSIST";
