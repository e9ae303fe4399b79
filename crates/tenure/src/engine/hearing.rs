//! How an acquisition over several nodes pauses between its tries.

use std::rc::Rc;

use tenure_core::{LockKey, Timestamp, Waiting};

use super::state::State;
use crate::{clock, node::Hearer, random};

/// Hears of releases of one lock at all of its nodes, for as long as it lives.
///
/// It begins after a first refusal, and what was released before that is not heard: so the first
/// poll comes soon.
pub(super) struct Hearing {
    state: Rc<State>,
    hearer: Rc<Hearer>,
}

impl Hearing {
    pub(super) fn begin(state: &Rc<State>, key: &LockKey) -> Self {
        let hearer = Hearer::new(key);
        state.nodes.iter().for_each(|(_, node)| node.hear(&hearer));
        Self { state: Rc::clone(state), hearer }
    }

    /// Sleeps until it is time to ask again, which a hint may bring forward.
    pub(super) async fn pause(&self, waiting: &mut Waiting, next: Timestamp) {
        let mut until = next;
        loop {
            tokio::select! {
                () = self.state.timers.sleep_until(until) => return,
                () = self.hearer.told() => {
                    until = waiting.handle_hint(clock::now(), until, random::jitter());
                }
            }
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.state.nodes.iter().for_each(|(_, node)| node.hear_no_more(&self.hearer));
    }
}
