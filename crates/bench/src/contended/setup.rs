//! What is measured: which side, under which load, by how many.

use std::time::Duration;

use crate::Trouble;

/// One way to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contestant {
    /// The library, in its queue.
    Tenure,
    /// The library as a user who may not use channels: it polls.
    Polling,
    /// The bare scripts over a plain socket.
    Relay,
    /// The same once more.
    Control,
}

impl Contestant {
    const ALL: [Self; 4] = [Self::Tenure, Self::Polling, Self::Relay, Self::Control];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tenure => "tenure",
            Self::Polling => "polling",
            Self::Relay => "relay",
            Self::Control => "control",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.name() == name)
    }
}

/// What is done under the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientLoad {
    /// Nothing: the lock is released at once.
    Rush,
    /// A short sleep: everybody else is back in the queue before the release.
    Calm,
}

impl ClientLoad {
    pub(super) const ALL: [Self; 2] = [Self::Rush, Self::Calm];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rush => "rush",
            Self::Calm => "calm",
        }
    }

    pub(super) fn hold(self) -> Duration {
        match self {
            Self::Rush => Duration::ZERO,
            Self::Calm => Duration::from_millis(1),
        }
    }
}

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellSetup {
    pub(super) side: Contestant,
    pub(super) load: ClientLoad,
    /// Clients in a rush, waiters in the calm: as the table says it.
    pub(super) size: u32,
}

impl CellSetup {
    /// All of them; those that are compared stand side by side.
    pub(super) fn all(sizes: &[u32]) -> Vec<Self> {
        let mut all = Vec::new();
        for load in ClientLoad::ALL {
            for &size in sizes {
                let setups = Contestant::ALL.map(|side| Self { side, load, size });
                all.extend(setups.into_iter().filter(|setup| setup.is_worthwhile()));
            }
        }
        all
    }

    /// Polling in the calm is what it is in a rush, and latencies of a crowd are no target.
    fn is_worthwhile(self) -> bool {
        let calm = self.load == ClientLoad::Calm;
        !(calm && self.side == Contestant::Polling) && (self.has_target() || !self.is_for_latency())
    }

    fn is_for_latency(self) -> bool {
        self.load == ClientLoad::Calm || self.side == Contestant::Control
    }

    /// Whether the hand-over is held against the relay's.
    pub(super) fn has_target(self) -> bool {
        self.size <= MAX_COMPARED
    }

    /// What went wrong, and where.
    pub(super) fn trouble(self, what: &Trouble) -> Trouble {
        let (load, side) = (self.load.name(), self.side.name());
        format!("{load} at {} by {side}: {what}", self.size).into()
    }

    /// How many want the lock.
    pub(super) fn clients(self) -> u32 {
        match self.load {
            ClientLoad::Rush => self.size,
            ClientLoad::Calm => self.size + 1,
        }
    }
}

/// The most clients for whose latency there is a target.
const MAX_COMPARED: u32 = 50;
