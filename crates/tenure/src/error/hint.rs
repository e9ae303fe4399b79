//! What to try when a server is in trouble.

use super::{NodeError, NodeErrorKind};

impl NodeError {
    /// What to try, for people; `None` if that depends on the server's reply.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        use NodeErrorKind as Kind;
        Some(match self.kind() {
            Kind::Unreachable if self.is_store() => {
                "is the path right? Its directory has to be there, and yours to write"
            }
            Kind::TimedOut if self.is_store() => "try again, or wait longer",
            Kind::Unreachable => "is it up, and is the address right?",
            Kind::NoResources => "raise the limits (ulimit -n, -u), or close what is not needed",
            Kind::TimedOut | Kind::Disconnected => {
                "try again, or look at the server's load and log"
            }
            Kind::TooFar => "give a longer TTL",
            Kind::TooManyClients => "raise its maxclients, or close connections that nobody uses",
            Kind::PasswordMissing => {
                "put it into the address (redis://user:password@host), or use ?password_file=/path"
            }
            Kind::Denied => "look at user and password in the address, or in ?password_file=/path",
            Kind::NoPermission => "docs/acl.md lists the permissions that a lock needs",
            Kind::ReadOnly => "name the primary instead",
            Kind::Loading | Kind::Busy | Kind::Down => "try again later, or wait longer",
            Kind::OutOfMemory => "raise its maxmemory, or delete keys that nobody uses",
            Kind::DiskFull => "make room on that disk, or name another file: file:///path",
            Kind::Restarted | Kind::ClockStepped => "it votes by itself later: wait longer",
            Kind::SameServer => "name each server once",
            Kind::CannotSave => "look at the server's disk and log",
            Kind::NoReplicas => "look at its replicas, and at min-replicas-to-write",
            Kind::WrongNode => "this version does not follow a cluster: name a single server",
            Kind::UnknownCommand | Kind::Protocol => "is it Redis 6 or later, or Valkey?",
            Kind::FenceUnusable | Kind::QueueUnusable | Kind::MarkerUnusable => {
                "look at that key, and delete it if it is nobody's"
            }
            Kind::NumberAhead => "look at the server's clock, and at the lock's fence key there",
            Kind::UnfitStore => "or name another file: file:///path",
            Kind::Refused => return None,
        })
    }
}
