//! What the types promise: who may hold them where, and what they never show.

use std::{error::Error, fmt::Debug};

use tenure::{
    AcquireError, Client, CloseError, ConfigError, ExtendError, FenceGate, FencingToken, Holder,
    HolderLabel, InspectError, Inspection, KeyError, LabelError, Lease, Lock, LockGuard, LockKey,
    LossReason, NodeError, NodeErrorKind, ReleaseError, Renewal, RunError, StaleToken, Token,
    TokenError, TtlError, Wait, blocking,
};
use tenure_testkit::{Server, ServerKind, unique_key};

use crate::{
    LIMIT,
    servers::{any, get},
};

const fn shared_anywhere<T: Send + Sync + Unpin + Debug + 'static>() {}
const fn cloned<T: Clone>() {}
const fn an_error<T: Error + Send + Sync + 'static>() {}
fn sent<T: Send>(future: T) -> T {
    future
}

#[test]
fn handles_are_send_sync_and_static() {
    shared_anywhere::<Client>();
    shared_anywhere::<Lock>();
    shared_anywhere::<LockGuard>();
    shared_anywhere::<Lease>();
    shared_anywhere::<blocking::Client>();
    shared_anywhere::<blocking::Lock>();
    shared_anywhere::<blocking::LockGuard>();
    shared_anywhere::<(Token, LockKey, FencingToken, Holder, HolderLabel, Inspection)>();
    shared_anywhere::<(Wait, Renewal, LossReason, NodeErrorKind, FenceGate)>();
    cloned::<(Client, Lock, Lease, blocking::Client, blocking::Lock, Token, NodeError)>();
}

/// A guard is one right: a clone would be a second one, a default one that nobody gave.
#[test]
fn a_guard_implements_neither_clone_nor_default() {
    // Both impls apply to a type that has the trait, and then the call is ambiguous: this compiles
    // only because the guards have none of the traits.
    macro_rules! has_not {
        ($bound:path: $($type:ty),+) => {{
            trait AmbiguousIfImplemented<A> {
                fn check() {}
            }
            struct Marker;
            impl<T: ?Sized> AmbiguousIfImplemented<()> for T {}
            impl<T: ?Sized + $bound> AmbiguousIfImplemented<Marker> for T {}
            $(<$type as AmbiguousIfImplemented<_>>::check();)+
        }};
    }
    has_not!(Clone: LockGuard, blocking::LockGuard);
    has_not!(Default: LockGuard, blocking::LockGuard, Client, Token, FencingToken);
    has_not!(std::ops::Deref: LockGuard, blocking::LockGuard);
    // A token in a log line is a key to the lock.
    has_not!(std::fmt::Display: Token);
}

#[test]
fn errors_are_send_sync_and_static() {
    an_error::<AcquireError>();
    an_error::<ExtendError>();
    an_error::<ReleaseError>();
    an_error::<InspectError>();
    an_error::<CloseError>();
    an_error::<ConfigError>();
    an_error::<RunError<String>>();
    an_error::<NodeError>();
    an_error::<LossReason>();
    an_error::<KeyError>();
    an_error::<LabelError>();
    an_error::<TokenError>();
    an_error::<TtlError>();
    an_error::<StaleToken>();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn futures_are_send() {
    let client = Client::connect("memory://").unwrap();
    let lock = client.lock("k");
    let ran = sent(lock.run(async |lease| lease.fencing_token()));
    ran.await.unwrap();
    let guard = sent(lock.acquire()).await.unwrap();
    drop(sent(guard.lost()));
    sent(guard.extend(LIMIT)).await.unwrap();
    drop(sent(async { guard.lease().lost().await }));
    sent(guard.release()).await.unwrap();
    let guard = sent(lock.acquire_within(LIMIT)).await.unwrap();
    let guard = sent(lock.resume(guard.detach())).await.unwrap().unwrap();
    drop(sent(lock.try_acquire()).await.unwrap());
    drop(sent(lock.steal()).await.unwrap());
    sent(lock.inspect()).await.unwrap();
    sent(lock.force_release()).await.unwrap();
    drop(guard);
    // The future owns all that it needs: it may be spawned.
    let spawned = lock.clone();
    let task = tokio::spawn(async move { spawned.run(async |_| 7).await });
    assert_eq!(task.await.unwrap().unwrap(), 7);
    sent(client.close()).await.unwrap();
}

#[test]
fn debug_shows_no_token() {
    let client = blocking::Client::connect(&any().url()).unwrap();
    let key = unique_key("debug");
    let lock = client.lock(&key);
    let guard = lock.acquire().unwrap();
    let value = get(any(), &key);
    let (secret, label) = value.text().unwrap().split_once('@').unwrap();
    let inspection = lock.inspect().unwrap();
    let shown = [
        format!("{guard:?} {guard:#?}"),
        format!("{:?} {:#?}", guard.lease(), guard.lease()),
        format!("{:?} {:#?}", guard.token(), guard.token()),
        format!("{client:?} {lock:?} {inspection:?}"),
        inspection.held.unwrap().holder.to_string(),
    ];
    for text in &shown {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(shown[0].contains(&key), "{}", shown[0]);
    assert!(shown[2].contains(label), "{}", shown[2]);
    // A guard shows what its holder wants to know, and none of its machinery.
    let fields = format!("{guard:?}");
    assert!(fields.contains("fencing_token") && fields.contains("valid_for"), "{fields}");
    guard.release().unwrap();
}

const PASSWORD: &str = "hunter2-s3cret";

/// All that an error says: itself, its causes, and their `Debug` output.
fn everything(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("{error:?} {error:#?}");
    let mut next = Some(error);
    while let Some(error) = next {
        text += &format!(" {error}");
        next = error.source();
    }
    text
}

#[test]
fn passwords_are_in_no_message() {
    let server = Server::builder(ServerKind::Redis70).tcp().password("another").start();
    let port = server.port().unwrap();
    for user in ["", "alice", PASSWORD] {
        let url = format!("redis://{user}:{PASSWORD}@127.0.0.1:{port}/2");
        let client = blocking::Client::connect(&url).unwrap();
        let lock = client.lock(unique_key("password"));
        let refused = lock.acquire().unwrap_err();
        let AcquireError::NoQuorum(none) = &refused else { panic!("{refused:?}") };
        assert_eq!(none.failed[0].kind(), NodeErrorKind::Denied, "{refused:?}");
        assert!(!none.failed[0].is_retryable());
        let inspected = lock.inspect().unwrap_err();
        let text = [
            everything(&refused),
            everything(&inspected),
            format!("{client:?} {client:#?} {lock:?} {lock:#?}"),
        ];
        for text in text {
            assert!(!text.contains(PASSWORD), "{text}");
        }
        // The server's own words are there: they say what to do.
        assert!(everything(&refused).contains("WRONGPASS"), "{}", everything(&refused));
    }
}

#[test]
fn a_bad_address_is_reported_without_its_password() {
    let mut told = 0;
    for address in [
        format!("redis://u:{PASSWORD}@host:port"),
        format!("redis://u:{PASSWORD}@host:99999"),
        format!("redis://u:{PASSWORD}@host/notanumber"),
        format!("redis://u:{PASSWORD}@host/1?what=ever"),
        format!("redis://u:{PASSWORD}@"),
        format!("redis://u:{PASSWORD}@:1"),
        format!("redis+unix://u:{PASSWORD}@/tmp/s?db=x"),
        format!("http://u:{PASSWORD}@host"),
        format!("u:{PASSWORD}@host"),
        format!(":{PASSWORD}@host:6379"),
        format!("redis:/u:{PASSWORD}@host"),
    ] {
        let refused = blocking::Client::connect(&address);
        // A valid address gives no error.
        let Err(error @ ConfigError::Address { .. }) = refused else { continue };
        assert!(!everything(&error).contains(PASSWORD), "{address}: {}", everything(&error));
        told += 1;
    }
    assert!(told >= 8, "only {told} of them are bad");
}
