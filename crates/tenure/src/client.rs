//! A client: one engine, and the locks that go through it.

use std::{sync::Arc, time::Duration};

use tenure_core::{HolderLabel, MarkerMode, Ttl};

use crate::{
    address::{self, Address},
    engine::{Command, Engine},
    error::{CloseError, ConfigError, InspectError},
    event,
    lock::Lock,
    report::NodeReport,
};

/// The way to the servers. Cheap to clone; one per process is enough for any number of locks.
///
/// It owns a thread with the connections, the renewals and the releases, so callers may be async on
/// any executor, or blocking. Dropping the last handle (client, lock or guard) waits up to 250 ms
/// until queued releases are written; [`Client::close`] waits for their answers. A client in a
/// `static` is never dropped; for it, an exit handler waits as long on the way out of `main` and of
/// [`std::process::exit`]. After a signal or `abort`, nothing waits.
///
/// Leases run on a real clock, whatever a runtime's clock does. Under `tokio::time::pause`, a
/// timeout around a call to a server fires at once, because the paused clock advances while the
/// caller waits for the network. Call [`blocking`](crate::blocking) in `spawn_blocking` there,
/// which holds the clock, or use `memory://`, whose calls return before the clock can move.
///
/// A client does not survive `fork`: in the child, every call returns `EngineStopped`, and dropping
/// a guard releases nothing.
#[derive(Clone, Debug)]
pub struct Client {
    engine: Engine,
    label: HolderLabel,
    warnings: Arc<[String]>,
}

impl Client {
    /// Makes a client for a server, or for several that vote.
    ///
    /// Nothing is sent before the first operation, so an unreachable server fails that operation,
    /// not this call. Addresses:
    ///
    /// * `redis://[user:password@]host[:port][/database]`, or `valkey://…`
    /// * `redis+unix://[user:password@]/path/to/socket[?db=database]`, or `valkey+unix://…`
    /// * with the feature `sqlite`: `local:`, this user's own store on this host, or `file:///path`
    /// * `memory://`, a private table in this process, or `memory://NAME`, shared in this process
    ///
    /// With `?password_file=/path` the password is the first line of a regular file of at most
    /// 64 KiB, which is read once, here. `?durable=yes` says that the server keeps its keys over a
    /// restart, which matters only among several. Parts may be percent-encoded, and `? # / @ : %`
    /// in a user name or password should be: errors repeat no part of an address that may be one.
    ///
    /// Several addresses, separated by commas or white space, make a quorum: a client holds a lock
    /// once a majority of them has granted it, so the lock survives the loss of the others. Use
    /// independent servers; a replica or a second address of one of them does not count. Waiters do
    /// not queue at several servers: a release notifies all of them, each tries again after a short
    /// random delay, and polls now and then in case a message is lost. A server that is new or
    /// restarted does not vote at first, since it may have forgotten locks, unless it was opened by
    /// hand ([`Client::open_new`]) or is declared durable: see [`Lock::max_ttl`], and
    /// [`Lock::nodes`] for which of them vote now.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Address`] for a bad address, or one that is named twice;
    /// [`ConfigError::Engine`] when the engine's thread cannot be started.
    pub fn connect(address: &str) -> Result<Self, ConfigError> {
        let addresses = address::list(address)?;
        let warnings: Arc<[String]> =
            addresses.iter().filter_map(Address::warning).map(ToOwned::to_owned).collect();
        warnings.iter().for_each(|warning| event::unwise_address(warning));
        Ok(Self { engine: Engine::start(addresses)?, label: default_label(), warnings })
    }

    /// Warnings about the addresses, for people: a password file that every user of the host can
    /// read. They are logged too. Sends nothing.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A handle on the lock at this key, which is used exactly as given.
    ///
    /// A key has 1 to 65 536 bytes, whatever they are, but must not end with a suffix that tenure
    /// reserves (`:tenure:fence` and the like); a bad key is refused by the lock's first call.
    #[must_use]
    pub fn lock(&self, key: impl AsRef<[u8]>) -> Lock {
        Lock::new(self.engine.clone(), self.label.clone(), key.as_ref())
    }

    /// Declares, once and by hand, that servers without a marker have lost no lock, so that they
    /// vote at once, for locks of every TTL. Otherwise a new server votes only after the longest
    /// TTL.
    ///
    /// This is right for a server that was never used for locks, or was out of use for longer than
    /// any lock is held. It is wrong for a server that came back empty: others may hold locks that
    /// it forgot. So never call it from a script that starts servers. A server with a marker is
    /// left as it is; if it restarted, or was a replica, it votes by itself later.
    ///
    /// `longest` is the longest TTL that any client uses on these servers.
    ///
    /// # Errors
    ///
    /// [`InspectError`] for a bad TTL, or if the engine has stopped. A server's failure is in its
    /// report.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo the request: servers may still be opened.
    pub async fn open_new(&self, longest: Duration) -> Result<Vec<NodeReport>, InspectError> {
        let bad = |error| InspectError::Config { key: None, error: ConfigError::Ttl(error) };
        let longest = Ttl::new(longest).map_err(bad)?;
        let mode = MarkerMode::Open;
        let nodes = |reply| Command::Nodes { key: None, max_ttl: longest, mode, reply };
        self.engine.ask(nodes).await.ok_or(InspectError::EngineStopped { key: None })
    }

    /// Waits for the answers to all releases, at most 2 s, and stops the engine.
    ///
    /// Afterwards, all handles on this client return `EngineStopped`. Leases that are still held
    /// are lost: their `lost()` resolves, and their keys end with their TTL.
    ///
    /// # Errors
    ///
    /// [`CloseError`] if releases stay unanswered; their keys end with their TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo the request: the engine still stops.
    pub async fn close(self) -> Result<(), CloseError> {
        match self.engine.ask(|reply| Command::Close { reply }).await {
            Some(0) | None => Ok(()),
            Some(unanswered) => Err(CloseError { unanswered }),
        }
    }
}

/// `host/pid`. A host name that is too long is cut: the process number tells holders apart.
fn default_label() -> HolderLabel {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy(); // tidy: allow
    let host: String = host.chars().filter(char::is_ascii).take(MAX_HOST).collect();
    let label = HolderLabel::new(&format!("{host}/{}", std::process::id()));
    label.unwrap_or_default()
}

/// Leaves room for a slash and the largest process number, 2^32.
const MAX_HOST: usize = HolderLabel::MAX_BYTES - 11;
