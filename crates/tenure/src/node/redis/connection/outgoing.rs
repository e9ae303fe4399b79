//! What is sent to a server, and how.

use std::rc::Rc;

use tenure_core::{Channel, LockKey, Op, script::Call};

use super::{Connection, Expected, Notifications, Request, resp};
use crate::clock;

/// How a script is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By `EVAL`.
    Text,
    /// By `EVALSHA`.
    Sha1,
}

/// A way to send scripts that the user may not use, or that the server does not know.
#[derive(Debug)]
pub(super) struct RefusedForm {
    pub(super) form: Form,
    /// What the server said.
    pub(super) words: String,
}

impl Form {
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Text => "eval",
            Self::Sha1 => "evalsha",
        }
    }
}

impl Connection {
    /// Writes what is queued, in order.
    pub(super) fn take_requests(&mut self) {
        if !self.greeting.lets_ops_through() {
            return;
        }
        let shared = Rc::clone(&self.shared);
        let mut queue = shared.queue.borrow_mut();
        for mut request in queue.drain(..).filter(|request| !request.is_pointless()) {
            self.give_place(&mut request);
            let watched = self.watched_by(&request.op);
            self.send(request);
            watched.iter().for_each(|key| self.track(key));
        }
        let mut watched = shared.to_track.take();
        watched.retain(|key| !self.in_flight.reads(key));
        watched.iter().for_each(|key| self.track(key));
        shared.to_listen.take().into_iter().for_each(|channel| self.listen_to(channel));
    }

    /// Begins or ceases to listen to a lock's channel, whatever is wanted now.
    fn listen_to(&mut self, channel: Channel) {
        let is_wanted = self.shared.waiters.listeners.has(&channel);
        if self.subscriptions.set(&channel, is_wanted, &mut self.out) {
            self.in_flight.push(Expected::Listening(channel));
        }
    }

    /// Puts a waiter's place on this connection into its op, where the server notifies waiters.
    fn give_place(&mut self, request: &mut Request) {
        let Request { op: Op::Acquire { place, .. }, waiter: Some(waiter), .. } = request else {
            return;
        };
        let (waiter, context) = waiter;
        if self.shared.notifications.get() == Notifications::Unavailable {
            *place = None;
            return;
        }
        *place = Some(waiter.place(self.pubsub.channel(), context));
        if self.pubsub.listen(&mut self.out) {
            self.in_flight.push(Expected::Subscribed);
            self.in_flight.push(Expected::Proof);
        }
    }

    /// The watched keys that are renewed: a server stops to track what is changed.
    fn watched_by(&self, op: &Op) -> Vec<LockKey> {
        let Op::Renew(leases) = op.unchecked() else { return Vec::new() };
        let keys = leases.iter().map(|lease| &lease.key);
        keys.filter(|key| self.shared.watches.has(key)).cloned().collect()
    }

    /// Asks the server to report changes of the key by others, where it can.
    fn track(&mut self, key: &LockKey) {
        for expected in self.tracking.track(key, &mut self.out) {
            self.in_flight.push(expected);
        }
    }

    /// Sends a script by its SHA-1, or in full the first time on this connection: a server that
    /// does not know it would answer out of order with the requests behind it. Until a lease was
    /// begun on it, each that is to begin one proves the user's rights.
    fn send(&mut self, request: Request) {
        let mut call = Call::new(&request.op, request.number);
        let proves_rights = !self.has_rights && call.prove_rights();
        let Call { script, keys, args, .. } = call;
        let in_full = match &self.refused {
            Some(refused) => refused.form == Form::Sha1,
            None => !self.sent_scripts.contains(&script.sha1),
        };
        let count = keys.len().to_string();
        let mut parts: Vec<&[u8]> = Vec::with_capacity(3 + keys.len() + args.len());
        if in_full {
            if !self.sent_scripts.contains(&script.sha1) {
                self.sent_scripts.push(script.sha1);
            }
            parts.extend([&b"EVAL"[..], script.text.as_bytes()]);
        } else {
            parts.extend([&b"EVALSHA"[..], script.sha1.as_bytes()]);
        }
        parts.push(count.as_bytes());
        parts.extend(keys.iter().chain(&args).map(Vec::as_slice));
        resp::encode(&mut self.out, &parts);
        request.sent.set(true);
        let sent = clock::now();
        self.in_flight.push(Expected::Op { request, in_full, proves_rights, sent });
    }
}
