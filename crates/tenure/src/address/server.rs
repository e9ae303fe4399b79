//! Addresses of servers: `[user[:password]@]place[?query]`.

use super::{Endpoint, Secret, ServerAddress, decode, password};

/// Where the server is, and the database that a path named.
type EndpointAndDatabase<'a> = (Endpoint, Option<&'a str>);

/// Reads `[user[:password]@]host[:port][/database][?query]`.
pub(super) fn tcp(rest: &str) -> Result<ServerAddress, String> {
    server(rest, host_and_port)
}

/// Reads `[user[:password]@]/path/to/socket[?query]`.
pub(super) fn unix(rest: &str) -> Result<ServerAddress, String> {
    server(rest, socket)
}

/// See the note at the head of the parent module on what errors repeat.
fn server(
    rest: &str,
    read_place: fn(&str) -> Result<EndpointAndDatabase<'_>, String>,
) -> Result<ServerAddress, String> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if query.contains('@') {
        return Err(format!("an `@` after the `?`; {ENCODE}, and an @ in a path, too"));
    }
    // A password may hold an `@` that was not encoded, so the last one counts.
    let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (place, path_database) = read_place(place)?;
    let (user, password) = login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)));
    let mut server = ServerAddress {
        place,
        user: (!user.is_empty()).then(|| decode(user)).transpose()?,
        password: password.map(decode).transpose()?.map(Secret::new),
        database: path_database.map_or(Ok(0), database)?,
        durable: false,
        warning: None,
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("db", value) => server.database = database(value)?,
            ("durable", "yes") => server.durable = true,
            ("durable", "no") => server.durable = false,
            ("durable", _) => return Err("`durable` must be `yes` or `no`".into()),
            ("password_file", path) => {
                let (secret, warning) = password::of_file(&decode(path)?)?;
                (server.password, server.warning) = (Some(secret), warning);
            }
            _ => {
                return Err(format!(
                    "an unknown setting after the `?`; known are `db`, `durable` and \
                     `password_file`; {ENCODE}"
                ));
            }
        }
    }
    if server.user.is_some() && server.password.is_none() {
        return Err("a user without a password; write `user:password@` or `?password_file=`".into());
    }
    Ok(server)
}

fn host_and_port(place: &str) -> Result<EndpointAndDatabase<'_>, String> {
    let (authority, database) = place.split_once('/').unwrap_or((place, ""));
    let (host, port, also) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, tail) = rest.split_once(']').ok_or("a `[` without its `]`")?;
            if !tail.is_empty() && !tail.starts_with(':') {
                return Err("something other than `:port` after the `]`".into());
            }
            // An address of IP version 6, with a zone.
            (host, tail.strip_prefix(':'), ":%")
        }
        None => {
            let (host, port) =
                authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p)));
            (host, port, "")
        }
    };
    if host.is_empty() {
        return Err(format!("no host; write `redis://HOST[:PORT][/DATABASE]`; {ENCODE}"));
    }
    let host = decode(host)?;
    let is_of_host = |c: char| c.is_alphanumeric() || "-._".contains(c) || also.contains(c);
    if !host.chars().all(is_of_host) {
        return Err(format!("the host has a character that no host name has; {ENCODE}"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(text) => match text.parse() {
            Ok(port) if port != 0 => port,
            _ => {
                return Err(format!(
                    "the port, after the host's colon, is no number from 1 to 65535; a login needs \
                     `@host` behind it; {ENCODE}"
                ));
            }
        },
    };
    Ok((Endpoint::Tcp { host, port }, Some(database).filter(|d| !d.is_empty())))
}

fn socket(place: &str) -> Result<EndpointAndDatabase<'_>, String> {
    if !place.starts_with('/') {
        return Err(format!(
            "the socket needs an absolute path: `redis+unix:///run/redis.sock`; {ENCODE}"
        ));
    }
    Ok((Endpoint::Unix(decode(place)?.into()), None))
}

fn database(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number <= MAX_DATABASE => Ok(number),
        _ => Err(format!("the database is no number from 0 to {MAX_DATABASE}; {ENCODE}")),
    }
}

const DEFAULT_PORT: u16 = 6379;

/// Servers come with 16 databases and may be built with as many as an `int` counts.
const MAX_DATABASE: u32 = i32::MAX.unsigned_abs();

/// What to try when a login may have broken the address.
const ENCODE: &str = "in a user name or password, percent-encode ? # / @ : %";
