//! Where the servers are: addresses as users write them.

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

use percent_encoding::percent_decode_str;

use crate::error::ConfigError;

/// One address.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// `memory://`, private to a client, or `memory://NAME`, shared in this process.
    Memory(Option<String>),
    /// `local:`, or `file:///path`: the embedded store.
    #[cfg(feature = "file")]
    File(crate::node::Location),
    /// A Redis or Valkey server.
    Server(Arc<ServerAddress>),
}

/// A server's address and what it takes to be let in.
#[derive(Debug)]
pub(crate) struct ServerAddress {
    pub(crate) place: Place,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) database: u32,
    /// It keeps its keys over a restart, as the user says.
    pub(crate) durable: bool,
}

/// Where a server listens.
#[derive(Debug)]
pub(crate) enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// A password: never shown.
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl ServerAddress {
    /// The text without the password, for servers that repeat what they were sent.
    pub(crate) fn blot_out(&self, text: &str) -> String {
        match &self.password {
            Some(Secret(password)) if !password.is_empty() => text.replace(password, "***"),
            _ => text.to_owned(),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How errors and logs name a server: without user and password.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}")?,
            Place::Tcp { host, port } => write!(f, "{host}:{port}")?,
            Place::Unix(path) => write!(f, "{}", path.display())?,
        }
        if self.database != 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(None) => f.write_str("memory"),
            Self::Memory(Some(name)) => write!(f, "memory {name}"),
            #[cfg(feature = "file")]
            Self::File(location) => location.fmt(f),
            Self::Server(server) => server.fmt(f),
        }
    }
}

/// The addresses in a list. A comma or white space begins a new one only where a scheme follows, so
/// that passwords and paths may have them.
///
/// # Errors
///
/// As for the first that is none; and for two that are the same, since no server has two votes.
pub(crate) fn list(text: &str) -> Result<Vec<Address>, ConfigError> {
    let mut addresses: Vec<Address> = Vec::new();
    for part in split(text) {
        let address: Address = part.parse()?;
        let is_private = matches!(address, Address::Memory(None));
        let name = address.to_string();
        if !is_private && addresses.iter().any(|other| other.to_string() == name) {
            return Err(ConfigError::Address { reason: format!("{name} is named twice") });
        }
        addresses.push(address);
    }
    Ok(addresses)
}

fn split(text: &str) -> Vec<&str> {
    let is_gap = |c: char| c == ',' || c.is_whitespace();
    let mut rest = text.trim_matches(is_gap);
    let mut parts = Vec::new();
    while let Some((at, _)) = rest
        .char_indices()
        .find(|(at, c)| is_gap(*c) && rest.get(at + c.len_utf8()..).is_some_and(begins_address))
    {
        let (part, next) = rest.split_at(at);
        parts.push(part.trim_end_matches(is_gap));
        rest = next.trim_start_matches(is_gap);
    }
    parts.push(rest);
    parts
}

fn begins_address(text: &str) -> bool {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let of_scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let is_local = text.strip_prefix("local:").is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(|c: char| c == ',' || c.is_whitespace())
    });
    is_local
        || of_scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.chars().all(is_of_scheme))
}

impl FromStr for Address {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let bad = |reason: String| ConfigError::Address { reason };
        if text.matches("://").count() > 1 {
            return Err(bad("more than one `://` in an address".into()));
        }
        if text == "local:" {
            return own_store();
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(bad(format!("no `scheme://` at its start; {SCHEMES}")));
        };
        match scheme {
            "file" => store_at(rest).map_err(bad),
            "memory" => Ok(Self::Memory((!rest.is_empty()).then(|| rest.to_owned()))),
            "redis" | "valkey" => server(rest, tcp).map(Self::server).map_err(bad),
            "redis+unix" | "valkey+unix" => server(rest, unix).map(Self::server).map_err(bad),
            _ => Err(bad(format!("unknown scheme `{scheme}`; {SCHEMES}"))),
        }
    }
}

impl Address {
    /// Whether it keeps its keys over a restart, as far as the user says.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(self, Self::Server(server) if server.durable)
    }

    fn server(server: ServerAddress) -> Self {
        Self::Server(Arc::new(server))
    }
}

const SCHEMES: &str = "this version knows `redis://`, `valkey://`, `redis+unix://`, \
                       `valkey+unix://`, `local:`, `file://` and `memory://`";

const DEFAULT_PORT: u16 = 6379;

/// Servers come with 16 databases and may be built with as many as an `int` counts.
const MOST_DATABASE: u32 = i32::MAX.unsigned_abs();

#[cfg(feature = "file")]
fn own_store() -> Result<Address, ConfigError> {
    Ok(Address::File(crate::node::Location::Own))
}

#[cfg(feature = "file")]
fn store_at(path: &str) -> Result<Address, String> {
    if !path.starts_with('/') {
        return Err("the store needs an absolute path: `file:///var/lib/app/locks.db`".into());
    }
    Ok(Address::File(crate::node::Location::At(decode(path)?.into())))
}

#[cfg(not(feature = "file"))]
fn own_store() -> Result<Address, ConfigError> {
    Err(ConfigError::Address { reason: WITHOUT_STORE.into() })
}

#[cfg(not(feature = "file"))]
fn store_at(_path: &str) -> Result<Address, String> {
    Err(WITHOUT_STORE.into())
}

#[cfg(not(feature = "file"))]
const WITHOUT_STORE: &str = "the embedded store needs the crate's feature `file`";

/// Splits `[user[:password]@]place[?query]`, and has `read_place` read the place.
///
/// No reason that this or its helpers give repeats more than the part that is wrong, since the
/// rest may hold a password.
fn server(
    rest: &str,
    read_place: fn(&str) -> Result<PlaceAndDatabase<'_>, String>,
) -> Result<ServerAddress, String> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may hold an `@` that was not encoded, so the last one counts.
    let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (place, path_database) = read_place(place)?;
    let (user, password) = login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)));
    let mut server = ServerAddress {
        place,
        user: (!user.is_empty()).then(|| decode(user)).transpose()?,
        password: password.map(decode).transpose()?.map(Secret),
        database: path_database.map_or(Ok(0), database)?,
        durable: false,
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("db", value) => server.database = database(value)?,
            ("durable", "yes") => server.durable = true,
            ("durable", "no") => server.durable = false,
            ("durable", value) => {
                return Err(format!("`durable` is `{value}`; it must be `yes` or `no`"));
            }
            ("password_file", path) => server.password = Some(password_file(&decode(path)?)?),
            (name, _) => {
                return Err(format!(
                    "unknown setting `{name}`; known are `db`, `durable`, `password_file`"
                ));
            }
        }
    }
    if server.user.is_some() && server.password.is_none() {
        return Err("a user without a password; write `user:password@` or `?password_file=`".into());
    }
    Ok(server)
}

/// Where the server is, and the database that a path named.
type PlaceAndDatabase<'a> = (Place, Option<&'a str>);

/// Reads `host[:port][/database]`.
fn tcp(place: &str) -> Result<PlaceAndDatabase<'_>, String> {
    let (authority, database) = place.split_once('/').unwrap_or((place, ""));
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, tail) = rest.split_once(']').ok_or("a `[` without its `]`")?;
            (host, tail.strip_prefix(':'))
        }
        None => authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p))),
    };
    if host.is_empty() {
        return Err("no host; write `redis://HOST[:PORT][/DATABASE]`".into());
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(text) => match text.parse() {
            Ok(port) if port != 0 => port,
            _ => return Err(format!("the port `{text}` is no number from 1 to 65535")),
        },
    };
    Ok((Place::Tcp { host: decode(host)?, port }, Some(database).filter(|d| !d.is_empty())))
}

/// Reads an absolute path.
fn unix(place: &str) -> Result<PlaceAndDatabase<'_>, String> {
    if !place.starts_with('/') {
        return Err("the socket needs an absolute path: `redis+unix:///run/redis.sock`".into());
    }
    Ok((Place::Unix(decode(place)?.into()), None))
}

fn database(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number <= MOST_DATABASE => Ok(number),
        _ => Err(format!("the database `{text}` is no number from 0 to {MOST_DATABASE}")),
    }
}

fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| "a percent-encoded part is not UTF-8".to_owned())
}

/// The file's first line: the newline that an editor leaves is not part of the password.
fn password_file(path: &str) -> Result<Secret, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("the password file `{path}` cannot be read: {error}"))?;
    Ok(Secret(text.lines().next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let address: Address = text.parse().unwrap();
        let Address::Server(server) = &address else { return address.to_string() };
        let password = server.password.as_ref().map(Secret::expose);
        format!("{address} {:?} {password:?}", server.user)
    }

    #[test]
    fn addresses_are_read() {
        for (text, means) in [
            ("redis://h", "h:6379 None None"),
            ("valkey://127.0.0.1:7000/2", "127.0.0.1:7000/2 None None"),
            ("redis://[::1]:7000", "[::1]:7000 None None"),
            ("redis://u:p%40ss@h/0", "h:6379 Some(\"u\") Some(\"p@ss\")"),
            ("redis://:p@ss@h", "h:6379 None Some(\"p@ss\")"),
            ("redis://h?db=3", "h:6379/3 None None"),
            ("redis+unix:///run/r.sock?db=1", "/run/r.sock/1 None None"),
            ("valkey+unix://u:p@/run/r.sock", "/run/r.sock Some(\"u\") Some(\"p\")"),
            ("memory://", "memory"),
            ("memory://shop", "memory shop"),
        ] {
            assert_eq!(shown(text), means, "{text}");
        }
    }

    #[test]
    fn lists_are_split_where_a_scheme_follows() {
        for (text, means) in [
            ("redis://a", "a:6379"),
            (" redis://a , redis://b\n", "a:6379|b:6379"),
            ("redis://a,,valkey://b redis://c:1/2", "a:6379|b:6379|c:1/2"),
            ("redis://:p,w@a,memory://x", "a:6379|memory x"),
            ("redis+unix:///run/a b,c.sock redis://b", "/run/a b,c.sock|b:6379"),
            ("memory://,memory://", "memory|memory"),
        ] {
            let names: Vec<_> = list(text).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(names.join("|"), means, "{text}");
        }
        for (text, words) in [
            ("redis://u:hunter2@a,valkey://a:6379", "a:6379 is named twice"),
            ("redis://a,http://u:hunter2@b", "unknown scheme `http`"),
            ("", "no `scheme://`"),
        ] {
            let error = list(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn bad_addresses_name_what_is_wrong_and_no_password() {
        for (text, words) in [
            ("127.0.0.1:6379", "no `scheme://`"),
            ("http://u:hunter2@h", "unknown scheme `http`"),
            ("redis://u:hunter2@h:0", "port `0`"),
            ("redis://u:hunter2@h:99999", "port `99999`"),
            ("redis://u:hunter2@h/x", "database `x`"),
            ("redis://u:hunter2@h/4294967296", "database `4294967296`"),
            ("redis://u:hunter2@", "no host"),
            ("redis://u@h", "a user without a password"),
            ("redis://u:hunter2@h?tls=1", "unknown setting `tls`"),
            ("redis://u:hunter2@h?durable=1", "`durable` is `1`"),
            ("redis+unix://u:hunter2@run/x", "absolute path"),
            ("redis://h?password_file=/nonexistent/hunter3", "cannot be read"),
            ("", "no `scheme://`"),
            ("redis://u:hunter2@a,redis://b", "more than one `://`"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let address: Address = "redis://u:hunter2@h".parse().unwrap();
        assert!(!format!("{address:?} {address}").contains("hunter2"));
        let Address::Server(server) = address else { panic!("a server") };
        assert_eq!(server.blot_out("args: 'hunter2'"), "args: '***'");
    }
}
