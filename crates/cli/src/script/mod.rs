//! `acquire`, `extend`, `release` and `status`: locks for shell scripts; and `init`, for servers.

mod acquire;
mod held;
mod init;
mod status;

use tenure::{Lock, NodeError, blocking};

pub(crate) use self::{
    acquire::acquire,
    held::{extend, release},
    init::init,
    status::status,
};
use crate::{
    args::LockArgs,
    client::connect,
    failure::{Failure, chain, one_line},
};

/// The lock that is meant. Nothing is sent yet.
fn lock(args: &LockArgs) -> Result<(tenure::Client, Lock), Failure> {
    let client = connect(&args.server)?;
    let lock = client.lock(args.key.as_encoded_bytes());
    Ok((client, lock))
}

/// The same for calls that nothing interrupts.
fn blocking_lock(args: &LockArgs) -> Result<blocking::Lock, Failure> {
    let client = blocking::Client::from(connect(&args.server)?);
    Ok(client.lock(args.key.as_encoded_bytes()))
}

/// What is wrong with a node, in one line that begins with its name.
fn trouble_of(error: &NodeError) -> String {
    let why = chain(error);
    let words = ["the server ", "the store "].iter().find_map(|noun| why.strip_prefix(noun));
    one_line(words.unwrap_or(&why))
}
