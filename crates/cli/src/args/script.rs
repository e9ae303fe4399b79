//! The command lines of `acquire`, `extend`, `release` and `status`, which are for scripts.

use std::{ffi::OsString, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command};
use tenure::{Token, Wait};

use super::options;
use crate::{exit, failure::Failure};

/// What the four have in common.
#[derive(Debug)]
pub(crate) struct LockArgs {
    /// The address of the server.
    pub(crate) server: String,
    /// The lock's key.
    pub(crate) key: OsString,
    /// The key as it is shown.
    pub(crate) shown: String,
}

impl LockArgs {
    fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        let (key, shown) = options::given_key(matches);
        Ok(Self { server: options::server(matches)?, key, shown })
    }
}

/// `tenure acquire`.
#[derive(Debug)]
pub(crate) struct AcquireArgs {
    pub(crate) lock: LockArgs,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Option<Duration>,
    pub(crate) node_limit: Option<Duration>,
    pub(crate) wait: Wait,
    pub(crate) busy: u8,
    pub(crate) label: Option<String>,
    pub(crate) verbose: bool,
    pub(crate) json: bool,
}

/// `tenure extend`.
#[derive(Debug)]
pub(crate) struct ExtendArgs {
    pub(crate) lock: LockArgs,
    pub(crate) token: Token,
    pub(crate) ttl: Duration,
}

/// `tenure release`.
#[derive(Debug)]
pub(crate) struct ReleaseArgs {
    pub(crate) lock: LockArgs,
    /// `None` when none was given, which is refused, but not before the holder is looked up.
    pub(crate) token: Option<Token>,
}

/// `tenure status`.
#[derive(Debug)]
pub(crate) struct StatusArgs {
    pub(crate) lock: LockArgs,
    pub(crate) max_ttl: Option<Duration>,
    pub(crate) unproved: bool,
    pub(crate) json: bool,
}

/// `tenure init`.
#[derive(Debug)]
pub(crate) struct InitArgs {
    /// The addresses of the servers.
    pub(crate) server: String,
    pub(crate) max_ttl: Duration,
}

impl InitArgs {
    pub(super) fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        let server = options::server(matches)?;
        let is_server = |address: &str| {
            let schemes = ["redis://", "valkey://", "redis+unix://", "valkey+unix://"];
            schemes.iter().any(|scheme| address.starts_with(scheme))
        };
        let mut named = server.split([',', ' ', '\n', '\t']).filter(|address| !address.is_empty());
        if !named.all(is_server) {
            return Err(Failure::new(exit::USAGE, "only servers are opened by hand")
                .hint("a store of this host never forgets a lock that its users may still hold"));
        }
        let max_ttl = matches.get_one("max-ttl").copied().unwrap_or(DEFAULT_MAX_TTL);
        Ok(Self { server, max_ttl })
    }
}

/// Unless somebody sets a longer one, nobody's is.
const DEFAULT_MAX_TTL: Duration = Duration::from_secs(30);

impl AcquireArgs {
    pub(super) fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        let (wait, busy) = options::wait(matches);
        Ok(Self {
            lock: LockArgs::read(matches)?,
            ttl: options::needed_ttl(matches),
            max_ttl: matches.get_one("max-ttl").copied(),
            node_limit: matches.get_one("node-limit").copied(),
            wait,
            busy,
            label: matches.get_one("label").cloned(),
            verbose: matches.get_flag("verbose"),
            json: matches.get_flag("json"),
        })
    }
}

impl ExtendArgs {
    pub(super) fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        let none = || Failure::new(exit::USAGE, "no token is given").hint(TOKEN);
        Ok(Self {
            lock: LockArgs::read(matches)?,
            token: options::given_token(matches)?.ok_or_else(none)?,
            ttl: options::needed_ttl(matches),
        })
    }
}

impl ReleaseArgs {
    pub(super) fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self { lock: LockArgs::read(matches)?, token: options::given_token(matches)? })
    }
}

impl StatusArgs {
    pub(super) fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            lock: LockArgs::read(matches)?,
            max_ttl: matches.get_one("max-ttl").copied(),
            unproved: matches.get_flag("unproved"),
            json: matches.get_flag("json"),
        })
    }
}

/// Where a token comes from.
pub(crate) const TOKEN: &str = "set TENURE_TOKEN, or give --token, to what acquire has printed";

pub(super) fn acquire() -> Command {
    described(
        "acquire",
        "Wait for the lock, acquire it, and print its token",
        "The lock is not renewed: it ends with its TTL unless you extend or release it by the\n\
         token. The token is a secret, so keep it in TENURE_TOKEN and off command lines:\n\n  \
         TENURE_TOKEN=$(tenure acquire --local --ttl 60 nightly) || exit\n  \
         export TENURE_TOKEN\n  \
         trap 'tenure release --local nightly' EXIT\n",
    )
    .arg(options::ttl(
        "TTL of the lock, which ends then unless it is extended or released (minimum: 10ms)",
    ))
    .arg(options::max_ttl())
    .arg(options::node_limit())
    .args(options::waiting())
    .arg(options::label())
    .arg(json("Print token, fencing number and TTL as one line of JSON"))
    .arg(options::verbose())
}

pub(super) fn extend() -> Command {
    described(
        "extend",
        "Extend the lock that the token holds",
        "A lock that is not held any more is not acquired again. The TTL is never shortened.\n",
    )
    .arg(options::token())
    .arg(options::ttl("New TTL from now, unless the lock ends later anyway (minimum: 10ms)"))
}

pub(super) fn release() -> Command {
    described(
        "release",
        "Release the lock that the token holds",
        "The lock of another holder is never touched. A second release with the same token within\n\
         a minute reports that the lock is already released, and exits with 0.\n",
    )
    .arg(options::token())
}

pub(super) fn status() -> Command {
    described(
        "status",
        "Print who holds the lock; exit with 0 if it is held, 1 if it is free",
        "The state may have changed by the time you read it: to act on it, acquire the lock.\n\n\
         With several servers the output also lists which of them vote on this lock, and why the\n\
         others do not, even if too few answer to know the holder.\n\n\
         JSON: key (and key_hex if it is not text), held, holder, foreign (the holder is another\n\
         library's), ttl_ms (null without a TTL), held_ms, last_fence, fault (why it cannot be\n\
         acquired), source (primary, replica or unproved), waiting (how many), waiters (the\n\
         first 100 in order, each with holder and waiting_ms). Several servers have no queue:\n\
         waiting and waiters are null, and nodes lists each server with node, votes, reason\n\
         and votes_in_ms (how long until it votes by itself). held is null if it is unknown.\n",
    )
    .arg(options::max_ttl())
    .arg(Arg::new("unproved").long("unproved").action(ArgAction::SetTrue).help(
        "Also accept a replica, or a user without write access; the output may be stale and says \
         so",
    ))
    .arg(json("Print one line of JSON"))
}

pub(super) fn init() -> Command {
    Command::new("init")
        .about("Declare, once and by hand, that new servers have lost no lock")
        .after_help(format!(
            "A server without its marker, tenure:marker, may have lost its data. Of several\n\
             servers such a server does not vote until the longest lock that it may have lost\n\
             has expired. A server that never granted a lock need not wait: init writes its\n\
             marker. It reports what it did on each server; a server that has a marker stays\n\
             unchanged.\n\n\
             Never put this into a script that starts servers: after a restart without data it\n\
             would let a second client acquire a lock that is held.\n\n{}\n{}",
            super::DURATIONS,
            exit::table()
        ))
        .disable_help_flag(true)
        .arg(options::help())
        .args(options::servers())
        .arg(options::max_ttl())
}

fn json(help: &'static str) -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help(help)
}

fn described(name: &'static str, about: &'static str, notes: &'static str) -> Command {
    Command::new(name)
        .about(about)
        .after_help(format!("{notes}\n{}\n{}", super::DURATIONS, exit::table()))
        .disable_help_flag(true)
        .arg(options::help())
        .args(options::servers())
        .arg(options::key_hex())
        .arg(options::key())
}
