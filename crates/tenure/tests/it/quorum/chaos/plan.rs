//! What goes wrong, and when: the same in each run of a seed.

use std::time::Duration;

use crate::{chaos::Dice, ms};

/// What a node may suffer from. Whatever it is, it keeps what it has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeTrouble {
    /// Stopped, and what it was sent in the meantime is carried out afterwards.
    Frozen,
    /// Killed, and started again with its data.
    Killed,
    /// The network takes everything and brings nothing.
    BlackHole,
    /// The network resets connections, and takes no new ones.
    Refusing,
    /// The network brings replies late.
    Slow,
    /// The network brings requests, and no replies.
    Mute,
    /// The network delivers requests late: first it ends the clients' connections, and then it
    /// delivers what was on its way.
    HalfOpen,
    /// It takes no writes for a while.
    Paused,
    /// It forgets its scripts.
    Forgetful,
    /// Its last numbers are ahead of all others', as after attempts that were given up by somebody
    /// whose clock is ahead.
    Ahead,
}

/// What a process of clients may suffer from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProcessTrouble {
    /// Killed, and another comes in its place.
    Killed,
    Stopped,
    /// The network cuts it off from a majority of the nodes.
    CutOff,
    /// The network brings it all replies late.
    Slow,
}

/// Whom it happens to, by place, and what.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Node(usize, NodeTrouble, Phase),
    Process(usize, ProcessTrouble, Phase),
}

/// Troubles last, some for no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Begins,
    Ends,
}

/// One step after the other, each with its time since the beginning.
pub(super) struct Plan {
    dice: Dice,
    at: Duration,
    /// Nothing goes wrong after that.
    long: Duration,
    /// Ends of troubles that last; no two of one patient.
    lasting: Vec<(Duration, Step)>,
}

impl Plan {
    pub(super) fn new(seed: u64, long: Duration) -> Self {
        Self { dice: Dice::new(seed), at: Duration::ZERO, long, lasting: Vec::new() }
    }

    /// One of so many who is well, if fewer than so many are not.
    fn choose(
        &mut self,
        of: usize,
        most: usize,
        place: impl Fn(&Step) -> Option<usize>,
    ) -> Option<usize> {
        let ill: Vec<_> = self.lasting.iter().filter_map(|(_, step)| place(step)).collect();
        let well: Vec<_> = (0..of).filter(|place| !ill.contains(place)).collect();
        (ill.len() < most).then(|| well[self.dice.index(well.len())])
    }

    fn begin(&mut self) -> Option<Step> {
        let (place, trouble) = match self.dice.below(6) {
            0 => (self.choose(super::NODES, super::NODES, Step::node)?, &INCIDENTS[..]),
            1..4 => {
                // In turn many nodes are ill, none and some: what a process believes that is cut
                // off from a majority, others can contradict only while that majority is well.
                let phase = usize::try_from(self.at.as_secs() / 4).expect("no year") % 3;
                (self.choose(super::NODES, MAX_ILL_NODES[phase], Step::node)?, &NODE_TROUBLES[..])
            }
            _ => {
                let place = self.choose(super::PROCESSES, MAX_ILL_PROCESSES, Step::process)?;
                let trouble = PROCESS_TROUBLES[self.dice.index(PROCESS_TROUBLES.len())];
                return Some(Step::Process(place, trouble, Phase::Begins));
            }
        };
        Some(Step::Node(place, trouble[self.dice.index(trouble.len())], Phase::Begins))
    }

    /// Many troubles are short. A network that is bad for one process alone is so for longer than a
    /// TTL: the others can take over what it holds.
    fn length(&mut self, step: Step) -> Duration {
        let longest = u64::try_from(super::MAX_TROUBLE.as_millis()).expect("a few seconds");
        let one = self.dice.below(longest + 1);
        match step {
            Step::Process(_, ProcessTrouble::CutOff | ProcessTrouble::Slow, _) => {
                ms(longest / 2 + one / 2)
            }
            _ => ms(self.dice.below(one + 1)),
        }
    }
}

impl Iterator for Plan {
    type Item = (Duration, Step);

    fn next(&mut self) -> Option<(Duration, Step)> {
        loop {
            let next = self.at + ms(self.dice.below(MAX_BETWEEN_MS));
            let is_over = next >= self.long;
            let first = self.lasting.iter().enumerate().min_by_key(|(_, (until, _))| *until);
            if let Some((index, (until, _))) = first
                && (*until <= next || is_over)
            {
                let (until, step) = self.lasting.swap_remove(index);
                self.at = self.at.max(until.min(self.long));
                return Some((self.at, step));
            }
            if is_over {
                return None;
            }
            self.at = next;
            if let Some(step) = self.begin() {
                let until = next + self.length(step);
                self.lasting.extend(step.end().map(|end| (until, end)));
                return Some((next, step));
            }
        }
    }
}

impl Step {
    const fn node(&self) -> Option<usize> {
        match self {
            Self::Node(place, ..) => Some(*place),
            Self::Process(..) => None,
        }
    }

    const fn process(&self) -> Option<usize> {
        match self {
            Self::Process(place, ..) => Some(*place),
            Self::Node(..) => None,
        }
    }

    /// The end of what begins, if it lasts.
    fn end(&self) -> Option<Self> {
        match *self {
            Self::Node(_, NodeTrouble::Forgetful | NodeTrouble::Ahead, _)
            | Self::Process(_, ProcessTrouble::Killed, _) => None,
            Self::Node(place, trouble, _) => Some(Self::Node(place, trouble, Phase::Ends)),
            Self::Process(place, trouble, _) => Some(Self::Process(place, trouble, Phase::Ends)),
        }
    }
}

/// Over as soon as they have happened, and no illness.
const INCIDENTS: [NodeTrouble; 2] = [NodeTrouble::Forgetful, NodeTrouble::Ahead];

const NODE_TROUBLES: [NodeTrouble; 8] = [
    NodeTrouble::Frozen,
    NodeTrouble::Killed,
    NodeTrouble::BlackHole,
    NodeTrouble::Refusing,
    NodeTrouble::Slow,
    NodeTrouble::Mute,
    NodeTrouble::HalfOpen,
    NodeTrouble::Paused,
];

/// As many as may fail, and a majority is left.
const MAX_ILL_NODES: [usize; 3] = [2, 0, 1];

/// The others want each lock at all times.
const MAX_ILL_PROCESSES: usize = 2;

const PROCESS_TROUBLES: [ProcessTrouble; 4] =
    [ProcessTrouble::Killed, ProcessTrouble::Stopped, ProcessTrouble::CutOff, ProcessTrouble::Slow];

/// From one trouble to the next, while there may be more.
const MAX_BETWEEN_MS: u64 = 60;
