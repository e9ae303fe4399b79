//! The sides: the same work at the same nodes, done in different ways.

use super::{fanout, nodes};
use crate::{Trouble, options::BenchOptions, series::serve};

/// One way to acquire and release a lock of several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuorumSide {
    /// `SET NX PX` and a compare-and-delete script on all nodes at once: no number.
    Plain,
    /// tenure's scripts over plain connections, without an engine.
    Fanout,
    /// The same once more: how far apart two equal sides come out.
    Control,
    /// `tenure::blocking`.
    Tenure,
}

impl QuorumSide {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Fanout, Self::Control, Self::Tenure];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Fanout => "fan-out",
            Self::Control => "control",
            Self::Tenure => "tenure",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.name() == name)
    }
}

/// The process of one side.
pub(crate) fn voter(options: &mut BenchOptions) -> Result<(), Trouble> {
    let name: String = options.needed("name")?;
    let servers: String = options.needed("servers")?;
    let key: String = options.needed("key")?;
    let urls: Vec<String> = servers.split(',').map(str::to_owned).collect();
    match QuorumSide::named(&name).ok_or("no such side")? {
        QuorumSide::Plain => serve(fanout::plain(&urls, &key)?),
        QuorumSide::Fanout | QuorumSide::Control => serve(fanout::scripts(&urls, &key)?),
        QuorumSide::Tenure => {
            let client = tenure::blocking::Client::connect(&nodes::address(&urls))?;
            let lock = client.lock(&key).ttl(fanout::TTL);
            // Where nobody has answered yet, a wait without an end takes a busy machine for an
            // outage.
            lock.acquire_within(fanout::TTL)?.release()?;
            serve(move || Ok(lock.acquire()?.release()?))
        }
    }
}
