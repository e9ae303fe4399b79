//! Bad input, found before anything is sent.

use tenure_core::{KeyError, LabelError, TtlError};

/// A key, a setting or an address that cannot be used. Nothing was sent.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The lock key.
    #[error(transparent)]
    Key(KeyError),
    /// The TTL.
    #[error(transparent)]
    Ttl(TtlError),
    /// The holder's label.
    #[error(transparent)]
    Label(LabelError),
    /// Another setting, by name, value and bound.
    #[error("{setting} is {value}; {bound}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// The value that was given.
        value: String,
        /// What it has to be.
        bound: &'static str,
    },
    /// A server's address. The message repeats the part that is wrong and no password.
    #[error("bad server address: {reason}")]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// The engine's thread could not be started.
    #[error("the client's engine cannot start: {reason}")]
    Engine {
        /// The operating system's words.
        reason: String,
    },
}
