//! The way from an address to the servers.

use tenure::Client;

use crate::{
    exit,
    failure::{Failure, of_config},
    messages::say,
};

/// A client of the servers at this address, or in this list. Nothing is sent yet. What is unwise
/// about the address is said.
///
/// # Errors
///
/// A [`Failure`] that says what is wrong with the address, without what may be a secret.
pub(crate) fn connect(address: &str) -> Result<Client, Failure> {
    let mut parts = address.split(|c: char| c == ',' || c.is_whitespace());
    if parts.any(|part| part.starts_with("memory://")) {
        let what = "memory:// is this process's own memory, where a lock excludes nobody";
        let failure = Failure::new(exit::USAGE, what);
        return Err(failure.hint("give --local to lock on this host, or a server's address"));
    }
    let client = Client::connect(address).map_err(|error| of_config(&error))?;
    for warning in client.warnings() {
        say(warning);
    }
    Ok(client)
}
