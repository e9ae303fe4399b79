//! Steps in words.

use std::fmt;

use super::{
    model::QuorumModel,
    state::{Confirm, LockRequest, NodeReply, QuorumState},
    step::QuorumStep,
};
use crate::world::World;

/// The steps of a way, each with what the nodes keep after it.
pub(crate) fn trace(model: &QuorumModel, way: &[QuorumStep]) -> Vec<String> {
    let mut state = model.first();
    let take = |step: &QuorumStep| {
        let words = in_words(&state, *step);
        let then = match model.take(&mut state, *step) {
            Ok(()) => String::new(),
            Err(violation) => format!(" ! {violation}"),
        };
        format!("{words}{}{then}  {}", returned(&state, *step), NodesText(&state))
    };
    way.iter().map(take).collect()
}

fn in_words(state: &QuorumState, step: QuorumStep) -> String {
    let ask = |who: u8, node: usize| &state.attempts[usize::from(who)].lines[node].ask;
    let confirm = |who: u8, node: usize, round: usize| {
        &state.attempts[usize::from(who)].lines[node].confirms[round]
    };
    match step {
        QuorumStep::Begin(who) => format!("a{who} asks all"),
        QuorumStep::Run(who, node) => format!("n{node} runs a{who}'s request"),
        QuorumStep::Vote(who, node) => match ask(who, node) {
            LockRequest::Replied(reply) => {
                format!("a{who} reads of n{node}: {}", reply_in_words(*reply))
            }
            _ => String::new(),
        },
        QuorumStep::NoVote(who, node) => format!("a{who} waits no longer for n{node}"),
        QuorumStep::RunConfirm(who, node, round) => match confirm(who, node, round) {
            Confirm::Sent(number) | Confirm::Late(number) => {
                format!("n{node} runs a{who}'s confirmation of {number}")
            }
            _ => String::new(),
        },
        QuorumStep::Confirmed(who, node, round) => match confirm(who, node, round) {
            Confirm::Replied(reply) => {
                format!("a{who} reads of n{node}: {}", reply_in_words(*reply))
            }
            _ => String::new(),
        },
        QuorumStep::NotConfirmed(who, node, _) => {
            format!("a{who} waits no longer for n{node} to confirm")
        }
        QuorumStep::Grace(who) => format!("a{who} waits no longer for an equal number"),
        QuorumStep::Crash(who) => format!("a{who}'s client crashes"),
        QuorumStep::GiveUp(who) => format!("a{who} gives the lock up"),
        QuorumStep::Release(who, node) => format!("n{node} runs a{who}'s release"),
        QuorumStep::Vanish(node) => format!("the key at n{node} ends"),
        QuorumStep::Lose(node) => format!("n{node} comes back empty"),
        QuorumStep::Read(node, other) => format!("for n{node}, n{other}'s last number is read"),
        QuorumStep::Repair(node) => format!("n{node} is repaired"),
    }
}

fn reply_in_words(reply: NodeReply) -> String {
    match reply {
        NodeReply::Ours(last) => format!("ours, {last}"),
        NodeReply::Gone => "gone".into(),
        NodeReply::Other => "another's".into(),
        NodeReply::Nothing => "nothing that counts".into(),
    }
}

/// Whether somebody returned by this step.
fn returned(state: &QuorumState, step: QuorumStep) -> String {
    let (QuorumStep::Vote(who, _)
    | QuorumStep::NoVote(who, _)
    | QuorumStep::Confirmed(who, ..)
    | QuorumStep::Grace(who)) = step
    else {
        return String::new();
    };
    let number = state.attempts[usize::from(who)].number;
    number.map_or_else(String::new, |number| format!(": returns {number}"))
}

/// What the nodes keep.
struct NodesText<'a>(&'a QuorumState);

impl fmt::Display for NodesText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in self.0.nodes.iter().enumerate() {
            f.write_str(if index == 0 { "[" } else { "; " })?;
            match node.owner {
                Some(who) => write!(f, "a{who} {}", node.last)?,
                None => write!(f, "free {}", node.last)?,
            }
            if node.quarantine.is_some() {
                f.write_str("?")?;
            }
        }
        f.write_str("]")
    }
}
