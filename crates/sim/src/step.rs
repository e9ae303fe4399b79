//! What can happen in a state.

use crate::{
    attempt::{Force, Keep, Phase},
    config::Flaw,
    model::Model,
    state::{Line, QueueState, Who},
};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueStep {
    /// An attempt begins.
    Begin(Who),
    /// An attempt takes or releases the lock by force.
    Force(Who, Force),
    /// A holder asks for something beside a renewal.
    Keep(Who, Keep),
    /// The server carries out the first request that a connection has brought.
    Run(Line),
    /// A client takes the first answer or message.
    Deliver(u8),
    /// A waiter looks, since it is time.
    Poll(Who),
    Resend(Who),
    Cancel(Who),
    Release(Who),
    Renew(Who),
    Disconnect(u8),
    Reconnect(u8),
    /// The server knows that a connection has ended.
    Notice(Line),
    Crash(u8),
    /// Somebody deletes the lock's key.
    Delete,
    Tick,
}

impl Model {
    /// All steps that are possible.
    pub(crate) fn possible(&self, state: &QueueState, steps: &mut Vec<QueueStep>) {
        steps.clear();
        let faults = &state.faults;
        for (client, one) in (0..).zip(&state.clients) {
            for line in lines(state, client) {
                let current = Self::current(state, client) == Some(line);
                if one.requests.iter().any(|request| request.epoch == line.epoch) {
                    steps.push(QueueStep::Run(line));
                }
                if !current {
                    steps.push(QueueStep::Notice(line));
                }
            }
            if !one.inbox.is_empty() {
                steps.push(QueueStep::Deliver(client));
            }
            if one.crashed {
                continue;
            }
            // What happens to a client that has done all it will matters to nobody.
            let is_done = one.attempts.iter().all(|attempt| attempt.phase == Phase::Done);
            if faults.crashes > 0 && !is_done {
                steps.push(QueueStep::Crash(client));
            }
            if !one.connected {
                steps.push(QueueStep::Reconnect(client));
            } else if faults.disconnects > 0 && !is_done {
                steps.push(QueueStep::Disconnect(client));
            }
        }
        for who in state.everyone() {
            self.own_steps(state, who, steps);
        }
        if faults.deletes > 0 && state.server.lock.is_some() {
            steps.push(QueueStep::Delete);
        }
        if faults.ticks != Some(0) {
            steps.push(QueueStep::Tick);
        }
    }

    /// What one attempt may do by itself.
    fn own_steps(&self, state: &QueueState, who: Who, steps: &mut Vec<QueueStep>) {
        let attempt = state.attempt(who);
        let client = &state.clients[usize::from(who.client)];
        let faults = &state.faults;
        match attempt.phase {
            Phase::Idle if client.connected && self.may_begin(state, who) => {
                steps.push(QueueStep::Begin(who));
                if self.config.by_force {
                    steps.extend(
                        [Force::Steal, Force::Release].map(|how| QueueStep::Force(who, how)),
                    );
                }
            }
            Phase::Waiting => {
                if client.connected && !attempt.asking && attempt.due == Some(0) {
                    steps.push(QueueStep::Poll(who));
                }
                let resends = self.config.flaw == Some(Flaw::Resend) && faults.resends > 0;
                if resends && client.connected && attempt.asking {
                    steps.push(QueueStep::Resend(who));
                }
                if self.config.cancels {
                    steps.push(QueueStep::Cancel(who));
                }
            }
            Phase::Forcing(_) if self.config.cancels => steps.push(QueueStep::Cancel(who)),
            Phase::Holding => {
                steps.push(QueueStep::Release(who));
                let believes = attempt.belief.is_some();
                if client.connected && believes && !attempt.renewing && faults.renewals > 0 {
                    steps.push(QueueStep::Renew(who));
                    if self.config.keeps && !attempt.asking {
                        let ways = [Keep::Resume, Keep::Confirm, Keep::Repair];
                        steps.extend(ways.map(|way| QueueStep::Keep(who, way)));
                    }
                }
            }
            Phase::Idle | Phase::Forcing(_) | Phase::Releasing { .. } | Phase::Done => {}
        }
    }

    fn may_begin(&self, state: &QueueState, who: Who) -> bool {
        let Some(before) = who.attempt.checked_sub(1) else { return true };
        let before = state.attempt(Who { attempt: before, ..who });
        let given_up = matches!(before.phase, Phase::Releasing { .. } | Phase::Done);
        given_up || (self.config.together && before.phase != Phase::Idle)
    }
}

/// The connections of a client that the server believes in.
pub(crate) fn lines(state: &QueueState, client: u8) -> impl Iterator<Item = Line> {
    let seen = state.clients[usize::from(client)].seen;
    let epochs = (0..8).filter(move |epoch| seen & (1 << epoch) != 0);
    epochs.map(move |epoch| Line { client, epoch })
}
