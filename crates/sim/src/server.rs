//! The server: the real row carries out what arrives.

use tenure_core::{
    Channel, Next, Notification, Op, Place, Release, RenewRequest, RenewalAnswer, Reply,
};

use crate::{
    Violation,
    attempt::{Force, Keep, Phase},
    check::passed_over,
    config::Flaw,
    message::{Ask, Content, Delivery, PendingRequest},
    model::Model,
    names::{line, rank, rank_of, ticket, who},
    state::{Left, Line, QueueState, Who},
    time::{LEASE, NOW, RENEWED, lasting},
    violation::Kind,
};

impl Model {
    /// Carries out a request. Its reply goes to the client, unless its connection has ended.
    pub(crate) fn carry_out(
        &self,
        state: &mut QueueState,
        request: &PendingRequest,
    ) -> Result<(), Violation> {
        let before = state.clone();
        let PendingRequest { who: caller, epoch, age, ask } = *request;
        let mut row = self.names.row(state);
        let op = self.op(request);
        // Nobody listens to the lock's own channel: that is for several nodes.
        let of_lock = Channel::of_lock(&self.names.key);
        let present = |channel: &Channel| *channel != of_lock && before.is_seen(line(channel));
        let hidden = self.hides_lock(&before, request);
        let hiding = self.names.foreign_holder();
        let lock = hidden.then(|| row.lock.replace(hiding));
        let forces = matches!(ask, Ask::Force(_));
        if forces && self.config.flaw == Some(Flaw::ForceIgnoresTombstone) {
            self.names.forget_tombstone(&mut row, caller);
        }
        let (reply, wakes) = row.apply_within(self.config.most_served, NOW, &present, &op);
        if let Some(lock) = lock {
            row.lock = lock;
        }
        self.names.keep(row, state).map_err(|words| Violation::new(Kind::Row, words))?;
        self.lower_ttl(&before, state, request);
        if forces {
            self.takes_by_force(&before, state, request)?;
        }

        let granted = state.server.number != before.server.number;
        if granted && !forces {
            let (owner, _) = state.server.lock.ok_or_else(|| {
                Violation::new(Kind::Row, "a number was given and the lock is not set".into())
            })?;
            passed_over(&before, owner, request)?;
        }
        let queue = &state.server.queue;
        let joined = queue.iter().find(|entry| entry.who == caller).map(|entry| entry.ticket);
        let attempt = state.attempt_mut(caller);
        if matches!(ask, Ask::Acquire { .. }) && attempt.phase != Phase::Done {
            attempt.joined = attempt.joined.or(joined);
        }

        let says = says(ask, reply, age)?;
        let reply = Delivery { who: caller, says };
        let client = state.client(caller.client);
        let answers = client.connected && client.epoch == epoch;
        if !self.config.pushes_first && answers {
            client.inbox.push_back(reply.clone());
        }
        for wake in wakes {
            self.push(state, &wake, caller);
        }
        if self.config.pushes_first && answers {
            state.client(caller.client).inbox.push_back(reply);
        }
        Ok(())
    }

    fn op(&self, request: &PendingRequest) -> Op {
        let PendingRequest { who, epoch, age: _, ask } = *request;
        let (key, token) = (self.names.key.clone(), self.names.token(who).clone());
        let line = |epoch| Line { client: who.client, epoch };
        match ask {
            Ask::Acquire { ticket: brought, previous, suspect } => {
                let place = Place {
                    entry: self.names.entry(line(epoch)),
                    ticket: brought.map(ticket),
                    previous: previous.map(|epoch| self.names.entry(line(epoch))),
                    suspect: suspect.map(|suspect| self.names.channel(suspect).clone()),
                };
                Op::Acquire { key, token, ttl: self.names.ttl, proposal: None, place: Some(place) }
            }
            Ask::Renew => Op::Renew(vec![RenewRequest { key, token, ttl: lasting(RENEWED) }]),
            Ask::Force(Force::Steal) => Op::Steal { key, token, ttl: self.names.ttl, any: false },
            Ask::Force(Force::Release) => Op::ForceRelease { key, token, any: false },
            Ask::Keep(Keep::Resume) => Op::Resume { key, token, ttl: lasting(RENEWED) },
            Ask::Keep(Keep::Confirm) => {
                let number = self.names.least_number();
                Op::Confirm { key, token, ttl: self.names.ttl, number }
            }
            Ask::Keep(Keep::Repair) => {
                let proposal = Some(self.names.least_number());
                Op::Acquire { key, token, ttl: self.names.ttl, proposal, place: None }
            }
            Ask::Release { asked, leave_tombstone, waited: _ } => {
                let epochs = (0..8).filter(|epoch| asked & (1 << epoch) != 0);
                let entries = epochs.map(|epoch| self.names.entry(line(epoch))).collect();
                Op::Release { key, token, entries, leave_tombstone, yield_ms: 0, number: None }
            }
        }
    }

    /// Marks the holder whose lock was taken by force: what it believes is not the protocol's
    /// fault. A client that knows that its command is undone takes no lock.
    fn takes_by_force(
        &self,
        before: &QueueState,
        state: &mut QueueState,
        request: &PendingRequest,
    ) -> Result<(), Violation> {
        let Some((owner, _)) = before.server.lock.filter(|(owner, _)| *owner != request.who) else {
            return Ok(());
        };
        if state.server.lock.is_some_and(|(now, _)| now == owner) {
            return Ok(());
        }
        if before.attempt(request.who).release_known {
            let words = format!("{} takes the lock of {owner}", request.who);
            return Err(Violation::new(Kind::LateForce, words));
        }
        state.attempt_mut(owner).robbed = true;
        Ok(())
    }

    /// Sends a message to the connection that listens; to one that has ended, it is lost.
    fn push(&self, state: &mut QueueState, wake: &Notification, caller: Who) {
        let (token, says) = match wake {
            Notification::Grant { token, .. } => (token, Content::Grant),
            Notification::SuccessorWatch { token, granted, .. } => {
                (token, Content::SuccessorWatch { granted: line(granted) })
            }
            // Nobody listens to the lock's channel: that is for several nodes, without a queue.
            Notification::Free { .. } => return,
        };
        let to = line(wake.to());
        let client = state.client(to.client);
        if !client.connected || client.epoch != to.epoch {
            return;
        }
        let who = who(token.as_bytes());
        let hushed = match self.config.flaw {
            Some(Flaw::NoSuccessorWatch) => says != Content::Grant,
            Some(Flaw::CallerIsNoSuccessorWatch) => says != Content::Grant && who == caller,
            _ => false,
        };
        if !hushed {
            client.inbox.push_back(Delivery { who, says });
        }
    }

    /// Whether a release is to find another's lock, and so to serve nobody: two of the flaws.
    fn hides_lock(&self, state: &QueueState, request: &PendingRequest) -> bool {
        let Ask::Release { waited, .. } = request.ask else { return false };
        let owns = state.server.lock.is_some_and(|(owner, _)| owner == request.who);
        match self.config.flaw {
            Some(Flaw::ReleaseOfNoneServesNone) => !owns,
            Some(Flaw::CancelOnlyDequeues) => waited,
            _ => false,
        }
    }

    /// The flaw by which an acquisition sets the TTL of what its token holds already.
    fn lower_ttl(&self, before: &QueueState, state: &mut QueueState, request: &PendingRequest) {
        let owner = |state: &QueueState| state.server.lock.map(|(owner, _)| owner);
        let kept = owner(before) == Some(request.who) && owner(state) == Some(request.who);
        if self.config.flaw == Some(Flaw::LowerTtl)
            && matches!(request.ask, Ask::Acquire { .. })
            && kept
        {
            state.server.lock = Some((request.who, LEASE));
        }
    }
}

/// A reply as it travels.
fn says(ask: Ask, reply: Reply, age: u8) -> Result<Content, Violation> {
    if matches!(ask, Ask::Keep(_)) {
        return Ok(Content::Kept);
    }
    Ok(match reply {
        Reply::Granted(number) => Content::Granted { number: rank(number.get()), age },
        Reply::Queued { held, ticket, position } => {
            let left = held.ttl_left.get().map_or(u128::MAX, |left| left.as_millis());
            let left = Left::try_from(left).unwrap_or(Left::MAX);
            let position = u8::try_from(position).unwrap_or(u8::MAX);
            Content::Queued { left, ticket: rank_of(ticket), position }
        }
        Reply::More => Content::More,
        Reply::Cancelled => Content::Cancelled,
        Reply::Renewed(answers) => match answers.first() {
            Some(RenewalAnswer::Renewed) => Content::Renewed { age },
            _ => Content::Lost,
        },
        Reply::Released {
            release:
                Release::Released(_) | Release::Free | Release::Other(_) | Release::AlreadyReleased,
            next,
        } => Content::Released { more: next == Next::More },
        reply @ (Reply::Held(_)
        | Reply::Free
        | Reply::Faulty(_)
        | Reply::Polled(_)
        | Reply::Checked { .. }
        | Reply::Voted { .. }
        | Reply::Confirmed { .. }
        | Reply::Clock { .. }
        | Reply::Inspected(_)) => {
            return Err(Violation::new(Kind::Row, format!("the reply {reply:?}")));
        }
    })
}
