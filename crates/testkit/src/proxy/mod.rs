//! A network between client and server, in the hands of the test.

mod pump;
mod rules;
mod state;

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::{Shutdown, listen, shutdown};

pub use self::rules::Gated;
use self::rules::{Dropping, Gate, Rules};
use self::state::{Link, ProxyShared};
use crate::{Raw, Server, ServerEndpoint};

/// A TCP proxy on 127.0.0.1 before one server.
///
/// Starts as a good network. Each trouble holds from the call that makes it until [`heal`], for
/// connections that exist and for new ones. Replies are forwarded one whole reply at a time.
///
/// [`heal`]: Self::heal
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    listener: Arc<TcpListener>,
    shared: Arc<ProxyShared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy before a server.
    #[must_use]
    pub fn to(server: &Server) -> Self {
        Self::to_address(server.address())
    }

    /// A proxy before whatever listens there.
    #[must_use]
    pub fn to_address(target: &ServerEndpoint) -> Self {
        let (port, listener) = bind();
        let listener = Arc::new(listener);
        let shared = Arc::new(ProxyShared::new(target.clone()));
        let acceptor = {
            let (listener, shared) = (Arc::clone(&listener), Arc::clone(&shared));
            thread::spawn(move || pump::accept(&listener, &shared))
        };
        Self { port, listener, shared, acceptor: Some(acceptor) }
    }

    /// Makes requests and replies arrive later, each by this much and in order.
    pub fn delay(&self, by: Duration) {
        self.change(|rules| (rules.request_delay, rules.reply_delay) = (by, by));
    }

    /// Makes requests arrive later, in order.
    pub fn delay_requests(&self, by: Duration) {
        self.change(|rules| rules.request_delay = by);
    }

    /// Makes replies arrive later, in order.
    pub fn delay_replies(&self, by: Duration) {
        self.change(|rules| rules.reply_delay = by);
    }

    /// Accepts and reads and forwards nothing, not even the end of a connection.
    pub fn black_hole(&self) {
        self.change(|rules| rules.black_hole = true);
    }

    /// Refuses new connections; existing ones live on. The port stays ours.
    pub fn refuse(&self) {
        self.change(|rules| rules.refuse = true);
        // A socket that stops listening stays bound.
        shutdown(&*self.listener, Shutdown::Read).expect("stop listening");
    }

    /// Forwards one byte at a time.
    pub fn split_bytes(&self) {
        self.change(|rules| rules.split = true);
    }

    /// Lets requests through and swallows every reply.
    pub fn drop_replies(&self) {
        self.change(|rules| rules.dropping = Dropping::All);
    }

    /// Lets requests through and swallows the next `n` replies, over all connections. Push
    /// messages of RESP3 pass and do not count.
    pub fn drop_next_replies(&self, n: usize) {
        self.change(|rules| rules.dropping = Dropping::Next { left: n, cut: false });
    }

    /// As [`Proxy::drop_next_replies`], and resets the connection whose reply was the last.
    pub fn drop_next_replies_then_cut(&self, n: usize) {
        self.change(|rules| rules.dropping = Dropping::Next { left: n, cut: true });
    }

    /// Swallows messages to channels, and lets everything else through.
    pub fn drop_messages(&self) {
        self.change(|rules| rules.no_messages = true);
    }

    /// Resets all existing connections; both sides get the reset. New ones are accepted.
    pub fn cut(&self) {
        let links = self.shared.lock().take_links();
        for server in links.iter().filter_map(|link| link.server.as_ref()) {
            // An error means that it is closed already.
            drop(server.shutdown(std::net::Shutdown::Both));
        }
        self.shared.reset_clients(links.into_iter().map(|link| link.client).collect());
    }

    /// Resets the client's side of all existing connections; the server's side stays open, and
    /// the server does not notice before [`heal`](Self::heal).
    pub fn half_open(&self) {
        let clients = {
            let mut state = self.shared.lock();
            let links = state.take_links();
            let clients = links.iter().map(|link| Arc::clone(&link.client)).collect();
            state.kept.extend(links.into_iter().filter_map(Link::into_server));
            clients
        };
        self.shared.reset_clients(clients);
    }

    /// Delivers the first that was on its way in each connection that is half open now: the
    /// network has kept it until after the client has gone on without it, and lost the rest.
    pub fn deliver_late(&self) {
        for (server, late) in &mut self.shared.lock().kept {
            // An error means that the server has closed it meanwhile.
            drop((&mut &**server).write_all(&std::mem::take(late)));
        }
    }

    /// Lets the next `pass` replies through, pushes included, and does this with the one behind.
    pub fn gate_replies(&self, pass: usize, fate: Gated) {
        self.change(|rules| rules.gate = Some(Gate { pass, fate, met: false }));
    }

    /// Whether a reply has come to the gate.
    #[must_use]
    pub fn gate_was_met(&self) -> bool {
        self.shared.lock().rules.gate.as_ref().is_some_and(|gate| gate.met)
    }

    /// Ends all trouble. What was delayed is delivered at once. Connections that lived through a
    /// black hole, or a gate that swallows, are cut, as bytes of theirs are missing.
    pub fn heal(&self) {
        let before = std::mem::take(&mut self.shared.lock().rules);
        self.shared.forget_kept();
        let swallowed = before.gate.is_some_and(|gate| gate.met && gate.fate == Gated::Swallowed);
        if before.black_hole || swallowed {
            self.cut();
        }
        if before.refuse {
            listen(&*self.listener, BACKLOG).expect("listen again at a port that is ours");
        }
        self.shared.changed.notify_all();
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> ServerEndpoint {
        ServerEndpoint::Tcp(self.port)
    }

    /// URL by which a client reaches the server through it, without password.
    #[must_use]
    pub fn url(&self) -> String {
        self.address().url()
    }

    /// A new connection through it; no password is given.
    #[must_use]
    pub fn raw(&self) -> Raw {
        Raw::connect(&self.address())
    }

    /// How many connections clients have open through it now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().links.values().filter(|link| !link.requests.ended).count()
    }

    /// How many writes of clients are on their way to the server.
    #[must_use]
    pub fn requests_on_the_way(&self) -> usize {
        self.shared.lock().links.values().map(Link::requests_on_the_way).sum()
    }

    /// How many connections were ever accepted, with those that found no server.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.lock().accepted
    }

    fn change(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.shared.lock().rules);
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        // Wakes the acceptor; an error means that it refuses connections, and waits elsewhere.
        shutdown(&*self.listener, Shutdown::Read).ok();
        self.shared.changed.notify_all();
        if let Some(acceptor) = self.acceptor.take() {
            // It cannot panic but by a bug here, which the test sees as refused connections.
            drop(acceptor.join());
        }
        self.cut();
        self.shared.forget_kept();
    }
}

/// Binds a port by its number: only then does the kernel keep it bound when we stop listening.
/// A bound port is not given to a process that asks for any free one.
fn bind() -> (u16, TcpListener) {
    for _ in 0..PORTS_TO_TRY {
        let any = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("find a free port");
        let port = any.local_addr().expect("the address of a listener").port();
        drop(any);
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return (port, listener),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
            Err(e) => panic!("cannot listen at port {port}: {e}"),
        }
    }
    panic!("{PORTS_TO_TRY} free ports in a row were taken at once");
}

/// A port is lost to another process about once in a thousand; never five times.
const PORTS_TO_TRY: usize = 5;
/// That of the standard library's own listeners.
const BACKLOG: i32 = 128;
