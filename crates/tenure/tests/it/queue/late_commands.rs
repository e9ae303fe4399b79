//! Late commands: a command of a waiter that sits in an old connection, and arrives after the
//! waiter has given up over the new one. It must make neither a holder nor a waiter.

use std::{cell::RefCell, thread, time::Duration};

use smol::{block_on, future::poll_once};
use tenure::{Client, blocking};
use tenure_core::script;
use tenure_testkit::{Monitor, Proxy, Server, ServerKind, eventually};

use super::line::{Acquiring, channels, nothing_is_left, queue};
use crate::{
    LIMIT, secs,
    servers::{exists, get, pttl},
};

/// When the waiter gives up.
#[derive(Clone, Copy, Debug)]
enum Gone {
    /// While it believes in the old connection.
    Before,
    /// When it is back over the new one.
    After,
}

/// What its late command meets.
#[derive(Clone, Copy, Debug)]
enum Meets {
    AFreeLock,
    AHeldLock,
}

/// The old connection is killed first, where that is permitted: nothing can arrive over it.
#[test]
fn no_late_command_arrives_over_a_killed_connection() {
    each(|server, gone, meets| {
        let late = LateCommand::raise(server, gone, meets);
        let before = late.scripts();
        late.proxy.deliver_late();
        // Whatever arrived was read before the next connection's command is answered.
        server.cmd(&["PING"]);
        assert_eq!(late.scripts(), before, "it was carried out");
        late.comes_to_nothing();
    });
}

/// Where nothing may be killed, the command arrives, and finds the tombstone.
#[test]
fn a_late_command_finds_a_tombstone() {
    each(|server, gone, meets| {
        assert!(server.cmd(&["ACL", "SETUSER", "default", "-client|kill"]).is_ok());
        let late = LateCommand::raise(server, gone, meets);
        // An undoing is repeated a while later, and then nobody looks after it any more. Who was
        // granted the lock over the new connection gives that back, once.
        let last = if matches!((gone, meets), (Gone::After, Meets::AFreeLock)) { 1 } else { 2 };
        eventually(LIMIT, "undone permanently", || late.releases() >= last);
        let before = late.scripts();
        late.proxy.deliver_late();
        eventually(LIMIT, "the late command arrives", || late.scripts() > before);
        late.comes_to_nothing();
        let left = pttl(server, &queue(KEY));
        assert!(left > 0, "tombstones end: {left}");
    });
}

/// The same, when it arrives right behind the first undoing: not even for a moment is it anything.
#[test]
fn a_late_command_that_arrives_at_once_finds_a_tombstone() {
    each(|server, gone, meets| {
        assert!(server.cmd(&["ACL", "SETUSER", "default", "-client|kill"]).is_ok());
        let late = LateCommand::raise(server, gone, meets);
        let before = late.scripts();
        late.proxy.deliver_late();
        eventually(LIMIT, "the late command arrives", || late.scripts() > before);
        late.comes_to_nothing();
    });
}

/// Each with a server of its own, all at once.
fn each(test: impl Fn(&Server, Gone, Meets) + Sync) {
    let cases = [
        (Gone::Before, Meets::AFreeLock),
        (Gone::Before, Meets::AHeldLock),
        (Gone::After, Meets::AFreeLock),
        (Gone::After, Meets::AHeldLock),
    ];
    thread::scope(|scope| {
        let test = &test;
        let kinds = [ServerKind::Redis70, ServerKind::Valkey91].iter().cycle();
        let ran: Vec<_> = cases
            .into_iter()
            .zip(kinds)
            .map(|((gone, meets), kind)| {
                scope.spawn(move || test(&Server::start(*kind), gone, meets))
            })
            .collect();
        for ((gone, meets), ran) in cases.into_iter().zip(ran) {
            assert!(ran.join().is_ok(), "gone {gone:?}, meets {meets:?}");
        }
    });
}

const KEY: &str = "k";
const TTL: Duration = secs(600);

struct LateCommand<'a> {
    server: &'a Server,
    proxy: Proxy,
    holder: blocking::Client,
    guard: Option<blocking::LockGuard>,
    monitor: RefCell<(Monitor, Vec<String>)>,
    _waiter: Client,
}

impl<'a> LateCommand<'a> {
    /// A waiter that has given up, whose first command is still on its way.
    fn raise(server: &'a Server, gone: Gone, meets: Meets) -> Self {
        let proxy = Proxy::to(server);
        let holder = blocking::Client::connect(&server.url()).unwrap();
        let waiter = Client::connect(&proxy.url()).unwrap();
        // Greeted, and it listens to its channel.
        let warm = waiter.lock("warm").ttl(TTL);
        block_on(async { warm.acquire().await.unwrap().release().await }).unwrap();
        let guard = match meets {
            Meets::AFreeLock => None,
            Meets::AHeldLock => Some(holder.lock(KEY).ttl(TTL).acquire().unwrap()),
        };
        proxy.delay_requests(LIMIT * 10);
        let lock = waiter.lock(KEY).ttl(TTL);
        let mut acquiring: Acquiring =
            Box::pin(async move { lock.acquire_within(LIMIT * 3).await });
        assert!(block_on(poll_once(&mut acquiring)).is_none());
        eventually(LIMIT, "its command is on its way", || proxy.requests_on_the_way() == 1);
        let monitor = RefCell::new((server.monitor(), Vec::new()));
        let late = Self { server, proxy, holder, guard, monitor, _waiter: waiter };
        match gone {
            Gone::Before => {
                drop(acquiring);
                let on_the_way = || late.proxy.requests_on_the_way() == 2;
                eventually(LIMIT, "its undoing is on its way, too", on_the_way);
                late.come_back();
            }
            Gone::After => {
                late.come_back();
                eventually(LIMIT, "it is back", || !late.is_clear());
                drop(acquiring);
            }
        }
        eventually(LIMIT, "it has given up", || late.releases() >= 1 && late.is_clear());
        late
    }

    /// The waiter's connection is over, and the next one is good.
    fn come_back(&self) {
        self.proxy.half_open();
        self.proxy.delay_requests(Duration::ZERO);
    }

    /// Whether the server knows nothing of the waiter.
    fn is_clear(&self) -> bool {
        channels(self.server, KEY).is_empty() && (self.guard.is_some() || !exists(self.server, KEY))
    }

    /// It came, and nothing came of it.
    fn comes_to_nothing(mut self) {
        assert!(self.is_clear(), "a late command holds the lock or waits for it");
        let guard = match self.guard.take() {
            Some(guard) => {
                assert_eq!(get(self.server, KEY).text(), Some(guard.token().as_str()));
                guard
            }
            None => self.holder.lock(KEY).try_acquire().unwrap().expect("the lock is free"),
        };
        guard.release().unwrap();
        assert!(nothing_is_left(self.server, KEY));
    }

    /// Scripts for the lock that the server was sent since the waiter's command was on its way.
    fn scripts(&self) -> usize {
        self.count(|line| line.contains("\"EVAL"))
    }

    fn releases(&self) -> usize {
        let release = script::ALL.iter().find(|script| script.name == "release").unwrap();
        let in_full = "-- Hands the lock to the next waiter if the token holds it";
        assert!(release.text.contains(in_full));
        self.count(|line| line.contains(release.sha1) || line.contains(in_full))
    }

    fn count(&self, what: impl Fn(&str) -> bool) -> usize {
        let (monitor, lines) = &mut *self.monitor.borrow_mut();
        lines.extend(monitor.so_far().into_iter().filter(|line| !line.contains(" lua]")));
        lines.iter().filter(|line| line.contains("\"k\"") && what(line)).count()
    }
}
