//! How an acquisition over several nodes pauses between its tries.

use std::rc::Rc;

use tenure_core::{LockKey, Timestamp, Waiting};

use super::state::State;
use crate::{clock, node::ReleaseListener, random};

/// Receives notifications of one lock from all of its nodes, for as long as it lives.
///
/// It begins after a first refusal, and misses earlier releases: so the first
/// poll comes soon.
pub(super) struct ReleaseSubscription {
    state: Rc<State>,
    listener: Rc<ReleaseListener>,
}

impl ReleaseSubscription {
    pub(super) fn begin(state: &Rc<State>, key: &LockKey) -> Self {
        let listener = ReleaseListener::new(key);
        state.nodes.iter().for_each(|(_, node)| node.subscribe(&listener));
        Self { state: Rc::clone(state), listener }
    }

    /// Sleeps until it is time to ask again, which a notification may bring forward.
    pub(super) async fn pause(&self, waiting: &mut Waiting, next: Timestamp) {
        let mut until = next;
        loop {
            tokio::select! {
                () = self.state.timers.sleep_until(until) => return,
                () = self.listener.notified() => {
                    until = waiting.handle_notification(clock::now(), until, random::jitter());
                }
            }
        }
    }
}

impl Drop for ReleaseSubscription {
    fn drop(&mut self) {
        self.state.nodes.iter().for_each(|(_, node)| node.unsubscribe(&self.listener));
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tenure_core::{Op, Wait};

    use super::*;
    use crate::{
        address::Address,
        engine::{inbox, status::EngineStatus},
        task,
    };

    /// Too long for any pause that a notification ends.
    const LIMIT: Duration = Duration::from_secs(20);

    async fn pause_for_a_day() {
        let (inbox, _commands) = inbox::channel(None);
        let status = Arc::new(EngineStatus::begin());
        let nodes = [Address::Memory(None)];
        let state = State::new(&nodes, inbox.downgrade(), &status, None).unwrap();
        let timers = Rc::clone(&state.timers);
        task::spawn(async move { timers.run().await.unwrap() });
        let key = LockKey::new("k").unwrap();
        let node = state.nodes.first();
        let subscription = ReleaseSubscription::begin(&state, &key);
        let [holder, token] =
            ["0", "1"].map(|digit| format!("{}@h", digit.repeat(32)).parse().unwrap());
        let ttl = tenure_core::Ttl::new(LIMIT).unwrap();
        let force = Op::ForceRelease { key: key.clone(), token, any: false };
        for op in [Op::Steal { key, token: holder, ttl, any: false }, force] {
            node.call(op, LIMIT).await.unwrap();
        }
        let mut waiting = Waiting::new(clock::now(), Wait::Forever);
        let tomorrow = clock::now() + Duration::from_secs(86_400);
        tokio::select! {
            () = subscription.pause(&mut waiting, tomorrow) => {}
            () = state.timers.sleep_until(clock::now() + LIMIT) => panic!("it sleeps on"),
        }
    }

    #[test]
    fn a_notification_ends_a_pause() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, pause_for_a_day());
    }
}
