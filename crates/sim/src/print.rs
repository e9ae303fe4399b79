//! The fingerprint of a state: equal for states that differ only in which client is which.

use crate::{
    attempt::{Belief, ClientAttempt, Force, Keep, Phase, WaiterNotification},
    config::Faults,
    message::{Ask, Content, Delivery, PendingRequest},
    state::{Left, Line, ModelClient, ModelServer, QueueEntry, QueueState, Who},
};

/// Two states with the same fingerprint are taken for one. With 128 bits and ten million states the
/// chance of any mistake is below 1e-24.
pub(crate) type Fingerprint = u128;

/// Computes fingerprints.
#[derive(Debug)]
pub(crate) struct Printer {
    /// Every order of the clients: for each place, who stands there.
    orders: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Printer {
    /// For this many clients. `as_they_are`: without taking clients for each other.
    pub(crate) fn new(clients: u8, as_they_are: bool) -> Self {
        let mut orders = vec![Vec::new()];
        for client in 0..clients {
            let put = |order: &Vec<u8>, at: usize| {
                let mut order = order.clone();
                order.insert(at, client);
                order
            };
            orders = orders
                .iter()
                .flat_map(|order| (0..=order.len()).map(move |at| put(order, at)))
                .collect();
        }
        if as_they_are {
            orders = vec![(0..clients).collect()];
        }
        Self { orders, bytes: Vec::new() }
    }

    pub(crate) fn print(&mut self, state: &QueueState) -> Fingerprint {
        let mut least = Fingerprint::MAX;
        for order in &self.orders {
            self.bytes.clear();
            let mut names = [0; 8];
            for (name, client) in (0..).zip(order) {
                names[usize::from(*client)] = name;
            }
            FingerprintWriter { names, bytes: &mut self.bytes }.state(state, order);
            least = least.min(digest(&self.bytes));
        }
        least
    }
}

/// Writes all there is of a state. Every part is taken apart in full, so that a new field cannot be
/// left out: two different states would be one.
struct FingerprintWriter<'a> {
    /// The name of each client.
    names: [u8; 8],
    bytes: &'a mut Vec<u8>,
}

/// Something that is not there.
const NONE: u8 = 255;

impl FingerprintWriter<'_> {
    fn state(&mut self, state: &QueueState, order: &[u8]) {
        let QueueState { server, clients, faults, highest } = state;
        let ModelServer { lock, number, queue } = server;
        self.option(*lock, |to, (who, left)| {
            to.who(who);
            to.left(left);
        });
        self.option(*number, Self::rank);
        self.count(queue.len());
        for entry in queue {
            let QueueEntry { ticket, who, epoch } = *entry;
            self.rank(ticket);
            self.who(who);
            self.bytes.push(epoch);
        }
        let Faults { ticks, disconnects, crashes, deletes, renewals, resends } = *faults;
        let ticks = ticks.unwrap_or(NONE);
        self.bytes.extend([ticks, disconnects, crashes, deletes, renewals, resends]);
        self.option(*highest, |to, (number, who)| {
            to.rank(number);
            to.who(who);
        });
        for client in order {
            self.client(&clients[usize::from(*client)]);
        }
    }

    fn client(&mut self, client: &ModelClient) {
        let ModelClient { crashed, connected, epoch, seen, attempts, requests, inbox } = client;
        self.flags(&[*crashed, *connected]);
        self.bytes.extend([*epoch, *seen]);
        attempts.iter().for_each(|attempt| self.attempt(attempt));
        self.count(requests.len());
        for PendingRequest { who, epoch, age, ask } in requests {
            self.bytes.extend([who.attempt, *epoch, *age]);
            self.ask(*ask);
        }
        self.count(inbox.len());
        for Delivery { who, says } in inbox {
            self.bytes.push(who.attempt);
            self.says(*says);
        }
    }

    fn attempt(&mut self, attempt: &ClientAttempt) {
        let ClientAttempt {
            phase,
            ambiguous,
            asked,
            asking,
            renewing,
            ticket,
            suspect,
            due,
            notification,
            belief,
            joined,
            robbed,
            release_known,
            has_tombstone,
        } = attempt;
        self.bytes.push(match phase {
            Phase::Idle => 0,
            Phase::Waiting => 1,
            Phase::Holding => 2,
            Phase::Releasing { waited: false } => 3,
            Phase::Releasing { waited: true } => 4,
            Phase::Done => 5,
            Phase::Forcing(Force::Steal) => 6,
            Phase::Forcing(Force::Release) => 7,
        });
        self.flags(&[*ambiguous, *asking, *renewing, *robbed, *release_known, *has_tombstone]);
        self.bytes.push(*asked);
        self.option(*ticket, Self::rank);
        self.option(*suspect, Self::line);
        self.bytes.push(due.unwrap_or(NONE));
        self.option(*notification, |to, notification| match notification {
            WaiterNotification::Acquire => to.bytes.push(0),
            WaiterNotification::SuccessorWatch { granted } => {
                to.bytes.push(1);
                to.line(granted);
            }
        });
        self.option(*belief, |to, Belief { left, number }| {
            to.left(left);
            to.option(number, Self::rank);
        });
        self.option(*joined, Self::rank);
    }

    fn ask(&mut self, ask: Ask) {
        match ask {
            Ask::Acquire { ticket, previous, suspect } => {
                self.bytes.extend([0, previous.unwrap_or(NONE)]);
                self.option(ticket, Self::rank);
                self.option(suspect, Self::line);
            }
            Ask::Renew => self.bytes.push(1),
            Ask::Force(Force::Steal) => self.bytes.push(3),
            Ask::Force(Force::Release) => self.bytes.push(4),
            Ask::Keep(Keep::Resume) => self.bytes.push(5),
            Ask::Keep(Keep::Confirm) => self.bytes.push(6),
            Ask::Keep(Keep::Repair) => self.bytes.push(7),
            Ask::Release { asked, leave_tombstone, waited } => {
                self.bytes.extend([2, asked]);
                self.flags(&[leave_tombstone, waited]);
            }
        }
    }

    fn says(&mut self, says: Content) {
        match says {
            Content::Granted { number, age } => {
                self.bytes.extend([0, age]);
                self.rank(number);
            }
            Content::Queued { left, ticket, position } => {
                self.bytes.extend([1, position]);
                self.left(left);
                self.rank(ticket);
            }
            Content::More => self.bytes.push(2),
            Content::Cancelled => self.bytes.push(3),
            Content::Renewed { age } => self.bytes.extend([4, age]),
            Content::Lost => self.bytes.push(5),
            Content::Released { more } => self.bytes.extend([6, u8::from(more)]),
            Content::Grant => self.bytes.push(7),
            Content::Kept => self.bytes.push(9),
            Content::SuccessorWatch { granted } => {
                self.bytes.push(8);
                self.line(granted);
            }
        }
    }

    fn who(&mut self, who: Who) {
        self.bytes.extend([self.names[usize::from(who.client)], who.attempt]);
    }

    fn line(&mut self, line: Line) {
        self.bytes.extend([self.names[usize::from(line.client)], line.epoch]);
    }

    fn rank(&mut self, rank: crate::rank::Rank) {
        self.bytes.extend(rank.to_le_bytes());
    }

    fn left(&mut self, left: Left) {
        self.bytes.extend(left.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.bytes.push(u8::try_from(count).unwrap_or(u8::MAX));
    }

    fn flags(&mut self, flags: &[bool]) {
        self.bytes.push(flags.iter().fold(0, |bits, flag| bits << 1 | u8::from(*flag)));
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bytes.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Two lanes of 64 bits, each word multiplied in full and folded, as in wyhash.
pub(crate) fn digest(bytes: &[u8]) -> Fingerprint {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        u64::try_from(product >> 64).unwrap_or(0) ^ u64::try_from(product & LOW).unwrap_or(0)
    };
    let (mut one, mut two) = (KEYS[0], KEYS[1] ^ u64::try_from(bytes.len()).unwrap_or(0));
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        one = fold(one ^ word, KEYS[2]) ^ one.rotate_left(23);
        two = fold(two.rotate_left(29) ^ word, KEYS[3]).wrapping_add(two);
    }
    let (a, b) = (fold(one ^ KEYS[1], two ^ KEYS[2]), fold(one ^ KEYS[3], two ^ KEYS[0]));
    u128::from(a) << 64 | u128::from(b)
}

const LOW: u128 = u64::MAX as u128;

/// Odd numbers without a pattern, those of wyhash.
const KEYS: [u64; 4] =
    [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use crate::{config::Config, model::Model, step::QueueStep};

    #[test]
    fn states_that_differ_only_in_client_names_are_equal() {
        let model = Model::new(Config::default());
        let after = |steps: &[QueueStep]| {
            let mut state = QueueState::new(&model.config);
            steps.iter().for_each(|step| model.take(&mut state, *step).unwrap());
            state
        };
        let ask = |client| QueueStep::Begin(Who { client, attempt: 0 });
        let run = |client| QueueStep::Run(Line { client, epoch: 0 });
        let one = after(&[ask(0), run(0), ask(1), run(1)]);
        let other = after(&[ask(1), ask(0), run(1), run(0)]);
        let mut alike = Printer::new(2, false);
        let mut apart = Printer::new(2, true);
        assert_eq!(alike.print(&one), alike.print(&other));
        assert_ne!(apart.print(&one), apart.print(&other));
        let fewer = after(&[ask(0), run(0), ask(1)]);
        assert_ne!(alike.print(&one), alike.print(&fewer));
    }
}
