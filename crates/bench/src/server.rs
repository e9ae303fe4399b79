//! The server that is measured against.

use tenure_testkit::{Server, ServerKind};

use crate::{Trouble, options::BenchOptions, placement::CpuPlacement};

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
    pub(crate) fn start(options: &mut BenchOptions) -> Result<Self, Trouble> {
        if let Some(url) = options.value("server")? {
            return Ok(Self { url, own: None });
        }
        let builder = Server::builder(ServerKind::Redis70);
        let builder = if options.flag("tcp") { builder.tcp() } else { builder };
        let anywhere = options.flag("anywhere");
        let own = match CpuPlacement::divide()?.filter(|_| !anywhere) {
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

    /// Begins to count what it is asked.
    pub(crate) fn watch(&self) -> Result<ServerCounter, Trouble> {
        Ok(ServerCounter(connect(&self.url)?))
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

/// Looks at what a server was asked, over a connection that is kept: opening one is commands, too.
pub(crate) struct ServerCounter(redis::Connection);

/// What a server was asked so far, but for [`ServerCounter`]'s own questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerCounts {
    /// Commands that clients sent.
    pub(crate) commands: u64,
    /// Calls inside scripts.
    pub(crate) inner: u64,
}

impl ServerCounter {
    /// The counts of this moment.
    ///
    /// A server counts both kinds together by name, so names tell them apart: no side sends one of
    /// [`IN_SCRIPTS`] itself, and anything that is not in that list counts as sent.
    pub(crate) fn counts(&mut self) -> Result<ServerCounts, Trouble> {
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut self.0)?;
        Ok(counts(&stats))
    }
}

fn counts(stats: &str) -> ServerCounts {
    let mut watched = ServerCounts { commands: 0, inner: 0 };
    for line in stats.lines() {
        let Some((name, rest)) =
            line.strip_prefix("cmdstat_").and_then(|line| line.split_once(":calls="))
        else {
            continue;
        };
        let calls = rest.split(',').next().and_then(|calls| calls.parse().ok()).unwrap_or(0);
        // Scripts of a quorum call it, too; a look at the counts does, and is no part of them.
        if name == "info" {
            continue;
        }
        if IN_SCRIPTS.contains(&name) {
            watched.inner += calls;
        } else {
            watched.commands += calls;
        }
    }
    watched
}

/// What the scripts call.
const IN_SCRIPTS: [&str; 23] = [
    "get",
    "getrange",
    "set",
    "del",
    "exists",
    "type",
    "time",
    "pttl",
    "pexpire",
    "zadd",
    "zrem",
    "zscore",
    "zrank",
    "zrange",
    "zrangebyscore",
    "zrevrangebyscore",
    "zpopmin",
    "zcount",
    "zremrangebyscore",
    "zremrangebyrank",
    "publish",
    "pubsub|numsub",
    "info",
];

/// A plain blocking connection.
pub(crate) fn connect(url: &str) -> Result<redis::Connection, Trouble> {
    Ok(redis::Client::open(url)?.get_connection()?)
}

#[cfg(test)]
mod tests {
    use tenure_core::script;

    use super::*;

    #[test]
    fn commands_and_calls_inside_scripts_are_counted_separately() {
        let stats = "# Commandstats\r\n\
             cmdstat_evalsha:calls=30,usec=1\r\ncmdstat_get:calls=4,usec=1\r\n\
             cmdstat_info:calls=9,usec=1\r\ncmdstat_pubsub|numsub:calls=2,usec=1\r\n\
             cmdstat_subscribe:calls=1,usec=1\r\n";
        assert_eq!(counts(stats), ServerCounts { commands: 31, inner: 6 });
    }

    #[test]
    fn every_call_of_a_script_is_known() {
        for script in script::ALL {
            for call in script.text.split("call('").skip(1) {
                let name = call.split('\'').next().unwrap().to_lowercase();
                let known = IN_SCRIPTS.iter().any(|known| known.split('|').next() == Some(&name));
                assert!(known, "{name} in {}", script.name);
            }
        }
    }
}
