//! The steps of the world.

use super::{
    config::{ForgettingConfig, ForgettingRule},
    fault::{self, Fault},
    server::{MAX, Names},
    state::{Answer, Client, Data, Id, Mark, Phase, SERVERS, Server, State},
    trace::trace,
};
use crate::{Kind, Report, Violation, world::World};

/// A world of some size, under some rule.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) config: ForgettingConfig,
    pub(crate) names: Names,
}

/// What can happen; clients and servers by their index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A tick of time passes.
    Tick,
    /// A client sends its requests.
    Begin(u8),
    /// A server carries one out, and its answer arrives.
    Ask(u8, usize),
    /// A client that did not get the lock, or holds it, releases its keys.
    Release(u8),
    /// A client ends without a word.
    End(u8),
    /// Something goes wrong.
    Fault(Fault),
}

impl Model {
    pub(crate) fn new(config: ForgettingConfig) -> Self {
        let names = Names::new(&config);
        Self { config, names }
    }

    fn tick(&self, state: &mut State) {
        let longest = u8::try_from(MAX).unwrap_or(u8::MAX);
        for server in &mut state.servers {
            server.uptime = (server.uptime + 1).min(self.config.span);
            if let Some((_, left)) = &mut server.data.lock {
                *left -= 1;
            }
            server.data.lock.take_if(|(_, left)| *left == 0);
            if let Some(mark) = &mut server.data.marker {
                mark.passed = (mark.passed + 1).min(longest);
                mark.client_passed = (mark.client_passed + 1).min(longest);
            }
        }
        state.gap = state.gap.saturating_sub(1);
        for who in 0..self.config.clients {
            let client = &mut state.clients[usize::from(who)];
            client.known.iter_mut().for_each(|known| known.wait = known.wait.saturating_sub(1));
            if let Some(round) = &mut client.round {
                round.age += 1;
            }
            let is_late = client.round.is_some_and(|round| round.age >= self.config.ttl);
            client.round.take_if(|_| is_late);
            match client.phase {
                Phase::Asking if is_late => state.end(who),
                Phase::Holding(1) if self.config.returns => client.phase = Phase::RanOut,
                Phase::Holding(1) => state.end(who),
                Phase::Holding(left) => client.phase = Phase::Holding(left - 1),
                _ => {}
            }
        }
    }
}

impl World for Model {
    type State = State;
    type Step = Step;

    /// Servers that have served for long, under a marker that says so.
    fn first(&self) -> State {
        let span = self.config.span;
        let server = |id: Id| Server {
            data: Data { lock: None, marker: Some(Mark::open(id, span)) },
            run: id,
            replid: id,
            has_second_replid: false,
            uptime: span,
        };
        let mut servers = [1, 2, 3].map(server);
        if self.config.rule == ForgettingRule::NoIdentity {
            servers.iter_mut().for_each(|one| one.data.marker = Some(Mark::open(1, span)));
        }
        let clients = vec![Client::default(); self.config.clients.into()];
        State { servers, clients, budget: self.config.budget, gap: 0 }
    }

    fn steps(&self, state: &State, steps: &mut Vec<Step>) {
        steps.clear();
        steps.push(Step::Tick);
        for who in 0..self.config.clients {
            let client = &state.clients[usize::from(who)];
            let answers = client.round.map(|round| round.answers);
            let is_done = answers.is_none_or(|of| of.iter().all(|one| *one != Answer::None));
            match client.phase {
                Phase::Idle => steps.push(Step::Begin(who)),
                Phase::Asking => {
                    let is_refused =
                        |answer: &Answer| matches!(answer, Answer::Other | Answer::Nothing);
                    if answers.is_some_and(|answers| answers.iter().any(is_refused)) {
                        steps.push(Step::Release(who));
                    }
                }
                Phase::Holding(_) => steps.extend([Step::Release(who), Step::End(who)]),
                Phase::RanOut => steps.push(Step::End(who)),
            }
            if matches!(client.phase, Phase::Holding(_) | Phase::RanOut) && is_done {
                steps.push(Step::Begin(who));
            }
            for (server, answer) in answers.into_iter().flatten().enumerate() {
                if answer == Answer::None {
                    steps.push(Step::Ask(who, server));
                }
            }
        }
        if state.budget > 0 && state.gap == 0 {
            fault::possible(state, &self.config.faults, steps);
        }
    }

    fn take(&self, state: &mut State, step: Step) -> Result<(), Violation> {
        match step {
            Step::Tick => self.tick(state),
            Step::Begin(who) => self.begin(state, who),
            Step::Ask(who, server) => self.ask(state, who, server),
            Step::Release(who) => state.release(who),
            Step::End(who) => state.end(who),
            Step::Fault(fault) => {
                state.budget -= 1;
                state.gap = self.config.gap;
                fault::strike(state, fault, self.config.span);
            }
        }
        let holds = |client: &&Client| matches!(client.phase, Phase::Holding(_));
        match state.clients.iter().filter(holds).count() {
            0 | 1 => Ok(()),
            many => Err(Violation::new(Kind::TwoBelieve, format!("{many} hold the lock"))),
        }
    }

    fn trace(&self, way: &[Step]) -> Vec<String> {
        trace(self, way)
    }

    /// All clients end, and a new one asks at each tick: it gets the lock when the span and the
    /// last TTL are over, at the latest.
    fn try_liveness(
        &self,
        state: &State,
        _: usize,
        report: &mut Report,
    ) -> Result<(), (Violation, Vec<Step>)> {
        let (mut state, mut way) = (state.clone(), Vec::new());
        let mut go = |state: &mut State, step| {
            way.push(step);
            self.take(state, step).map_err(|violation| (violation, way.clone()))
        };
        for who in 0..self.config.clients {
            match state.clients[usize::from(who)].phase {
                Phase::Holding(_) | Phase::RanOut => go(&mut state, Step::End(who))?,
                Phase::Asking => state.end(who),
                Phase::Idle => {}
            }
        }
        report.tried += 1;
        for ticks in 0..=self.config.span + self.config.ttl {
            go(&mut state, Step::Begin(0))?;
            for server in 0..SERVERS {
                if state.clients[0].phase == Phase::Asking {
                    go(&mut state, Step::Ask(0, server))?;
                }
            }
            if matches!(state.clients[0].phase, Phase::Holding(_)) {
                report.worst_ticks = report.worst_ticks.max(ticks);
                return Ok(());
            }
            go(&mut state, Step::Release(0))?;
            go(&mut state, Step::Tick)?;
        }
        let words = "nobody gets the lock".to_owned();
        Err((Violation::new(Kind::Stuck, words), way))
    }
}

impl Mark {
    /// One that a server has had for long.
    fn open(id: Id, span: u8) -> Self {
        let cause = tenure_core::MarkerCause::New;
        let passed = span;
        Self {
            cause,
            open: span,
            longest: span,
            floor: 0,
            replid: id,
            run: id,
            passed,
            client_passed: passed,
        }
    }
}
