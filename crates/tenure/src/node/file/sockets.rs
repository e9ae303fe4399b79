//! Sockets beside the store: where clients receive the message that it is their waiters' turn.
//!
//! A client that waits binds a socket in the store's directory. The kernel closes it when the
//! process ends, however it ends, and keeps it while the process is only stopped. So a connection
//! to it tests for the presence of the client, also in another container that mounts the directory.

use std::{
    cell::OnceCell,
    fs, io,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    time::Duration,
};

use tenure_core::{Channel, Notification};

use super::place;

/// The sockets of all clients that wait.
#[derive(Debug)]
pub(super) struct Sockets {
    directory: PathBuf,
}

/// The path of this client's socket, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct OwnSocket(PathBuf);

impl OwnSocket {
    /// Whether others can find it. Somebody may have cleaned up the directory.
    pub(super) fn is_in_place(&self) -> bool {
        self.0.exists()
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // Other clients remove a socket that is left behind.
        _ = fs::remove_file(&self.0);
    }
}

impl Sockets {
    /// Those of the store in this file.
    pub(super) fn beside(file: &Path) -> Self {
        Self { directory: place::beside(file, "-waiters") }
    }

    /// The directory that they are in.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Binds a socket for the channel.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made or is not this user's alone, and when there is no room for
    /// a socket. Then waiters have to poll.
    pub(super) fn bind(&self, channel: &Channel) -> io::Result<(OwnSocket, UnixDatagram)> {
        let name = name_of(channel).ok_or(io::ErrorKind::InvalidInput)?;
        place::make_private(&self.directory).map_err(io::Error::other)?;
        let open = Bound::new(&self.directory)?;
        self.sweep(&open);
        // It gets its name once it can be connected to: before, another client would remove it.
        let draft = format!("{DRAFT}{name}");
        let socket = UnixDatagram::bind(open.path(&draft))?;
        socket.set_nonblocking(true)?;
        let (draft, path) = (self.directory.join(draft), self.directory.join(name));
        place::give_owner(&draft, 0o600).map_err(io::Error::other)?;
        fs::rename(draft, &path)?;
        Ok((OwnSocket(path), socket))
    }

    /// What one transaction needs to test for clients and to send messages.
    pub(super) fn probe(&self) -> Probe<'_> {
        Probe { sockets: self, open: OnceCell::new() }
    }

    /// Removes some sockets whose clients have ended.
    fn sweep(&self, open: &Bound) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        for entry in entries.take(MAX_SWEPT) {
            let name = entry.file_name();
            let is_draft = name.as_encoded_bytes().starts_with(DRAFT.as_bytes());
            let is_recent = || {
                let made = entry.metadata().and_then(|metadata| metadata.modified());
                made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < MAX_DRAFT))
            };
            if !(is_draft && is_recent()) && open.is_dead(&name) {
                _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Tests for clients during a transaction, and sends messages after it.
#[derive(Debug)]
pub(super) struct Probe<'a> {
    sockets: &'a Sockets,
    /// Made at the first test: most transactions make none.
    open: OnceCell<Option<Bound>>,
}

impl Probe<'_> {
    /// Whether the client with this channel lives. A stopped one does: it costs one provisional
    /// grant.
    pub(super) fn is_there(&self, channel: &Channel) -> bool {
        let (Some(name), Some(open)) = (name_of(channel), self.open()) else { return false };
        if open.is_dead(name) {
            _ = fs::remove_file(self.sockets.directory.join(name));
            return false;
        }
        true
    }

    /// Sends a message. One that finds no room is lost. Its receiver then has so many others to
    /// read that it wakes all of its waiters.
    pub(super) fn send(&self, notification: &Notification) {
        if let (Some(name), Some(open)) = (name_of(notification.to()), self.open()) {
            _ = open.socket.send_to(notification.text().as_bytes(), open.path(name));
        }
    }

    fn open(&self) -> Option<&Bound> {
        let open = || {
            place::check_private(&self.sockets.directory).ok()?;
            Bound::new(&self.sockets.directory).ok()
        };
        self.open.get_or_init(open).as_ref()
    }
}

/// The directory, and a socket to connect and send from.
#[derive(Debug)]
struct Bound {
    directory: place::Directory,
    socket: UnixDatagram,
}

impl Bound {
    fn new(directory: &Path) -> io::Result<Self> {
        let directory = place::Directory::open(directory)?;
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { directory, socket })
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.short_path(name.as_ref())
    }

    fn is_dead(&self, name: impl AsRef<Path>) -> bool {
        use io::ErrorKind as Kind;
        // Any other error is this process's own, such as too few descriptors.
        let connected = self.socket.connect(self.path(name)).map_err(|error| error.kind());
        matches!(connected, Err(Kind::ConnectionRefused | Kind::NotFound))
    }
}

/// The name of a client's socket: the random part of its channel.
fn name_of(channel: &Channel) -> Option<&str> {
    let name = std::str::from_utf8(channel.as_bytes()).ok()?.strip_prefix("tenure:")?;
    let is_random = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_random.then_some(name)
}

/// What the name of a socket begins with until it can be connected to.
const DRAFT: &str = ".";

/// Between the bind and the rename are three system calls.
const MAX_DRAFT: Duration = Duration::from_secs(60);

/// Each costs some microseconds. The next client that waits removes the others.
const MAX_SWEPT: usize = 64;

#[cfg(test)]
mod tests {
    use tenure_testkit::TempDir;

    use super::*;

    fn channel(number: u64) -> Channel {
        Channel::new(number)
    }

    #[test]
    fn a_client_is_present_while_its_socket_is_and_receives_messages() {
        let directory = TempDir::new();
        let directory = directory.path();
        let sockets = Sockets::beside(&directory.join("locks.db"));
        assert!(!sockets.probe().is_there(&channel(7)), "there is no directory yet");
        let (own, socket) = sockets.bind(&channel(7)).unwrap();
        let probe = sockets.probe();
        assert!(probe.is_there(&channel(7)) && !probe.is_there(&channel(8)));
        assert!(!probe.is_there(&Channel::named("tenure:../../passwd")));
        let notification = Notification::Grant { to: channel(7), token: "ab@h".into() };
        probe.send(&notification);
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], notification.text().as_bytes());
        assert!(own.is_in_place());
        drop(socket);
        assert!(!sockets.probe().is_there(&channel(7)), "it is closed");
        assert!(!own.is_in_place(), "its file is removed");
    }

    #[test]
    fn a_client_that_binds_a_socket_removes_those_of_ended_clients() {
        let directory = TempDir::new();
        let directory = directory.path();
        let sockets = Sockets::beside(&directory.join("locks.db"));
        let (alive, _socket) = sockets.bind(&channel(1)).unwrap();
        let (dead, socket) = sockets.bind(&channel(2)).unwrap();
        let dead = std::mem::ManuallyDrop::new(dead);
        drop(socket);
        let _third = sockets.bind(&channel(3)).unwrap();
        assert!(alive.is_in_place() && !dead.is_in_place());
    }
}
