//! The steps of the world.

use super::{
    config::{ForgettingConfig, ForgettingRule},
    fault::{self, ServerFault},
    server::{ClientTokens, MAX},
    state::{
        ClientPhase, Data, ForgettingClient, ForgettingServer, ForgettingState, Id, Mark, SERVERS,
        VoteAnswer,
    },
    trace::trace,
};
use crate::{Kind, Report, Violation, world::World};

/// A world of some size, under some rule.
#[derive(Debug)]
pub(crate) struct ForgettingModel {
    pub(crate) config: ForgettingConfig,
    pub(crate) names: ClientTokens,
}

/// What can happen; clients and servers by their index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ForgettingStep {
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
    Fault(ServerFault),
}

impl ForgettingModel {
    pub(crate) fn new(config: ForgettingConfig) -> Self {
        let names = ClientTokens::new(&config);
        Self { config, names }
    }

    fn tick(&self, state: &mut ForgettingState) {
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
                ClientPhase::Asking if is_late => state.end(who),
                ClientPhase::Holding(1) if self.config.returns => {
                    client.phase = ClientPhase::RanOut;
                }
                ClientPhase::Holding(1) => state.end(who),
                ClientPhase::Holding(left) => client.phase = ClientPhase::Holding(left - 1),
                _ => {}
            }
        }
    }
}

impl World for ForgettingModel {
    type State = ForgettingState;
    type Step = ForgettingStep;

    /// Servers that have served for long, under a marker that says so.
    fn first(&self) -> ForgettingState {
        let span = self.config.span;
        let server = |id: Id| ForgettingServer {
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
        let clients = vec![ForgettingClient::default(); self.config.clients.into()];
        ForgettingState { servers, clients, budget: self.config.budget, gap: 0 }
    }

    fn steps(&self, state: &ForgettingState, steps: &mut Vec<ForgettingStep>) {
        steps.clear();
        steps.push(ForgettingStep::Tick);
        for who in 0..self.config.clients {
            let client = &state.clients[usize::from(who)];
            let answers = client.round.map(|round| round.answers);
            let is_done = answers.is_none_or(|of| of.iter().all(|one| *one != VoteAnswer::None));
            match client.phase {
                ClientPhase::Idle => steps.push(ForgettingStep::Begin(who)),
                ClientPhase::Asking => {
                    let is_refused = |answer: &VoteAnswer| {
                        matches!(answer, VoteAnswer::Other | VoteAnswer::Nothing)
                    };
                    if answers.is_some_and(|answers| answers.iter().any(is_refused)) {
                        steps.push(ForgettingStep::Release(who));
                    }
                }
                ClientPhase::Holding(_) => {
                    steps.extend([ForgettingStep::Release(who), ForgettingStep::End(who)]);
                }
                ClientPhase::RanOut => steps.push(ForgettingStep::End(who)),
            }
            if matches!(client.phase, ClientPhase::Holding(_) | ClientPhase::RanOut) && is_done {
                steps.push(ForgettingStep::Begin(who));
            }
            for (server, answer) in answers.into_iter().flatten().enumerate() {
                if answer == VoteAnswer::None {
                    steps.push(ForgettingStep::Ask(who, server));
                }
            }
        }
        if state.budget > 0 && state.gap == 0 {
            fault::possible(state, &self.config.faults, steps);
        }
    }

    fn take(&self, state: &mut ForgettingState, step: ForgettingStep) -> Result<(), Violation> {
        match step {
            ForgettingStep::Tick => self.tick(state),
            ForgettingStep::Begin(who) => self.begin(state, who),
            ForgettingStep::Ask(who, server) => self.ask(state, who, server),
            ForgettingStep::Release(who) => state.release(who),
            ForgettingStep::End(who) => state.end(who),
            ForgettingStep::Fault(fault) => {
                state.budget -= 1;
                state.gap = self.config.gap;
                fault::strike(state, fault, self.config.span);
            }
        }
        let holds = |client: &&ForgettingClient| matches!(client.phase, ClientPhase::Holding(_));
        match state.clients.iter().filter(holds).count() {
            0 | 1 => Ok(()),
            many => Err(Violation::new(Kind::TwoBelieve, format!("{many} hold the lock"))),
        }
    }

    fn trace(&self, way: &[ForgettingStep]) -> Vec<String> {
        trace(self, way)
    }

    /// All clients end, and a new one asks at each tick: it gets the lock when the span and the
    /// last TTL are over, at the latest.
    fn try_liveness(
        &self,
        state: &ForgettingState,
        _: usize,
        report: &mut Report,
    ) -> Result<(), (Violation, Vec<ForgettingStep>)> {
        let (mut state, mut way) = (state.clone(), Vec::new());
        let mut go = |state: &mut ForgettingState, step| {
            way.push(step);
            self.take(state, step).map_err(|violation| (violation, way.clone()))
        };
        for who in 0..self.config.clients {
            match state.clients[usize::from(who)].phase {
                ClientPhase::Holding(_) | ClientPhase::RanOut => {
                    go(&mut state, ForgettingStep::End(who))?;
                }
                ClientPhase::Asking => state.end(who),
                ClientPhase::Idle => {}
            }
        }
        report.tried += 1;
        for ticks in 0..=self.config.span + self.config.ttl {
            go(&mut state, ForgettingStep::Begin(0))?;
            for server in 0..SERVERS {
                if state.clients[0].phase == ClientPhase::Asking {
                    go(&mut state, ForgettingStep::Ask(0, server))?;
                }
            }
            if matches!(state.clients[0].phase, ClientPhase::Holding(_)) {
                report.worst_ticks = report.worst_ticks.max(ticks);
                return Ok(());
            }
            go(&mut state, ForgettingStep::Release(0))?;
            go(&mut state, ForgettingStep::Tick)?;
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
