//! A user without channels: to it the library polls.

use crate::{Trouble, server::connect};

/// The user, while it exists.
#[derive(Debug)]
pub(super) struct Polling {
    server: String,
    url: String,
}

impl Polling {
    /// Makes the user.
    pub(super) fn begin(server: &str) -> Result<Self, Trouble> {
        let rules = ["reset", "on", ">tenure", "~*", "resetchannels", "+@all"];
        let set = redis::cmd("ACL").arg("SETUSER").arg(USER).arg(&rules).to_owned();
        set.exec(&mut connect(server)?)?;
        let (scheme, place) = server.split_once("://").ok_or("the server's address has none")?;
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        Ok(Self { server: server.to_owned(), url: format!("{scheme}://{USER}:tenure@{place}") })
    }

    /// The server's address for this user.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        // A server that is gone has no users; nothing more can be done about another.
        let delete = redis::cmd("ACL").arg("DELUSER").arg(USER).to_owned();
        _ = connect(&self.server).map(|mut connection| delete.exec(&mut connection));
    }
}

const USER: &str = "tenure-bench-polling";
