//! One of the processes: callers that wait, hold and give up.

use std::time::Duration;

use tenure::{Client, LockGuard, Renewal};

use super::{LOCKS, MAX_TROUBLE, MAX_WAIT, MIN_VALIDITY, TTL, VISITORS};
use crate::{
    chaos::{self, Belief, Visitor, now},
    ms,
    program::setting,
};

pub(crate) fn come_and_go() {
    chaos::come_and_go(VISITORS, visit);
}

/// How one holds a lock.
struct Manner {
    long: Duration,
    /// The library renews; else the holder does, or nobody.
    renewal: Renewal,
    by_hand: bool,
    /// The guard is dropped, and not released.
    dropped: bool,
}

impl Manner {
    /// Most hold it shortly, and some for longer than a TTL.
    fn of(visitor: &mut Visitor) -> Self {
        let dice = &mut visitor.dice;
        let short = ms(dice.below(8));
        let long = TTL + ms(dice.below(4_000));
        let dropped = dice.below(2) == 0;
        let (long, renewal, by_hand) = match dice.below(1_000) {
            0..12 => (long, Renewal::Background, false),
            12..18 => (long, Renewal::Manual, true),
            18..28 => (long, Renewal::Manual, false),
            _ => (short, Renewal::Background, false),
        };
        Self { long, renewal, by_hand, dropped }
    }
}

async fn visit(client: Client, mut visitor: Visitor) {
    let name = LOCKS[visitor.index % LOCKS.len()];
    // One process waits even for answers that come too late. It is in the way of the others: what
    // it was granted by some nodes it has while it waits for the rest.
    let is_patient_with_nodes = setting("PLACE") == "0";
    while !visitor.is_over() {
        let manner = Manner::of(&mut visitor);
        let mut lock =
            client.lock(name).ttl(TTL).renewal(manner.renewal).min_validity(MIN_VALIDITY);
        if is_patient_with_nodes {
            lock = lock.node_limit(MAX_TROUBLE);
        }
        // A third of all waits are given up: the future is dropped.
        let patience = ms(visitor.dice.below(300));
        let is_patient = visitor.dice.below(3) > 0;
        let patience = if is_patient { MAX_WAIT * 2 } else { patience };
        let called = now();
        match tokio::time::timeout(patience, lock.acquire_within(MAX_WAIT)).await {
            Ok(Ok(guard)) => {
                let belief = visitor.journal.held(name, called, &guard);
                hold(belief, guard, &manner).await;
                // Others have a chance.
                tokio::time::sleep(ms(visitor.dice.below(40))).await;
            }
            Ok(Err(error)) => visitor.journal.lost(name, called, &error),
            Err(_) => visitor.journal.given_up(),
        }
    }
}

/// Holds it for as long as it believes in it, and no longer than it wants.
async fn hold(mut belief: Belief<'_>, guard: LockGuard, manner: &Manner) {
    let end = now() + u64::try_from(manner.long.as_nanos()).expect("a few seconds");
    while let Some(left) = belief.look(&guard)
        && now() < end
    {
        if manner.by_hand && left < TTL / 2 {
            // When it fails the lease goes on as it was: the next check shows it.
            drop(guard.extend(TTL).await);
        }
        tokio::select! {
            _ = guard.lost() => {}
            () = tokio::time::sleep(ms(2)) => {}
        }
    }
    belief.end();
    if !manner.dropped {
        // A lease that is lost by now says so, and that is all right.
        drop(guard.release().await);
    }
}
