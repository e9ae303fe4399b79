//! What a client does with answers: real votes of a real attempt, and renewals.

use std::time::Duration;

use tenure_core::{
    Attempt, FencingToken, Held, Holder, NodeId, Outcome, Quorum, RenewalAnswer, Timestamp,
    TtlLeft, Vote,
};

use super::{
    config::ForgettingRule,
    model::ForgettingModel,
    server::{TICK_MS, is_eligible},
    state::{ClientPhase, ForgettingState, SERVERS, VoteAnswer, VoteRound},
};

impl ForgettingModel {
    /// A client sends its requests to all servers.
    pub(crate) fn begin(&self, state: &mut ForgettingState, who: u8) {
        let client = &mut state.clients[usize::from(who)];
        client.round = Some(VoteRound::default());
        if client.phase == ClientPhase::Idle {
            client.phase = ClientPhase::Asking;
        }
    }

    /// A server carries out a client's request, and the answer arrives.
    pub(crate) fn ask(&self, state: &mut ForgettingState, who: u8, server: usize) {
        let ForgettingState { servers, clients, .. } = state;
        let client = &mut clients[usize::from(who)];
        let one = &mut servers[server];
        let is_eligible = is_eligible(&self.config, one, &mut client.known[server]);
        let answer = match client.phase {
            ClientPhase::Idle => return,
            ClientPhase::Asking => match self.names.acquire(one, who) {
                true if is_eligible => VoteAnswer::Yes,
                true => VoteAnswer::Nothing,
                false => VoteAnswer::Other,
            },
            ClientPhase::Holding(_) => {
                let counts = is_eligible || self.config.rule == ForgettingRule::AnyRenewal;
                match self.names.renew(one, who) {
                    RenewalAnswer::Renewed if counts => VoteAnswer::Yes,
                    RenewalAnswer::Gone => {
                        // It gets its key again, and counts from the next renewal on.
                        _ = self.names.acquire(one, who);
                        VoteAnswer::Nothing
                    }
                    _ => VoteAnswer::Nothing,
                }
            }
            ClientPhase::RanOut => {
                let proof = match self.names.renew(one, who) {
                    RenewalAnswer::Renewed => VoteAnswer::Yes,
                    _ => VoteAnswer::Nothing,
                };
                match self.config.rule {
                    ForgettingRule::AnyProof => proof,
                    ForgettingRule::AnyResumption => self.names.resume(one, who),
                    _ if is_eligible => proof,
                    _ => VoteAnswer::Nothing,
                }
            }
        };
        let Some(round) = &mut client.round else { return };
        round.answers[server] = answer;
        if self.is_majority(*round) {
            let left = self.config.ttl - round.age;
            let left = match client.phase {
                ClientPhase::Holding(has) => left.max(has),
                _ => left,
            };
            (client.phase, client.round) = (ClientPhase::Holding(left), None);
        }
        if self.config.rule != ForgettingRule::RunMemory {
            client.known = Default::default();
        }
    }

    /// What an attempt makes of these answers.
    fn is_majority(&self, round: VoteRound) -> bool {
        let at = |ticks: u8| SENT + Duration::from_millis(u64::from(ticks) * TICK_MS);
        let quorum = Quorum::new(SERVERS).expect("a quorum");
        let mut attempt = Attempt::new(at(0), quorum, self.names.ttl(), Duration::ZERO);
        while attempt.poll_ask().is_some() {}
        for (index, answer) in round.answers.iter().enumerate() {
            let vote = match answer {
                VoteAnswer::None => continue,
                VoteAnswer::Yes => Vote::Granted(FencingToken::MIN),
                VoteAnswer::Other => Vote::Refused { held: other(), last_number: None },
                VoteAnswer::Nothing => Vote::Unknown,
            };
            attempt.handle_vote(at(round.age), NodeId(index), vote);
        }
        matches!(attempt.outcome(), Some(Outcome::Acquired(_)))
    }
}

/// Who refuses is all one to an attempt.
fn other() -> Held {
    Held { holder: Holder::from_value(b"x"), ttl_left: TtlLeft::Never }
}

/// When every round begins, by its client's clock.
const SENT: Timestamp = Timestamp::from_nanos(1_000_000_000);
