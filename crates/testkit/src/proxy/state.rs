//! What a proxy knows: its connections, and what is on the way.

use std::collections::{BTreeMap, VecDeque};
use std::net;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use super::rules::{Chunk, Direction, Fate, Rules};
use crate::{ServerEndpoint, SocketStream};

/// Shared by the handle and all threads.
#[derive(Debug)]
pub(super) struct ProxyShared {
    pub(super) target: ServerEndpoint,
    pub(super) changed: Condvar,
    state: Mutex<ProxyState>,
}

#[derive(Debug, Default)]
pub(super) struct ProxyState {
    pub(super) rules: Rules,
    /// Live connections. A connection that is cut is one that is no longer here.
    pub(super) links: BTreeMap<u64, Link>,
    /// Server sides of half-open connections, and what was on its way there.
    pub(super) kept: Vec<(Arc<SocketStream>, Vec<u8>)>,
    pub(super) accepted: u64,
    pub(super) closed: bool,
}

/// A connection of a client and the one made for it to the server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: Arc<SocketStream>,
    /// None when it was accepted into a black hole.
    pub(super) server: Option<Arc<SocketStream>>,
    pub(super) requests: Lane,
    pub(super) replies: Lane,
}

/// What is on the way in one direction.
#[derive(Debug, Default)]
pub(super) struct Lane {
    chunks: VecDeque<(Instant, Chunk)>,
    /// The sender has closed; what is on the way still arrives.
    pub(super) ended: bool,
    /// The receiver knows it.
    told: bool,
}

impl ProxyShared {
    pub(super) fn new(target: ServerEndpoint) -> Self {
        Self { target, changed: Condvar::new(), state: Mutex::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a chunk on its way; it is lost when the connection was cut.
    pub(super) fn push(&self, id: u64, direction: Direction, chunk: Chunk) {
        let mut state = self.lock();
        let black_hole = state.rules.black_hole;
        let Some(link) = state.links.get_mut(&id) else { return };
        let lane = link.lane(direction);
        lane.ended |= matches!(chunk, Chunk::End);
        if !black_hole {
            lane.chunks.push_back((Instant::now(), chunk));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the next chunk to deliver, and whether to do so byte by byte. None when the
    /// connection is gone.
    pub(super) fn next(&self, id: u64, direction: Direction) -> Option<(Chunk, bool)> {
        let mut state = self.lock();
        loop {
            let ProxyState { rules, links, .. } = &mut *state;
            let lane = links.get_mut(&id)?.lane(direction);
            if rules.black_hole {
                lane.chunks.clear();
            }
            let delay = rules.delay(direction);
            let wait =
                lane.chunks.front().map(|(at, _)| (*at + delay).duration_since(Instant::now()));
            match wait {
                None => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                Some(wait) if !wait.is_zero() => {
                    let woken = self.changed.wait_timeout(state, wait);
                    state = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    let (at, chunk) = lane.chunks.pop_front()?;
                    match rules.fate(direction, &chunk) {
                        Fate::Forward => return Some((chunk, rules.split)),
                        Fate::Hold => {
                            lane.chunks.push_front((at, chunk));
                            let woken = self.changed.wait(state);
                            state = woken.unwrap_or_else(PoisonError::into_inner);
                        }
                        Fate::Swallow => {}
                        Fate::SwallowAndCut => {
                            drop(state);
                            self.sever(id);
                            return None;
                        }
                    }
                }
            }
        }
    }

    /// Notes that the receiver got the end; a connection ended both ways is forgotten.
    pub(super) fn told_end(&self, id: u64, direction: Direction) {
        let mut state = self.lock();
        if let Some(link) = state.links.get_mut(&id) {
            link.lane(direction).told = true;
            if link.requests.told && link.replies.told {
                state.links.remove(&id);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Cuts one connection, without waiting for its threads: one of them may be the caller.
    pub(super) fn sever(&self, id: u64) {
        let link = self.lock().links.remove(&id);
        if let Some(link) = link {
            reset(&link.client);
            if let Some(server) = &link.server {
                drop(server.shutdown(net::Shutdown::Both));
            }
        }
        self.changed.notify_all();
    }

    /// Closes the server sides of half-open connections.
    pub(super) fn forget_kept(&self) {
        let kept = std::mem::take(&mut self.lock().kept);
        for (server, _) in kept {
            // An error means that the server has closed it first.
            drop(server.shutdown(net::Shutdown::Both));
        }
    }

    /// Resets the client sides of connections no longer in the table, and waits until they are:
    /// the kernel sends the reset when the last thread lets go of the socket.
    pub(super) fn reset_clients(&self, clients: Vec<Arc<SocketStream>>) {
        let clients: Vec<Weak<SocketStream>> = clients
            .into_iter()
            .map(|client| {
                reset(&client);
                Arc::downgrade(&client)
            })
            .collect();
        self.changed.notify_all();
        let held = |_: &mut ProxyState| clients.iter().any(|client| client.strong_count() > 0);
        drop(self.changed.wait_while(self.lock(), held).unwrap_or_else(PoisonError::into_inner));
    }
}

impl ProxyState {
    pub(super) fn take_links(&mut self) -> Vec<Link> {
        std::mem::take(&mut self.links).into_values().collect()
    }
}

impl Link {
    pub(super) fn new(client: Arc<SocketStream>, server: Option<Arc<SocketStream>>) -> Self {
        Self { client, server, requests: Lane::default(), replies: Lane::default() }
    }

    pub(super) fn requests_on_the_way(&self) -> usize {
        self.requests.chunks.len()
    }

    /// The server's side, and the first that has not reached it.
    pub(super) fn into_server(mut self) -> Option<(Arc<SocketStream>, Vec<u8>)> {
        let late = match self.requests.chunks.pop_front() {
            Some((_, Chunk::Bytes(bytes))) => bytes,
            Some((_, Chunk::End)) | None => Vec::new(),
        };
        Some((self.server?, late))
    }

    fn lane(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::Request => &mut self.requests,
            Direction::Reply => &mut self.replies,
        }
    }
}

/// Makes the closing of a client's socket a reset, and wakes the thread that reads from it. To
/// shut only the reading side sends nothing by itself.
pub(super) fn reset(client: &SocketStream) {
    // Errors mean that the client has closed it first.
    set_socket_linger(client, Some(Duration::ZERO)).ok();
    drop(client.shutdown(net::Shutdown::Read));
}
