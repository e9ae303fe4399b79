//! A server that says exactly what the test wants said.

mod hostile;

pub use hostile::Trick;

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::{ServerEndpoint, SocketStream, TempDir, resp};

/// What a [`FakeServer`] does on a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FakeAnswer {
    /// Sends these bytes, as they are; none at all when empty.
    Send(Vec<u8>),
    /// Sends these bytes and closes the connection.
    SendAndClose(Vec<u8>),
    /// Closes the connection.
    Close,
    /// Sends the first bytes once, and the others again and again until the client is gone.
    Endless(Vec<u8>, Vec<u8>),
    /// Sends these bytes one by one, with this pause before each.
    Slowly(Vec<u8>, Duration),
}

impl FakeAnswer {
    /// Answers to what clients say to introduce themselves: HELLO, AUTH, CLIENT, SELECT, PING, and
    /// SUBSCRIBE to one channel.
    /// None for every other command.
    #[must_use]
    pub fn to_handshake(command: &[Vec<u8>]) -> Option<Self> {
        let name = command.first()?.to_ascii_uppercase();
        let resp3 = command.get(1).is_some_and(|version| version == b"3");
        let second = command.get(1).map(|word| word.to_ascii_uppercase());
        if name == b"SUBSCRIBE" {
            let channel = command.get(1)?;
            let mut push = format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n", channel.len()).into_bytes();
            push.extend_from_slice(channel);
            push.extend_from_slice(b"\r\n:1\r\n");
            return Some(push.into());
        }
        Some(Self::from(match name.as_slice() {
            b"HELLO" if resp3 => HELLO_3,
            b"HELLO" => HELLO_2,
            b"CLIENT" if second.as_deref() == Some(b"ID") => ":1\r\n",
            b"PING" => "+PONG\r\n",
            b"AUTH" | b"CLIENT" | b"SELECT" => "+OK\r\n",
            _ => return None,
        }))
    }
}

impl From<&str> for FakeAnswer {
    fn from(bytes: &str) -> Self {
        Self::Send(bytes.as_bytes().to_vec())
    }
}

impl From<Vec<u8>> for FakeAnswer {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Send(bytes)
    }
}

/// A server without a store: a script per connection answers each command by raw bytes.
#[derive(Debug)]
pub struct FakeServer {
    address: ServerEndpoint,
    shared: Arc<FakeShared>,
    _dir: Option<TempDir>,
}

impl FakeServer {
    /// Listens on a Unix socket. `connect` is called with 0, 1, 2, … for each connection, and
    /// makes the script for it, which is called with each command.
    #[must_use]
    pub fn unix<F, S>(connect: F) -> Self
    where
        F: FnMut(usize) -> S + Send + 'static,
        S: FnMut(Vec<Vec<u8>>) -> FakeAnswer + Send + 'static,
    {
        let dir = TempDir::new();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).expect("listen on a Unix socket");
        let accept = move || listener.accept().map(|(stream, _)| stream.into());
        Self::new(ServerEndpoint::Unix(path), Some(dir), accept, connect)
    }

    /// Listens on a free port of 127.0.0.1; otherwise as [`FakeServer::unix`].
    #[must_use]
    pub fn tcp<F, S>(connect: F) -> Self
    where
        F: FnMut(usize) -> S + Send + 'static,
        S: FnMut(Vec<Vec<u8>>) -> FakeAnswer + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen on a port");
        let port = listener.local_addr().expect("the address of a listener").port();
        let accept = move || {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            Ok(stream.into())
        };
        Self::new(ServerEndpoint::Tcp(port), None, accept, connect)
    }

    /// Sends bytes nobody asked for on every open connection.
    pub fn push(&self, bytes: &[u8]) {
        for stream in &self.shared.lock().open {
            // A client that is gone receives nothing.
            drop((&mut &**stream).write_all(bytes));
        }
    }

    /// Closes every open connection.
    pub fn cut(&self) {
        for stream in self.shared.lock().open.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &ServerEndpoint {
        &self.address
    }

    /// URL by which a client reaches it.
    #[must_use]
    pub fn url(&self) -> String {
        self.address.url()
    }

    /// Every command so far, over all connections, in the order of arrival.
    #[must_use]
    pub fn commands(&self) -> Vec<Vec<Vec<u8>>> {
        self.shared.lock().commands.clone()
    }

    /// How many connections were ever accepted.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.lock().accepted
    }

    fn new<F, S>(
        address: ServerEndpoint,
        dir: Option<TempDir>,
        accept: impl Fn() -> std::io::Result<SocketStream> + Send + 'static,
        mut connect: F,
    ) -> Self
    where
        F: FnMut(usize) -> S + Send + 'static,
        S: FnMut(Vec<Vec<u8>>) -> FakeAnswer + Send + 'static,
    {
        let shared = Arc::new(FakeShared::default());
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            while let Ok(stream) = accept() {
                let stream = Arc::new(stream);
                let number = {
                    let mut state = for_thread.lock();
                    if state.closed {
                        return;
                    }
                    state.open.push(Arc::clone(&stream));
                    state.accepted += 1;
                    state.accepted - 1
                };
                let (script, shared) = (connect(number), Arc::clone(&for_thread));
                thread::spawn(move || serve(&stream, &shared, script));
            }
        });
        Self { address, shared, _dir: dir }
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.cut();
        // Wakes the thread that accepts, which then sees that all is over.
        drop(self.address.connect());
    }
}

#[derive(Debug, Default)]
struct FakeShared(Mutex<FakeState>);

#[derive(Debug, Default)]
struct FakeState {
    open: Vec<Arc<SocketStream>>,
    commands: Vec<Vec<Vec<u8>>>,
    accepted: usize,
    closed: bool,
}

impl FakeShared {
    fn lock(&self) -> MutexGuard<'_, FakeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked<T>(&self, work: impl FnOnce() -> T) -> T {
        let _state = self.lock();
        work()
    }
}

fn serve(
    stream: &Arc<SocketStream>,
    shared: &FakeShared,
    mut script: impl FnMut(Vec<Vec<u8>>) -> FakeAnswer,
) {
    let mut reader = BufReader::new(&**stream);
    while let Ok(Some(command)) = resp::read_command(&mut reader) {
        shared.lock().commands.push(command.clone());
        let written = match script(command) {
            // Under the lock, so that a push does not land within an answer.
            FakeAnswer::Send(bytes) => shared.locked(|| (&mut &**stream).write_all(&bytes)),
            FakeAnswer::SendAndClose(bytes) => {
                // A client that is gone receives nothing.
                drop(shared.locked(|| (&mut &**stream).write_all(&bytes)));
                break;
            }
            FakeAnswer::Close => break,
            FakeAnswer::Endless(first, again) => send_without_end(stream, &first, &again),
            FakeAnswer::Slowly(bytes, pause) => send_slowly(stream, &bytes, pause),
        };
        if written.is_err() {
            break;
        }
    }
    shared.lock().open.retain(|open| !Arc::ptr_eq(open, stream));
    // An error means that the client has closed it first.
    drop(stream.shutdown(Shutdown::Both));
}

/// Ends when the client has closed the connection.
fn send_without_end(mut stream: &SocketStream, first: &[u8], again: &[u8]) -> std::io::Result<()> {
    stream.write_all(first)?;
    loop {
        stream.write_all(again)?;
    }
}

fn send_slowly(mut stream: &SocketStream, bytes: &[u8], pause: Duration) -> std::io::Result<()> {
    for byte in bytes {
        thread::sleep(pause);
        stream.write_all(&[*byte])?;
    }
    Ok(())
}

const HELLO_3: &str = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n\
    $5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
    $4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
const HELLO_2: &str = "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n\
    $5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
    $4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
