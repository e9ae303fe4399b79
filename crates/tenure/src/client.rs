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

/// The way to the servers. Cheap to clone; one per process is enough, whatever the number of locks.
///
/// It owns a thread with the connections, the renewals and the releases, so callers may be async
/// on any executor, or blocking. Dropping the last handle (client, lock or guard) waits up to
/// 250 ms until queued releases are written; [`Client::close`] waits for their answers. A client
/// in a `static` is never dropped: there an exit handler waits as long on the way out of `main`
/// and of [`std::process::exit`], and nothing does after a signal or `abort`.
///
/// Leases run on a real clock, whatever a runtime's clock does. Under `tokio::time::pause` a
/// time-out around a call to a server fires at once, since that clock moves while the caller waits
/// for the network; it does not around [`blocking`](crate::blocking) in `spawn_blocking`, which
/// holds that clock. Calls at `memory://` are answered before it can move.
///
/// A client does not survive `fork`: in the child every call answers `EngineStopped`, and dropping
/// a guard there releases nothing.
#[derive(Clone, Debug)]
pub struct Client {
    engine: Engine,
    label: HolderLabel,
    warnings: Arc<[String]>,
}

impl Client {
    /// Makes a client for a server, or for several that vote.
    ///
    /// Nothing is sent before the first operation, so a server that is down fails that and not
    /// this. Addresses:
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
    /// Several addresses, with commas or white space between them, make a quorum: a lock is held
    /// by a client that has it on a majority of them, so it outlasts the loss of the others. The
    /// servers must be independent: a replica of one of them is no further one, nor is a second
    /// address. Waiters do not queue at several: a release notifies all of them, each tries again
    /// after a short random delay, and polls now and then in case a message is lost. A server
    /// that is new or restarted does not vote at first, since it may have forgotten locks, unless
    /// it was opened by hand ([`Client::open_new`]) or is declared durable: see
    /// [`Lock::max_ttl`], and [`Lock::nodes`] for which of them vote now.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Address`] for what is no address, or is named twice;
    /// [`ConfigError::Engine`] when the engine's thread cannot be started.
    pub fn connect(address: &str) -> Result<Self, ConfigError> {
        let addresses = address::list(address)?;
        let warnings: Arc<[String]> =
            addresses.iter().filter_map(Address::warning).map(ToOwned::to_owned).collect();
        warnings.iter().for_each(|warning| event::unwise_address(warning));
        Ok(Self { engine: Engine::start(addresses)?, label: default_label(), warnings })
    }

    /// What is unwise about the addresses, for people: that a password file can be read by every
    /// user of the host. The same is logged as a warning. Asks nobody.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A handle on the lock at this key, which is used exactly as given.
    ///
    /// Any bytes from 1 to 65 536 will do, except an ending that tenure keeps for itself
    /// (`:tenure:fence` and the like); a bad key is refused by the lock's first call.
    #[must_use]
    pub fn lock(&self, key: impl AsRef<[u8]>) -> Lock {
        Lock::new(self.engine.clone(), self.label.clone(), key.as_ref())
    }

    /// Declares, by hand and once, that servers without a marker have forgotten no lock: each may
    /// vote at once, for locks of every TTL. A new server would do so after the longest TTL only.
    ///
    /// Right where a server was never used for locks, or has been out of use for longer than any
    /// lock is held; wrong where it came back empty, since others may hold what it forgot. So it
    /// must not be part of a script that starts servers. A server that has a marker is left as it
    /// is: one that restarted, or was a replica, votes by itself later.
    ///
    /// `longest` is the longest TTL that anybody takes a lock with on these servers.
    ///
    /// # Errors
    ///
    /// [`InspectError`] for a TTL that is none, or an engine that has stopped. What is wrong with a
    /// server is in its report.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take it back: servers may still be opened.
    pub async fn open_new(&self, longest: Duration) -> Result<Vec<NodeReport>, InspectError> {
        let bad = |error| InspectError::Config { key: None, error: ConfigError::Ttl(error) };
        let longest = Ttl::new(longest).map_err(bad)?;
        let mode = MarkerMode::Open;
        let nodes = |reply| Command::Nodes { key: None, max_ttl: longest, mode, reply };
        self.engine.ask(nodes).await.ok_or(InspectError::EngineStopped { key: None })
    }

    /// Waits for the answers to all releases, at most 2 s, and stops the engine.
    ///
    /// All handles on this client answer `EngineStopped` afterwards. What is still held is lost:
    /// its `lost()` resolves, and its key ends with its TTL.
    ///
    /// # Errors
    ///
    /// [`CloseError`] when releases stay unanswered; their keys end with their TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take it back: the engine still stops.
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
