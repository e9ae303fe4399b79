//! The end of a client: what was let go is released, also when the program ends at once.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    task::{Context, Wake, Waker},
    thread,
};

use tenure::{AcquireError, LossReason, ReleaseError};
use tenure_testkit::{FakeAnswer, FakeServer, Proxy, Server, eventually, scale, unique_key};

use super::{
    LIMIT, connect, eventually_free, hold, is_free, kind_of,
    program::{self, Program},
    shared,
};
use crate::{
    fake::{self, ScriptRequest},
    ms,
};

/// Long: what is gone was released, and has not ended.
const TTL: std::time::Duration = std::time::Duration::from_secs(600);

/// A program drops its guards and returns from `main`: the releases are on their way by then. Many
/// at once, so that each gets little of the processor.
#[test]
fn a_program_that_drops_its_guards_and_returns_leaves_no_lock() {
    for _ in 0..scale(5, 50) {
        let keys: Vec<_> = (0..4).map(|_| unique_key("exit")).collect();
        let start = |key: &String| {
            let settings = [("SERVER", shared().url()), ("KEY", key.clone())];
            let settings: Vec<_> = settings.iter().map(|(n, v)| (*n, v.as_str())).collect();
            Program::start("drop and return", &settings)
        };
        let mut programs: Vec<_> = keys.iter().map(start).collect();
        for program in &mut programs {
            assert_eq!(program.hear(), "held");
        }
        for key in &keys {
            assert!((0..GUARDS).all(|n| !is_free(shared(), &format!("{key}-{n}"))));
        }
        programs.iter_mut().for_each(|program| program.tell("return"));
        programs.into_iter().for_each(Program::end_well);
        for key in &keys {
            (0..GUARDS).for_each(|n| eventually_free(shared(), &format!("{key}-{n}")));
        }
    }
}

const GUARDS: usize = 3;

pub(super) fn drop_and_return() {
    let client = connect(&program::setting("SERVER"));
    let key = program::setting("KEY");
    let lock = |n| client.lock(format!("{key}-{n}")).ttl(TTL).acquire().unwrap();
    let guards: Vec<_> = (0..GUARDS).map(lock).collect();
    program::say("held");
    program::heed();
    drop(guards);
}

/// Nobody drops a `static`, so only the end of the program can write what was released just before.
#[test]
fn a_program_with_a_static_client_leaves_no_lock_that_it_dropped() {
    for _ in 0..scale(8, 100) {
        let keys: Vec<_> = (0..4).map(|_| unique_key("static")).collect();
        let start = |key: &String| {
            let settings = [("SERVER", shared().url()), ("KEY", key.clone())];
            let settings: Vec<_> = settings.iter().map(|(n, v)| (*n, v.as_str())).collect();
            Program::start("drop beside a static", &settings)
        };
        let mut programs: Vec<_> = keys.iter().map(start).collect();
        for (program, key) in programs.iter_mut().zip(&keys) {
            assert_eq!(program.hear(), "held");
            assert!(!is_free(shared(), key));
            program.tell("end");
        }
        programs.into_iter().for_each(Program::end_well);
        keys.iter().for_each(|key| eventually_free(shared(), key));
    }
}

pub(super) fn drop_beside_a_static() {
    static CLIENT: std::sync::OnceLock<tenure::blocking::Client> = std::sync::OnceLock::new();
    let client = CLIENT.get_or_init(|| connect(&program::setting("SERVER")));
    let guard = client.lock(program::setting("KEY")).ttl(TTL).acquire().unwrap();
    program::say("held");
    program::heed();
    drop(guard);
}

/// The last handle may be a guard.
#[test]
fn the_last_handles_drop_writes_what_is_queued() {
    for round in 0..scale(20, 500) {
        let key = unique_key("last-handle");
        let client = connect(&shared().url());
        let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
        if round % 2 == 0 {
            drop(client);
            drop(guard);
        } else {
            drop(guard);
            drop(client);
        }
        eventually_free(shared(), &key);
    }
}

/// A server that does not answer holds up the end of a program for a moment only, and the release
/// is in its buffers nevertheless.
#[test]
fn what_is_queued_is_written_to_a_server_that_does_not_answer() {
    let server = super::private().start();
    let key = unique_key("frozen-exit");
    let client = connect(&server.url());
    let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
    let frozen = server.freeze_process();
    drop((guard, client));
    frozen.thaw();
    eventually_free(&server, &key);
}

/// `close` waits for the answers, so the keys are gone when it returns.
#[test]
fn close_waits_for_the_answers_to_all_releases() {
    for guards in [1, 2, 300] {
        for _ in 0..scale(5, 100) {
            let client = connect(&shared().url());
            let key = unique_key("close");
            let lock = |n| client.lock(format!("{key}-{n}")).ttl(TTL).acquire().unwrap();
            let guards: Vec<_> = (0..guards).map(lock).collect();
            let keys: Vec<_> = guards.iter().map(|guard| guard.key().clone()).collect();
            drop(guards);
            client.close().unwrap();
            let mut raw = shared().raw();
            for key in keys {
                assert_eq!(raw.cmd(&[b"EXISTS", key.as_bytes()]).int(), 0, "{key} is left");
            }
        }
    }
}

/// The engine finds the release of a dropped guard and the close at the same moment.
///
/// Reproduces: a close right behind a release found it not yet begun, and ended the engine before
/// it was sent. The key stayed for its TTL, and `close` said that all was answered.
#[tokio::test]
async fn a_close_right_after_a_release_waits_for_it() {
    let proxy = Proxy::to(shared());
    let client = tenure::Client::connect(&proxy.url()).unwrap();
    let key = unique_key("close-behind");
    let lock = client.lock(&key).ttl(TTL);
    let guard = lock.acquire().await.unwrap();
    // Answered no sooner than the test looks.
    proxy.delay_replies(ms(20));
    // The engine's thread, in the middle of an answer, until both are in its inbox.
    let (stopper, engine) = Stopper::new();
    let mut inspection = Box::pin(lock.inspect());
    let waker = Waker::from(Arc::new(stopper));
    assert!(inspection.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    engine.stopped.recv().unwrap();
    drop(guard);
    let mut close = Box::pin(client.clone().close());
    assert!(close.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    engine.go.send(()).unwrap();
    close.await.unwrap();
    assert!(is_free(shared(), &key), "the release was not sent");
}

/// A waker that stops the thread by which it is woken.
struct Stopper {
    stopped: Mutex<Sender<()>>,
    go: Mutex<Receiver<()>>,
}

/// A thread that was stopped by a [`Stopper`].
struct Stopped {
    stopped: Receiver<()>,
    go: Sender<()>,
}

impl Stopper {
    fn new() -> (Self, Stopped) {
        let ((said, stopped), (go, heard)) = (channel(), channel());
        (Self { stopped: Mutex::new(said), go: Mutex::new(heard) }, Stopped { stopped, go })
    }
}

impl Wake for Stopper {
    fn wake(self: Arc<Self>) {
        self.stopped.lock().unwrap().send(()).expect("the test waits");
        self.go.lock().unwrap().recv().expect("the test lets it go");
    }
}

/// What stays unanswered is counted, and not passed over.
#[test]
fn close_reports_how_many_releases_are_unanswered() {
    let proxy = Proxy::to(shared());
    let client = connect(&proxy.url());
    let guards: Vec<_> =
        (0..3).map(|_| client.lock(unique_key("unanswered")).acquire().unwrap()).collect();
    proxy.black_hole();
    drop(guards);
    assert_eq!(client.close().unwrap_err().unanswered, 3);
}

/// Whatever is still there afterwards says so, and hangs nowhere.
#[test]
fn after_close_every_handle_returns_engine_stopped() {
    let server: &Server = shared();
    let client = connect(&server.url());
    let key = unique_key("closed");
    let lock = client.lock(&key).ttl(TTL);
    let guard = lock.acquire().unwrap();
    let others = client.lock(&key);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| others.acquire());
        let lost = scope.spawn(|| guard.lost());
        client.clone().close().unwrap();
        assert!(matches!(waiter.join().unwrap(), Err(AcquireError::EngineStopped { .. })));
        assert_eq!(lost.join().unwrap(), LossReason::EngineStopped);
    });
    assert_eq!(guard.valid_for(), None);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::EngineStopped));
    assert!(matches!(lock.try_acquire(), Err(AcquireError::EngineStopped { .. })));
    assert!(matches!(guard.release(), Err(ReleaseError::EngineStopped { .. })));
    assert!(lock.inspect().is_err());
    client.close().unwrap();
    // What was held is left to its TTL, as documented.
    assert!(!is_free(server, &key));
    assert!(connect(&server.url()).lock(&key).force_release().unwrap().is_some());
    // The control: an engine that has not stopped.
    let unreachable = connect("redis://127.0.0.1:1").lock(&key).try_acquire();
    assert_eq!(kind_of(unreachable), tenure::NodeErrorKind::Unreachable);
}

/// A server that cannot send an answer, since the client is gone, throws away what it has not read
/// yet: a release that was written behind an unanswered request would be lost.
#[test]
fn a_release_behind_an_unanswered_request_is_not_cut_off() {
    let fake = FakeServer::unix(|_| {
        |command: Vec<Vec<u8>>| match ScriptRequest::read(&command) {
            Some(_) => FakeAnswer::Send(Vec::new()),
            None => fake::obey(&command),
        }
    });
    let asked = |script: &str| {
        let asked = fake::asked(&fake.commands());
        asked.into_iter().find(|asked| asked.script == script)
    };
    let client = tenure::Client::connect(&fake.url()).unwrap();
    let lock = client.lock("k").ttl(TTL);
    let mut acquiring = Box::pin(lock.acquire());
    let mut context = Context::from_waker(Waker::noop());
    assert!(acquiring.as_mut().poll(&mut context).is_pending());
    eventually(LIMIT, "it is asked for", || asked("acquire").is_some());
    drop(acquiring);
    drop(lock);
    let (ended, end) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            drop(client);
            ended.send(()).unwrap();
        });
        eventually(LIMIT, "it is released", || asked("release").is_some());
        hold(ms(50));
        assert!(end.try_recv().is_err(), "the client is gone, and the server has yet to answer");
        for script in ["acquire", "release"] {
            let FakeAnswer::Send(reply) = asked(script).unwrap().obeyed() else { unreachable!() };
            fake.push(&reply);
        }
        end.recv().unwrap();
    });
}
