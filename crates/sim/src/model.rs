//! The steps of the world.

use crate::{
    Report, Violation,
    attempt::{Belief, ClientAttempt, Phase},
    check::check,
    config::Config,
    message::{Content, PendingRequest},
    names::Names,
    state::{Line, QueueState},
    step::QueueStep,
    time::{GRANT_TTL, OLDEST, TICK},
    trace::trace,
    world::World,
};

/// A world of some size, with what is broken in it.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) config: Config,
    pub(crate) names: Names,
}

impl Model {
    pub(crate) fn new(config: Config) -> Self {
        Self { config, names: Names::new() }
    }
}

impl World for Model {
    type State = QueueState;
    type Step = QueueStep;

    fn first(&self) -> QueueState {
        QueueState::new(&self.config)
    }

    fn steps(&self, state: &QueueState, steps: &mut Vec<QueueStep>) {
        self.possible(state, steps);
    }

    fn trace(&self, way: &[QueueStep]) -> Vec<String> {
        trace(self, way)
    }

    fn try_liveness(
        &self,
        state: &QueueState,
        seed: usize,
        report: &mut Report,
    ) -> Result<(), (Violation, Vec<QueueStep>)> {
        report.try_liveness(self, state, seed)
    }

    fn take(&self, state: &mut QueueState, step: QueueStep) -> Result<(), Violation> {
        match step {
            QueueStep::Begin(who) => {
                state.attempt_mut(who).phase = Phase::Waiting;
                self.acquire(state, who);
            }
            QueueStep::Force(who, force) => Self::force(state, who, force),
            QueueStep::Keep(who, keep) => {
                state.faults.renewals = state.faults.renewals.saturating_sub(1);
                Self::keep(state, who, keep);
            }
            QueueStep::Run(line) => {
                if let Some(request) = take_request(state, line) {
                    self.carry_out(state, &request)?;
                }
            }
            QueueStep::Deliver(client) => {
                if let Some(message) = state.client(client).inbox.pop_front() {
                    self.receive(state, &message)?;
                }
            }
            QueueStep::Poll(who) => self.acquire(state, who),
            QueueStep::Resend(who) => {
                state.faults.resends -= 1;
                self.acquire(state, who);
            }
            QueueStep::Cancel(who) | QueueStep::Release(who) => self.give_up(state, who),
            QueueStep::Renew(who) => {
                state.faults.renewals = state.faults.renewals.saturating_sub(1);
                Self::renew(state, who);
            }
            QueueStep::Disconnect(client) => {
                state.faults.disconnects -= 1;
                self.cut(state, client);
            }
            QueueStep::Reconnect(client) => self.connect(state, client),
            QueueStep::Notice(line) => notice(state, line),
            QueueStep::Crash(client) => {
                state.faults.crashes -= 1;
                crash(state, client);
            }
            QueueStep::Delete => {
                state.faults.deletes -= 1;
                if let Some((owner, _)) = state.server.lock.take() {
                    state.attempt_mut(owner).robbed = true;
                }
            }
            QueueStep::Tick => tick(state),
        }
        state.forget_pushes();
        state.rank();
        check(state)
    }
}

/// What a connection has brought first.
fn take_request(state: &mut QueueState, line: Line) -> Option<PendingRequest> {
    let requests = &mut state.client(line.client).requests;
    let first = requests.iter().position(|request| request.epoch == line.epoch)?;
    requests.remove(first)
}

/// The server knows that a connection has ended: nothing of it arrives any more.
fn notice(state: &mut QueueState, line: Line) {
    let client = state.client(line.client);
    client.seen &= !(1 << line.epoch);
    client.requests.retain(|request| request.epoch != line.epoch);
}

/// A client ends. What it sent may still arrive.
fn crash(state: &mut QueueState, client: u8) {
    let client = state.client(client);
    (client.crashed, client.connected) = (true, false);
    client.inbox.clear();
    client.attempts.iter_mut().for_each(ClientAttempt::end);
}

/// Time passes, for everybody at the same rate.
fn tick(state: &mut QueueState) {
    state.faults.ticks = state.faults.ticks.map(|ticks| ticks.saturating_sub(1));
    let lock = &mut state.server.lock;
    // A server keeps a key to its very end, but none of ours ends on a tick.
    *lock = lock.and_then(|(who, left)| Some((who, left.checked_sub(TICK)?)));
    let older = |age: &mut u8| *age = OLDEST.min(*age + 1);
    for client in &mut state.clients {
        client.requests.iter_mut().for_each(|request| older(&mut request.age));
        for message in &mut client.inbox {
            if let Content::Granted { age, .. } | Content::Renewed { age } = &mut message.says {
                older(age);
            }
        }
        for attempt in &mut client.attempts {
            attempt.due = attempt.due.map(|due| due.saturating_sub(1));
            attempt.belief = attempt.belief.and_then(|belief| {
                let left = belief.left.checked_sub(TICK).filter(|left| *left > 0)?;
                Some(Belief { left, ..belief })
            });
        }
    }
}

const _: () = assert!(GRANT_TTL < TICK, "a provisional grant ends at the next tick");
