//! Where the servers are: addresses as users write them.
//!
//! No error repeats any part of an address. A password with a raw `?`, `#`, `/` or `@`, or without
//! `@host` behind it, ends up in the place of a port, a database or a setting, so what stands there
//! may be a secret. Errors name the part, and which address of a list it is.

mod password;
mod server;

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

use percent_encoding::percent_decode_str;
use tenure_core::Shown;

pub(crate) use self::password::Secret;
use crate::error::ConfigError;

/// One address.
#[derive(Clone)]
pub(crate) enum Address {
    /// `memory://`, private to a client, or `memory://NAME`, shared in this process.
    Memory(Option<String>),
    /// `local:`, or `file:///path`: the embedded store.
    #[cfg(feature = "sqlite")]
    File(crate::node::Location),
    /// A Redis or Valkey server.
    Server(Arc<ServerAddress>),
}

/// A server's address and what it takes to be let in.
pub(crate) struct ServerAddress {
    pub(crate) place: Endpoint,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) database: u32,
    /// It keeps its keys over a restart, as the user says.
    pub(crate) durable: bool,
    /// What is unwise about it.
    pub(crate) warning: Option<String>,
}

/// Where a server listens.
#[derive(Debug)]
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl ServerAddress {
    /// The text without the password, for servers that repeat what they were sent.
    pub(crate) fn blot_out(&self, text: &str) -> String {
        self.password.as_ref().map_or_else(|| text.to_owned(), |password| password.blot_out(text))
    }
}

/// How errors and logs name a server: without user and password.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}")?,
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}")?,
            Endpoint::Unix(path) => Shown::new(path.as_os_str().as_encoded_bytes()).fmt(f)?,
        }
        if self.database != 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerAddress({self})")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(None) => f.write_str("memory"),
            Self::Memory(Some(name)) => write!(f, "memory {}", Shown::new(name)),
            #[cfg(feature = "sqlite")]
            Self::File(location) => location.fmt(f),
            Self::Server(server) => server.fmt(f),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
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
    let parts = split(text);
    for (part, number) in parts.iter().zip(1..) {
        let address: Address = part.parse().map_err(|error| match error {
            ConfigError::Address { reason } if parts.len() > 1 => ConfigError::Address {
                reason: format!("in number {number} of {}: {reason}", parts.len()),
            },
            error => error,
        })?;
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
            return Err(bad(
                "more than one `://` in an address; between two write a comma or a space".into(),
            ));
        }
        if text == "local:" {
            return own_store();
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(bad(format!("no `scheme://` at its start; {SCHEMES}")));
        };
        match scheme {
            "file" => store_at(rest).map_err(bad),
            "memory" => memory(rest).map_err(bad),
            "redis" | "valkey" => server::tcp(rest).map(Self::server).map_err(bad),
            "redis+unix" | "valkey+unix" => server::unix(rest).map(Self::server).map_err(bad),
            _ => {
                let named = OTHER_SCHEMES.iter().find(|other| **other == scheme);
                let named = named.map_or_else(String::new, |other| format!(" `{other}`"));
                Err(bad(format!("unknown scheme{named}; {SCHEMES}")))
            }
        }
    }
}

impl Address {
    /// The database that is selected on a server.
    pub(crate) fn database(&self) -> u32 {
        if let Self::Server(server) = self { server.database } else { 0 }
    }

    /// Whether it keeps its keys over a restart, as far as the user says.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(self, Self::Server(server) if server.durable)
    }

    /// What is unwise about it, for people.
    pub(crate) fn warning(&self) -> Option<&str> {
        let Self::Server(server) = self else { return None };
        server.warning.as_deref()
    }

    fn server(server: ServerAddress) -> Self {
        Self::Server(Arc::new(server))
    }
}

const SCHEMES: &str = "this version knows `redis://`, `valkey://`, `redis+unix://`, \
                       `valkey+unix://`, `local:`, `file://` and `memory://`";

/// Schemes that people try. An unknown one is repeated only when it is one of these.
const OTHER_SCHEMES: [&str; 9] = [
    "http",
    "https",
    "rediss",
    "valkeys",
    "redis-sentinel",
    "redis+sentinel",
    "redis-cluster",
    "tcp",
    "unix",
];

fn memory(name: &str) -> Result<Address, String> {
    // An address with a login means a server.
    if name.contains('@') {
        return Err("a table in memory has no login: the name after `memory://` has an `@`".into());
    }
    Ok(Address::Memory((!name.is_empty()).then(|| name.to_owned())))
}

#[cfg(feature = "sqlite")]
fn own_store() -> Result<Address, ConfigError> {
    Ok(Address::File(crate::node::Location::Own))
}

#[cfg(feature = "sqlite")]
fn store_at(path: &str) -> Result<Address, String> {
    if !path.starts_with('/') {
        return Err("the store needs an absolute path: `file:///var/lib/app/locks.db`".into());
    }
    Ok(Address::File(crate::node::Location::At(decode(path)?.into())))
}

#[cfg(not(feature = "sqlite"))]
fn own_store() -> Result<Address, ConfigError> {
    Err(ConfigError::Address { reason: WITHOUT_STORE.into() })
}

#[cfg(not(feature = "sqlite"))]
fn store_at(_path: &str) -> Result<Address, String> {
    Err(WITHOUT_STORE.into())
}

#[cfg(not(feature = "sqlite"))]
const WITHOUT_STORE: &str = "the embedded store needs the crate's feature `sqlite`";

fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| "a percent-encoded part is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests;
