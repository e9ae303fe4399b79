//! Steps in words.

use std::fmt;

use super::{
    config::ForgettingFault,
    fault::ServerFault,
    model::{ForgettingModel, ForgettingStep},
    state::{ClientPhase, ENDED, ForgettingState, VoteAnswer},
};
use crate::world::World;

/// The steps of a way, each with what the servers keep after it.
pub(crate) fn trace(model: &ForgettingModel, way: &[ForgettingStep]) -> Vec<String> {
    let mut state = model.first();
    let take = |step: &ForgettingStep| {
        let before = state.clone();
        let then = match model.take(&mut state, *step) {
            Ok(()) => String::new(),
            Err(violation) => format!(" ! {violation}"),
        };
        format!("{}{then}  {}", in_words(&before, &state, *step), Servers(&state))
    };
    way.iter().map(take).collect()
}

fn in_words(before: &ForgettingState, after: &ForgettingState, step: ForgettingStep) -> String {
    match step {
        ForgettingStep::Tick => "a tick".into(),
        ForgettingStep::Begin(who) => match before.clients[usize::from(who)].phase {
            ClientPhase::Idle => format!("client {who}, which is new, asks"),
            ClientPhase::Asking | ClientPhase::Holding(_) => format!("client {who} renews"),
            ClientPhase::RanOut => format!("client {who}, whose lease ran out, asks for it"),
        },
        ForgettingStep::Ask(who, server) => {
            let client = &after.clients[usize::from(who)];
            let answer = client.round.map(|round| round.answers[server]);
            let words = match answer {
                Some(VoteAnswer::Other) => "it is another's",
                Some(VoteAnswer::Nothing) => "no vote",
                Some(VoteAnswer::None | VoteAnswer::Yes) => "yes",
                None => "yes, and it holds the lock",
            };
            format!("s{server} to client {who}: {words}")
        }
        ForgettingStep::Release(who) => format!("client {who} releases"),
        ForgettingStep::End(who) => format!("client {who} ends"),
        ForgettingStep::Fault(ServerFault { what, server, primary }) => {
            let what = match (what, primary) {
                (ForgettingFault::RestartEmpty, _) => "restarts empty".to_owned(),
                (ForgettingFault::RestartKept, _) => "restarts with its data".to_owned(),
                (ForgettingFault::Replicated, Some(other)) => {
                    format!("REPLICAOF s{other}, REPLICAOF NO ONE")
                }
                (ForgettingFault::Replicated, None) => {
                    "REPLICAOF an empty server, REPLICAOF NO ONE".to_owned()
                }
                (ForgettingFault::Flushed, _) => "FLUSHALL".to_owned(),
                (ForgettingFault::MarkerLost, _) => "its marker is deleted".to_owned(),
                (ForgettingFault::ClockForward, _) => "its clock is set forward".to_owned(),
            };
            format!("** s{server}: {what}")
        }
    }
}

/// What the servers keep.
struct Servers<'a>(&'a ForgettingState);

impl fmt::Display for Servers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, server) in self.0.servers.iter().enumerate() {
            f.write_str(if index == 0 { "[" } else { "; " })?;
            match server.data.lock {
                Some((ENDED, left)) => write!(f, "nobody's for {left}")?,
                Some((who, left)) => write!(f, "client {who}'s for {left}")?,
                None => f.write_str("free")?,
            }
            match server.data.marker {
                None => f.write_str(", no marker")?,
                Some(mark) if mark.open == 0 => {
                    write!(f, ", closed since {}/{}", mark.passed, mark.client_passed)?;
                }
                Some(_) => {}
            }
        }
        f.write_str("]")
    }
}
