//! The fingerprint of a state: equal for states that differ only in which server, and which client,
//! is which, and in how identities are called.

use tenure_core::MarkerCause;

use super::state::{
    ClientPhase, Data, ForgettingClient, ForgettingServer, ForgettingState, Id, KnownRun, Mark,
    SERVERS, VoteAnswer,
};
use crate::print::{Fingerprint, digest};

pub(crate) fn print(state: &ForgettingState) -> Fingerprint {
    let clients = u8::try_from(state.clients.len()).unwrap_or(u8::MAX);
    orders(clients).iter().map(|order| digest(&written(state, order))).min().unwrap_or_default()
}

/// Every order of so few clients.
fn orders(clients: u8) -> Vec<Vec<u8>> {
    match clients {
        2 => vec![vec![0, 1], vec![1, 0]],
        3 => [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
            .map(|order| order.to_vec())
            .to_vec(),
        _ => vec![(0..clients).collect()],
    }
}

/// All there is of a state, taken apart in full, so that a new field cannot be left out: two
/// different states would be one.
fn written(state: &ForgettingState, order: &[u8]) -> Vec<u8> {
    let ForgettingState { servers, clients, budget, gap } = state;
    let mut columns = [0, 1, 2].map(|index| column(&servers[index], clients, index, order));
    // Without the identities, and then by them.
    columns.sort();
    let mut bytes = vec![*budget, *gap];
    let mut names: Vec<Id> = Vec::new();
    for (column, ids) in columns {
        bytes.extend(column);
        for id in ids {
            let known = names.iter().position(|name| *name == id);
            let name = known.unwrap_or_else(|| {
                names.push(id);
                names.len() - 1
            });
            bytes.push(if id == 0 { 255 } else { u8::try_from(name).unwrap_or(254) });
        }
    }
    for who in order {
        let ForgettingClient { phase, round, known: _ } = &clients[usize::from(*who)];
        bytes.extend(match phase {
            ClientPhase::Idle => [0, 0],
            ClientPhase::Asking => [1, 0],
            ClientPhase::Holding(left) => [2, *left],
            ClientPhase::RanOut => [3, 0],
        });
        bytes.push(round.map_or(255, |round| round.age));
    }
    bytes
}

/// What there is of one server, and its identities.
fn column(
    server: &ForgettingServer,
    clients: &[ForgettingClient],
    index: usize,
    order: &[u8],
) -> (Vec<u8>, Vec<Id>) {
    let ForgettingServer { data: Data { lock, marker }, run, replid, has_second_replid, uptime } =
        server;
    let mut bytes = Vec::with_capacity(32);
    let mut ids = vec![*run, *replid];
    bytes.extend([u8::from(*has_second_replid), *uptime]);
    let name = |who: u8| {
        let place = order.iter().position(|client| *client == who);
        place.and_then(|place| u8::try_from(place).ok()).unwrap_or(who)
    };
    bytes.extend(lock.map_or([255, 0], |(who, left)| [name(who), left]));
    match marker {
        None => bytes.push(255),
        Some(Mark { cause, open, longest, floor, replid, run, passed, client_passed }) => {
            bytes.push(match cause {
                MarkerCause::New => 0,
                MarkerCause::Changed => 1,
            });
            // Once it is open, the time since then says nothing any more.
            let passed = if open >= longest { [0; 2] } else { [*passed, *client_passed] };
            bytes.extend([*open, *longest, *floor, passed[0], passed[1]]);
            ids.extend([*run, *replid]);
        }
    }
    for who in order {
        let client = &clients[usize::from(*who)];
        let answer = client.round.map(|round: super::state::VoteRound| round.answers[index]);
        bytes.push(match answer {
            None => 0,
            Some(VoteAnswer::None) => 1,
            Some(VoteAnswer::Yes) => 2,
            Some(VoteAnswer::Other) => 3,
            Some(VoteAnswer::Nothing) => 4,
        });
        let KnownRun { run, wait } = client.known[index];
        ids.push(run);
        bytes.push(wait);
    }
    (bytes, ids)
}

const _: () = assert!(SERVERS == 3, "one column for each");
