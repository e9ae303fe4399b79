//! The options that several commands share.

use std::{env, ffi::OsString, os::unix::ffi::OsStringExt as _, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use tenure::{Token, Wait};

use crate::{
    duration, exit,
    failure::{Failure, quoted},
};

/// The help, in the words of the rest.
pub(super) fn help() -> Arg {
    Arg::new("help").long("help").short('h').action(ArgAction::Help).help("Prints this help.")
}

/// The version.
pub(super) fn version() -> Arg {
    let version = Arg::new("version").long("version").short('V').action(ArgAction::Version);
    version.help("Prints the version.")
}

/// Where the lock is.
pub(super) fn servers() -> [Arg; 2] {
    [
        Arg::new("server").long("server").value_name("URL").action(ArgAction::Append).help(
            "Uses the server at this address: redis://[user:password@]host[:port][/database], \
             redis+unix:///path/to/socket, or file:///path/to/store. Given several \
             times, the lock is held by whoever has it on a majority of the servers. Without it, \
             TENURE_SERVERS is used, with commas between several.",
        ),
        Arg::new("local").long("local").action(ArgAction::SetTrue).conflicts_with("server").help(
            "Uses this user's own store on this host, the same as --server local:. It \
                   excludes the processes of this user on this host and nobody else.",
        ),
    ]
}

/// The address, or list of addresses, that the options or the environment name.
///
/// # Errors
///
/// A [`Failure`] that says both ways to name one.
pub(super) fn server(matches: &ArgMatches) -> Result<String, Failure> {
    if matches.get_flag("local") {
        return Ok("local:".to_owned());
    }
    let named: Vec<&str> =
        matches.get_many::<String>("server").into_iter().flatten().map(|url| url.trim()).collect();
    let of_environment = env::var_os("TENURE_SERVERS").unwrap_or_default();
    let address = match (named.is_empty(), of_environment.to_str()) {
        (false, _) => named.join(","),
        (true, Some(servers)) => servers.trim().to_owned(),
        (true, None) => return Err(Failure::new(exit::USAGE, "TENURE_SERVERS is no text")),
    };
    if address.is_empty() {
        return Err(Failure::new(exit::USAGE, "no server is named").hint(BOTH_WAYS));
    }
    Ok(address)
}

/// Both ways to name a server.
const BOTH_WAYS: &str = "give --server URL or set TENURE_SERVERS=URL, such as \
                         redis://127.0.0.1:6379, or give --local to lock on this host alone";

/// The lock's key.
pub(super) fn key() -> Arg {
    Arg::new("key")
        .value_name("KEY")
        .required_unless_present("key-hex")
        .conflicts_with("key-hex")
        .value_parser(value_parser!(OsString))
        .help("Names the lock: the server's key, exactly as given.")
}

/// The lock's key, in place of [`key`].
pub(super) fn key_hex() -> Arg {
    Arg::new("key-hex").long("key-hex").value_name("HEX").value_parser(bytes).help(
        "Names the lock in place of KEY by the bytes of the key, two hex digits each: key_hex in \
         JSON, for a key that is not text.",
    )
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? * 16 + digit(low)?),
        _ => None,
    };
    let bytes = text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<_>>>();
    bytes.ok_or_else(|| {
        "a key in hex has two digits from 0 to 9 and a to f for each byte".to_owned()
    })
}

/// What [`key_hex`] comes to.
pub(super) fn hex_key(matches: &ArgMatches) -> Option<OsString> {
    matches.get_one::<Vec<u8>>("key-hex").cloned().map(OsString::from_vec)
}

/// How long to wait, and what to say when that was not enough.
pub(super) fn waiting() -> [Arg; 3] {
    [
        Arg::new("wait")
            .long("wait")
            .short('w')
            .value_name("D")
            .value_parser(duration::parse)
            .help(
                "Waits at most this long for the lock, and for a server that cannot be reached. \
                 Without it the wait for another has no end, but a server that was never reached \
                 ends it at once.",
            ),
        Arg::new("no-wait")
            .long("no-wait")
            .short('n')
            .action(ArgAction::SetTrue)
            .conflicts_with("wait")
            .help("Does not wait when another holds the lock."),
        Arg::new("busy")
            .long("conflict-exit-code")
            .short('E')
            .value_name("N")
            .allow_negative_numbers(true)
            .value_parser(busy)
            .help(
                "Exits with this code, from 0 to 255, when another holds the lock. The default \
                   is 75.",
            ),
    ]
}

fn busy(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "an exit code is a whole number from 0 to 255".to_owned())
}

/// What [`waiting`] comes to.
pub(super) fn wait(matches: &ArgMatches) -> (Wait, u8) {
    let wait = match (matches.get_flag("no-wait"), matches.get_one("wait")) {
        (true, _) => Wait::No,
        (false, Some(longest)) => Wait::Within(*longest),
        (false, None) => Wait::Forever,
    };
    (wait, matches.get_one("busy").copied().unwrap_or(exit::BUSY))
}

/// The longest TTL that anybody uses.
pub(super) fn max_ttl() -> Arg {
    Arg::new("max-ttl")
        .long("max-ttl")
        .value_name("D")
        .allow_negative_numbers(true)
        .value_parser(duration::parse)
        .help(
            "Says that nobody takes this lock with a longer TTL. The default is 30 s, or the TTL \
             if that is longer. Of several servers one that has restarted may have forgotten \
             locks: it does not vote until the longest are over, unless its address ends in \
             ?durable=yes, which says that it keeps its keys over a restart.",
        )
}

/// How long a server may take.
pub(super) fn node_limit() -> Arg {
    Arg::new("node-limit").long("node-limit").value_name("D").value_parser(duration::parse).help(
        "Gives each server this long to grant or refuse the lock. The default follows the TTL and \
         the round trip to the server.",
    )
}

/// What others see.
pub(super) fn label() -> Arg {
    Arg::new("label").long("label").value_name("L").help(
        "Shows others this text as the holder, of at most 64 bytes. The default is host/process.",
    )
}

/// A word about what is going on.
pub(super) fn verbose() -> Arg {
    Arg::new("verbose").long("verbose").short('v').action(ArgAction::SetTrue).help(
        "Says on standard error what is going on: whom it waits for, and when it acquires \
               and releases the lock.",
    )
}

/// A TTL that must be given.
pub(super) fn ttl(help: &'static str) -> Arg {
    Arg::new("ttl")
        .long("ttl")
        .value_name("D")
        .required(true)
        .allow_negative_numbers(true)
        .value_parser(duration::parse)
        .help(help)
}

/// What [`ttl`] comes to.
pub(super) fn needed_ttl(matches: &ArgMatches) -> Duration {
    matches.get_one("ttl").copied().unwrap_or_default()
}

/// The token that proves who may extend and release.
pub(super) fn token() -> Arg {
    Arg::new("token").long("token").value_name("T").help(
        "Proves that the lock is yours: what acquire has printed. Without it, TENURE_TOKEN is \
         used, which other users cannot see in the list of processes.",
    )
}

/// The token that the option or the environment names; `None` when neither does.
///
/// # Errors
///
/// A [`Failure`] that does not repeat what may be a secret.
pub(super) fn given_token(matches: &ArgMatches) -> Result<Option<Token>, Failure> {
    let of_environment = || env::var("TENURE_TOKEN").ok();
    let text = matches.get_one::<String>("token").cloned().or_else(of_environment);
    let text = text.filter(|text| !text.is_empty());
    let bad = |error: &dyn ToString| Failure::new(exit::USAGE, error.to_string());
    text.map(|text| text.trim().parse::<Token>().map_err(|error| bad(&error))).transpose()
}

/// That a key was given which the tool can show.
pub(super) fn given_key(matches: &ArgMatches) -> (OsString, String) {
    let key = hex_key(matches).or_else(|| matches.get_one("key").cloned()).unwrap_or_default();
    let shown = quoted(key.as_encoded_bytes());
    (key, shown)
}
