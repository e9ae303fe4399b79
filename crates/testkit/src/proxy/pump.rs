//! The threads of a proxy: one accepts, and each connection has two that read and two that write.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::rules::{Chunk, Direction};
use super::state::{Link, ProxyShared, ProxyState, reset};
use crate::{SocketStream, resp};

/// Accepts until the proxy is closed.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<ProxyShared>) {
    loop {
        let refusing = |state: &mut ProxyState| state.rules.refuse && !state.closed;
        let waited = shared.changed.wait_while(shared.lock(), refusing);
        if waited.unwrap_or_else(PoisonError::into_inner).closed {
            return;
        }
        // An error means that listening was stopped: the state says for how long.
        if let Ok((client, _)) = listener.accept() {
            // Without it the kernel holds small replies back, which no test asked for.
            drop(client.set_nodelay(true));
            open(SocketStream::from(client), shared);
        }
    }
}

fn open(client: SocketStream, shared: &Arc<ProxyShared>) {
    let (id, black_hole) = {
        let mut state = shared.lock();
        state.accepted += 1;
        (state.accepted, state.rules.black_hole)
    };
    let server = if black_hole { None } else { shared.target.connect().ok() };
    // A client that does not read must not keep a thread from noticing that it was cut.
    drop(client.set_write_timeout(Some(LOOK_UP)));
    if server.is_none() && !black_hole {
        reset(&client);
        return;
    }

    let (client, server) = (Arc::new(client), server.map(Arc::new));
    {
        let mut state = shared.lock();
        if black_hole && !state.rules.black_hole {
            // Healed meanwhile: like all that was swallowed, this connection is cut.
            reset(&client);
            return;
        }
        state.links.insert(id, Link::new(Arc::clone(&client), server.clone()));
    }
    if let Some(server) = server {
        spawn(shared, id, Direction::Reply, Arc::clone(&server), read);
        spawn(shared, id, Direction::Request, server, write);
        spawn(shared, id, Direction::Reply, Arc::clone(&client), write);
    }
    spawn(shared, id, Direction::Request, client, read);
}

type PumpWork = fn(&ProxyShared, u64, Direction, &SocketStream);

fn spawn(
    shared: &Arc<ProxyShared>,
    id: u64,
    direction: Direction,
    stream: Arc<SocketStream>,
    work: PumpWork,
) {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        work(&shared, id, direction, &stream);
        drop(stream);
        // Under the lock, so that who counts the holders of the stream does not miss the news.
        let state = shared.lock();
        shared.changed.notify_all();
        drop(state);
    });
}

/// Reads until the stream ends, also when the connection was cut meanwhile: the server's side of
/// a half-open one goes on talking.
fn read(shared: &ProxyShared, id: u64, direction: Direction, mut stream: &SocketStream) {
    let mut buffer = vec![0; LARGEST_WRITE];
    let mut rest = Vec::new();
    loop {
        let len = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        rest.extend_from_slice(buffer.get(..len).unwrap_or_default());
        match direction {
            Direction::Request => {
                shared.push(id, direction, Chunk::Bytes(std::mem::take(&mut rest)));
            }
            Direction::Reply => {
                while let Some(frame) = resp::frame_len(&rest) {
                    let tail = rest.split_off(frame);
                    shared.push(id, direction, Chunk::Bytes(std::mem::replace(&mut rest, tail)));
                }
            }
        }
    }
    if !rest.is_empty() {
        shared.push(id, direction, Chunk::Bytes(rest));
    }
    shared.push(id, direction, Chunk::End);
}

fn write(shared: &ProxyShared, id: u64, direction: Direction, stream: &SocketStream) {
    while let Some((chunk, split)) = shared.next(id, direction) {
        match chunk {
            Chunk::Bytes(bytes) => {
                let piece = if split { 1 } else { bytes.len().max(1) };
                let alive = || shared.lock().links.contains_key(&id);
                if bytes.chunks(piece).any(|piece| write_all(stream, piece, alive).is_err()) {
                    shared.sever(id);
                    return;
                }
            }
            Chunk::End => {
                drop(stream.shutdown(std::net::Shutdown::Write));
                shared.told_end(id, direction);
                return;
            }
        }
    }
}

fn write_all(
    mut stream: &SocketStream,
    mut bytes: &[u8],
    alive: impl Fn() -> bool,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => bytes = bytes.get(len..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && alive() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// One write of a client stays one chunk: scripts in full are the largest, and those for several
/// servers the longest of them.
const LARGEST_WRITE: usize = 64 * 1024;

/// How long a cut waits at most for a thread that writes to a client which does not read.
const LOOK_UP: Duration = Duration::from_millis(50);
