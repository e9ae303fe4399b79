//! Steps in words.

use std::fmt;

use super::{
    config::ForgettingFault,
    fault::Fault,
    model::{Model, Step},
    state::{Answer, ENDED, Phase, State},
};
use crate::world::World;

/// The steps of a way, each with what the servers keep after it.
pub(crate) fn trace(model: &Model, way: &[Step]) -> Vec<String> {
    let mut state = model.first();
    let take = |step: &Step| {
        let before = state.clone();
        let then = match model.take(&mut state, *step) {
            Ok(()) => String::new(),
            Err(violation) => format!(" ! {violation}"),
        };
        format!("{}{then}  {}", in_words(&before, &state, *step), Servers(&state))
    };
    way.iter().map(take).collect()
}

fn in_words(before: &State, after: &State, step: Step) -> String {
    match step {
        Step::Tick => "a tick".into(),
        Step::Begin(who) => match before.clients[usize::from(who)].phase {
            Phase::Idle => format!("client {who}, which is new, asks"),
            Phase::Asking | Phase::Holding(_) => format!("client {who} renews"),
            Phase::RanOut => format!("client {who}, whose lease ran out, asks for it"),
        },
        Step::Ask(who, server) => {
            let client = &after.clients[usize::from(who)];
            let answer = client.round.map(|round| round.answers[server]);
            let words = match answer {
                Some(Answer::Other) => "it is another's",
                Some(Answer::Nothing) => "no vote",
                Some(Answer::None | Answer::Yes) => "yes",
                None => "yes, and it holds the lock",
            };
            format!("s{server} to client {who}: {words}")
        }
        Step::Release(who) => format!("client {who} releases"),
        Step::End(who) => format!("client {who} ends"),
        Step::Fault(Fault { what, server, primary }) => {
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
struct Servers<'a>(&'a State);

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
