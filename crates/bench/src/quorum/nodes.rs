//! The servers that vote, and their addresses.

use tenure_testkit::{Server, ServerKind};

use crate::{Trouble, placement::CpuPlacement};

/// Servers on ports of this host, of all kinds in turn.
#[derive(Debug)]
pub(super) struct VotingServers(Vec<Server>);

impl VotingServers {
    /// Starts them, on a processor of their own unless they may be anywhere.
    pub(super) fn start(anywhere: bool) -> Result<Self, Trouble> {
        let placement = CpuPlacement::divide()?.filter(|_| !anywhere);
        if let Some(placement) = &placement {
            placement.start_on_the_first()?;
        }
        let kinds = ServerKind::ALL.into_iter().cycle().take(VOTERS);
        let nodes: Vec<_> = kinds.map(|kind| Server::builder(kind).tcp().start()).collect();
        for node in &nodes {
            let client = tenure::blocking::Client::connect(&node.url())?;
            client.open_new(super::fanout::TTL)?;
        }
        if let Some(placement) = &placement {
            placement.start_on_the_others()?;
        }
        Ok(Self(nodes))
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Server> {
        self.0.iter()
    }

    /// Their addresses.
    pub(super) fn urls(&self) -> Vec<String> {
        self.iter().map(Server::url).collect()
    }
}

/// The address of the quorum for tenure: a server that was just started is young, and yet has
/// forgotten nothing.
pub(super) fn address(urls: &[String]) -> String {
    let urls = urls.iter().map(|url| format!("{url}?durable=yes"));
    urls.collect::<Vec<_>>().join(",")
}

/// How many vote.
const VOTERS: usize = 5;
