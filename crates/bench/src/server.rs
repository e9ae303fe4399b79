//! The server that is measured against.

use tenure_testkit::{Server, ServerKind};

use crate::{Trouble, options::Options, placement::Placement};

/// A server, our own or one that was named.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Its address.
    pub(crate) url: String,
    /// `None` for a server that was named: its process is not ours to look at.
    own: Option<Server>,
}

impl Measured {
    /// The server that the options ask for.
    pub(crate) fn start(options: &mut Options) -> Result<Self, Trouble> {
        if let Some(url) = options.value("server")? {
            return Ok(Self { url, own: None });
        }
        let builder = Server::builder(ServerKind::Redis70);
        let builder = if options.flag("tcp") { builder.tcp() } else { builder };
        let anywhere = options.flag("anywhere");
        let own = match Placement::divide()?.filter(|_| !anywhere) {
            None => builder.start(),
            Some(placement) => {
                placement.start_on_the_first()?;
                let own = builder.start();
                placement.start_on_the_others()?;
                own
            }
        };
        Ok(Self { url: own.url(), own: Some(own) })
    }

    /// Its process, when it is our own.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.own.as_ref().map(Server::pid)
    }

    /// Calls of scripts so far, and the time the server spent on them in microseconds.
    pub(crate) fn scripts(&self) -> Result<(u64, u64), Trouble> {
        let mut connection = connect(&self.url)?;
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut connection)?;
        let of = |command: &str, field: &str| -> u64 {
            let line = stats.lines().find_map(|line| line.strip_prefix(command));
            let fields = line.into_iter().flat_map(|line| line.split([':', ',']));
            let value =
                fields.filter_map(|one| one.split_once('=')).find(|(name, _)| *name == field);
            value.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
        };
        let both = |field| of("cmdstat_evalsha:", field) + of("cmdstat_eval:", field);
        Ok((both("calls"), both("usec")))
    }
}

/// A plain blocking connection.
pub(crate) fn connect(url: &str) -> Result<redis::Connection, Trouble> {
    Ok(redis::Client::open(url)?.get_connection()?)
}
