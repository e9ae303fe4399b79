//! What an earlier connection has left on its way must not arrive after its undoing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tenure::NodeErrorKind;
use tenure_testkit::{FakeAnswer, FakeServer, Proxy, Server, eventually, unique_key};

use super::{LIMIT, connect, eventually_free, is_free, kind_of, private};
use crate::fake::{self, ScriptRequest};

/// Long: what is gone was released, and has not ended.
const TTL: Duration = Duration::from_secs(600);

/// The server's numbers of the library's connections.
fn ids(server: &Server) -> Vec<String> {
    let list = server.cmd(&["CLIENT", "LIST"]);
    let named = list.text().unwrap().lines().filter(|line| line.contains("name=tenure "));
    let id = |line: &str| line.split(' ').find_map(|word| word.strip_prefix("id=").map(Into::into));
    named.filter_map(id).collect()
}

/// The server still believes in the old connection, so it is killed there.
#[test]
fn an_old_connection_is_killed_on_a_real_server() {
    let server = private().start();
    let proxy = Proxy::to(&server);
    let client = connect(&proxy.url());
    let key = unique_key("half-open");
    client.lock(&key).inspect().unwrap();
    let old = ids(&server);
    let [old] = &old[..] else { panic!("one connection, and not {old:?}") };
    // Granted, and the answer on its way for as long as the connection lives.
    proxy.delay_replies(LIMIT * 10);
    std::thread::scope(|scope| {
        let attempt = scope.spawn(|| kind_of(client.lock(&key).ttl(TTL).try_acquire()));
        eventually(LIMIT, "the key", || !is_free(&server, &key));
        proxy.half_open();
        proxy.delay_replies(Duration::ZERO);
        assert_eq!(attempt.join().unwrap(), NodeErrorKind::Disconnected);
    });
    eventually_free(&server, &key);
    assert!(!ids(&server).contains(old), "the old connection is alive");
}

/// A server that closes the first connection when it is asked for a lock. `later` answers what the
/// others are asked, given the connection's number.
fn broken_once(
    later: impl Fn(usize, &[Vec<u8>]) -> Option<FakeAnswer> + Send + Sync + 'static,
) -> FakeServer {
    let later = Arc::new(later);
    FakeServer::tcp(move |connection| {
        let later = Arc::clone(&later);
        move |command: Vec<Vec<u8>>| {
            if let Some(answer) = later(connection, &command) {
                return answer;
            }
            match ScriptRequest::read(&command) {
                Some(asked) if asked.script == "acquire" && connection == 0 => FakeAnswer::Close,
                _ => fake::obey(&command),
            }
        }
    })
}

fn break_once(fake: &FakeServer) {
    let client = connect(&fake.url());
    let kind = kind_of(client.lock(unique_key("broken")).ttl(TTL).try_acquire());
    assert_eq!(kind, NodeErrorKind::Disconnected);
    eventually(LIMIT, "the attempt is undone", || releases(fake) > 0);
    client.close().unwrap();
}

fn releases(fake: &FakeServer) -> usize {
    fake::asked(&fake.commands()).iter().filter(|asked| asked.script == "release").count()
}

fn kills(fake: &FakeServer) -> usize {
    fake.commands().iter().filter(|command| fake::is_kill(command)).count()
}

/// Where in the order of all commands.
fn last_kill(fake: &FakeServer) -> usize {
    fake.commands().iter().rposition(|command| fake::is_kill(command)).expect("a kill")
}

fn first_release(fake: &FakeServer) -> usize {
    let is_release = |command: &Vec<Vec<u8>>| {
        ScriptRequest::read(command).is_some_and(|a| a.script == "release")
    };
    fake.commands().iter().position(is_release).expect("a release")
}

/// A number means nothing in another run of the server: it would hit a stranger.
#[test]
fn no_connection_is_killed_after_the_server_restarted() {
    let fake =
        broken_once(|connection, command| fake::greet(command, &format!("run-{connection}")));
    break_once(&fake);
    assert_eq!(kills(&fake), 0);
}

/// First the barrier, then the undoing, and then nothing more is to be done.
#[test]
fn the_old_connection_is_killed_once_while_the_server_runs() {
    let fake = broken_once(|_, _| None);
    break_once(&fake);
    assert_eq!((kills(&fake), releases(&fake)), (1, 1));
    assert!(last_kill(&fake) < first_release(&fake));
}

/// Who may not see the run cannot kill either, so the attempt is undone a second time, later.
#[test]
fn where_the_old_connection_cannot_be_killed_an_undo_is_repeated() {
    let no_info = |_: usize, command: &[Vec<u8>]| {
        (command[0] == b"INFO")
            .then(|| FakeAnswer::from("-NOPERM no permissions to run 'info'\r\n"))
    };
    let no_kill = |_: usize, command: &[Vec<u8>]| {
        fake::is_kill(command)
            .then(|| FakeAnswer::from("-NOPERM no permissions to run 'client'\r\n"))
    };
    for fake in [broken_once(no_info), broken_once(no_kill)] {
        let client = connect(&fake.url());
        let lock = client.lock(unique_key("no-barrier")).ttl(TTL);
        assert_eq!(kind_of(lock.try_acquire()), NodeErrorKind::Disconnected);
        eventually(LIMIT, "undone twice", || releases(&fake) == 2);
        let asked = fake::asked(&fake.commands());
        let token = &asked.iter().find(|asked| asked.script == "acquire").unwrap().token;
        assert_eq!(asked.iter().filter(|asked| asked.is("release", token)).count(), 2);
    }
}

/// The connection that was to raise the barrier broke itself; then the next one has to.
///
/// Reproduces: what had to be killed was forgotten when the command was written, not when it was
/// answered. The old connection's commands could then arrive after their undoing.
#[test]
fn a_kill_of_the_old_connection_that_failed_is_repeated() {
    let breaks = AtomicUsize::new(0);
    let fake = broken_once(move |_, command| {
        (fake::is_kill(command) && breaks.fetch_add(1, Ordering::Relaxed) < 2)
            .then_some(FakeAnswer::Close)
    });
    break_once(&fake);
    assert_eq!(kills(&fake), 3, "the third one was answered");
    assert!(last_kill(&fake) < first_release(&fake), "undone before the barrier stood");
}

/// A real server that lets nobody read its run.
#[test]
fn a_late_key_is_removed_for_a_user_without_info() {
    let server = private().start();
    server.cmd(&["ACL", "SETUSER", "default", "-info", "-client|kill"]);
    let proxy = Proxy::to(&server);
    let client = connect(&proxy.url());
    let key = unique_key("no-info");
    client.lock(&key).inspect().unwrap();
    proxy.drop_next_replies_then_cut(1);
    assert_eq!(kind_of(client.lock(&key).ttl(TTL).try_acquire()), NodeErrorKind::Disconnected);
    eventually_free(&server, &key);
}
