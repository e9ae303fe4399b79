//! Steps in words.

use std::fmt;

use super::{
    model::Model,
    state::{Ask, Confirm, Heard, State},
    step::Step,
};
use crate::world::World;

/// The steps of a way, each with what the nodes keep after it.
pub(crate) fn trace(model: &Model, way: &[Step]) -> Vec<String> {
    let mut state = model.first();
    let take = |step: &Step| {
        let words = in_words(&state, *step);
        let then = match model.take(&mut state, *step) {
            Ok(()) => String::new(),
            Err(violation) => format!(" ! {violation}"),
        };
        format!("{words}{}{then}  {}", returned(&state, *step), Nodes(&state))
    };
    way.iter().map(take).collect()
}

fn in_words(state: &State, step: Step) -> String {
    let ask = |who: u8, node: usize| &state.attempts[usize::from(who)].lines[node].ask;
    let confirm = |who: u8, node: usize, round: usize| {
        &state.attempts[usize::from(who)].lines[node].confirms[round]
    };
    match step {
        Step::Begin(who) => format!("a{who} asks all"),
        Step::Run(who, node) => format!("n{node} runs a{who}'s request"),
        Step::Vote(who, node) => match ask(who, node) {
            Ask::Replied(heard) => format!("a{who} reads of n{node}: {}", heard_in_words(*heard)),
            _ => String::new(),
        },
        Step::NoVote(who, node) => format!("a{who} waits no longer for n{node}"),
        Step::RunConfirm(who, node, round) => match confirm(who, node, round) {
            Confirm::Sent(number) | Confirm::Late(number) => {
                format!("n{node} runs a{who}'s confirmation of {number}")
            }
            _ => String::new(),
        },
        Step::Confirmed(who, node, round) => match confirm(who, node, round) {
            Confirm::Replied(heard) => {
                format!("a{who} reads of n{node}: {}", heard_in_words(*heard))
            }
            _ => String::new(),
        },
        Step::NotConfirmed(who, node, _) => {
            format!("a{who} waits no longer for n{node} to confirm")
        }
        Step::Grace(who) => format!("a{who} waits no longer for an equal number"),
        Step::Crash(who) => format!("a{who}'s client crashes"),
        Step::GiveUp(who) => format!("a{who} gives the lock up"),
        Step::Release(who, node) => format!("n{node} runs a{who}'s release"),
        Step::Vanish(node) => format!("the key at n{node} ends"),
        Step::Lose(node) => format!("n{node} comes back empty"),
        Step::Read(node, other) => format!("for n{node}, n{other}'s last number is read"),
        Step::Repair(node) => format!("n{node} is repaired"),
    }
}

fn heard_in_words(heard: Heard) -> String {
    match heard {
        Heard::Ours(last) => format!("ours, {last}"),
        Heard::Gone => "gone".into(),
        Heard::Other => "another's".into(),
        Heard::Nothing => "nothing that counts".into(),
    }
}

/// Whether somebody returned by this step.
fn returned(state: &State, step: Step) -> String {
    let (Step::Vote(who, _) | Step::NoVote(who, _) | Step::Confirmed(who, ..) | Step::Grace(who)) =
        step
    else {
        return String::new();
    };
    let number = state.attempts[usize::from(who)].number;
    number.map_or_else(String::new, |number| format!(": returns {number}"))
}

/// What the nodes keep.
struct Nodes<'a>(&'a State);

impl fmt::Display for Nodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in self.0.nodes.iter().enumerate() {
            f.write_str(if index == 0 { "[" } else { "; " })?;
            match node.owner {
                Some(who) => write!(f, "a{who} {}", node.last)?,
                None => write!(f, "free {}", node.last)?,
            }
            if node.suspect.is_some() {
                f.write_str("?")?;
            }
        }
        f.write_str("]")
    }
}
