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
    Arg::new("help").long("help").short('h').action(ArgAction::Help).help("Print this help")
}

/// The version.
pub(super) fn version() -> Arg {
    let version = Arg::new("version").long("version").short('V').action(ArgAction::Version);
    version.help("Print the version")
}

/// Where the lock is.
pub(super) fn servers() -> [Arg; 2] {
    [
        Arg::new("server").long("server").value_name("URL").action(ArgAction::Append).help(
            "Server: redis://[user:password@]host[:port][/database], redis+unix:///path/to/socket \
             or file:///path/to/store; repeat it for a quorum of servers (default: TENURE_SERVERS, \
             separated by commas)",
        ),
        Arg::new("local").long("local").action(ArgAction::SetTrue).conflicts_with("server").help(
            "Use the store of this user on this host, like --server local:; it excludes only \
             processes of this user on this host",
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
        .help("Key of the lock on the server, exactly as given")
}

/// The lock's key, in place of [`key`].
pub(super) fn key_hex() -> Arg {
    Arg::new("key-hex").long("key-hex").value_name("HEX").value_parser(bytes).help(
        "Bytes of the key in hex, instead of KEY; for a key that is not text (key_hex in JSON)",
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
                "Wait at most this long for the lock or an unreachable server (default: no limit, \
                 but fail at once if no server was ever reached)",
            ),
        Arg::new("no-wait")
            .long("no-wait")
            .short('n')
            .action(ArgAction::SetTrue)
            .conflicts_with("wait")
            .help("Fail at once if another holds the lock"),
        Arg::new("busy")
            .long("conflict-exit-code")
            .short('E')
            .value_name("N")
            .allow_negative_numbers(true)
            .value_parser(busy)
            .help("Exit code if another holds the lock, 0 to 255 (default: 75)"),
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
            "Longest TTL that any client takes this lock with; of several servers, one that lost \
             its data does not vote for that long (default: 30s, or the TTL if longer)",
        )
}

/// How long a server may take.
pub(super) fn node_limit() -> Arg {
    Arg::new("node-limit")
        .long("node-limit")
        .value_name("D")
        .value_parser(duration::parse)
        .help("Time limit for each server's vote (default: from the TTL and the round-trip time)")
}

/// What others see.
pub(super) fn label() -> Arg {
    Arg::new("label")
        .long("label")
        .value_name("L")
        .help("Name of the holder that others see, at most 64 bytes (default: host/process)")
}

/// A word about what is going on.
pub(super) fn verbose() -> Arg {
    Arg::new("verbose").long("verbose").short('v').action(ArgAction::SetTrue).help(
        "Report on standard error: the holder during a wait, and each acquisition and release",
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
        "Token that acquire printed (default: TENURE_TOKEN, which other users cannot see in the \
         process list)",
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
