//! Each way in which a server refuses, and what an acquisition, an extension and a
//! release make of it: the right kind, never contention, and the server's name.

use std::error::Error;

use tenure::{ExtendError, NodeError, NodeErrorKind, ReleaseError, Wait, blocking};
use tenure_testkit::{Raw, Server, unique_key};

use super::{LIMIT, connect, eventually_free, is_free, kind_of, ms, node_error, value};

/// Long: what is gone was released, and has not ended.
const TTL: std::time::Duration = std::time::Duration::from_secs(600);

/// A trouble of a server.
pub(super) struct Trouble<'a> {
    pub(super) server: &'a Server,
    /// How the client reaches the server; with a password, where that is the trouble.
    pub(super) url: String,
    pub(super) kind: NodeErrorKind,
    /// Whether extensions and releases meet it too.
    pub(super) meets_all: bool,
    pub(super) begin: &'a dyn Fn(&mut Raw),
    pub(super) end: &'a dyn Fn(&mut Raw),
}

impl Trouble<'_> {
    /// Puts the three operations through it.
    pub(super) fn is_told_as_what_it_is(&self) {
        let Self { server, kind, .. } = self;
        let client = connect(&self.url);
        let keys: Vec<_> = ["extended", "released", "new", "waited-for"].map(unique_key).into();
        let extended = client.lock(&keys[0]).ttl(TTL).acquire().unwrap();
        let released = client.lock(&keys[1]).ttl(TTL).acquire().unwrap();
        // A connection of ours from before the trouble, which will end it.
        let mut raw = server.raw();
        (self.begin)(&mut raw);

        let lock = client.lock(&keys[2]).ttl(TTL);
        let error = lock.try_acquire().expect_err("it is in trouble");
        self.is_said_by(node_error(&error));
        if self.meets_all {
            match extended.extend(TTL * 2) {
                Err(ExtendError::Unconfirmed(errors)) => self.is_said_by(errors.first()),
                other => panic!("{kind:?}: extended: {other:?}"),
            }
            match released.release() {
                Err(ReleaseError::Unconfirmed(errors)) => self.is_said_by(errors.first()),
                other => panic!("{kind:?}: released: {other:?}"),
            }
        } else {
            extended.extend(TTL * 2).unwrap();
            released.release().unwrap();
        }
        assert_eq!(
            extended.ensure_held().map_err(|loss| loss.reason),
            Ok(()),
            "{kind:?} is no loss"
        );
        if node_error(&error).is_retryable() {
            // In the middle of a wait; what it waits for comes at its end.
            self.outlasted_by(&client, &keys[3], &mut raw);
        } else {
            // A wait does not help, so there is none.
            assert_eq!(kind_of(client.lock(&keys[3]).acquire_within(LIMIT * 100)), *kind);
            (self.end)(&mut raw);
        }
        self.is_over(&client, &keys, extended);
    }

    fn outlasted_by(&self, client: &blocking::Client, key: &str, raw: &mut Raw) {
        std::thread::scope(|scope| {
            let lock = client.lock(key).ttl(TTL);
            let waiter = scope.spawn(move || lock.acquire_within(LIMIT));
            // It is refused at least once.
            super::hold(ms(50));
            (self.end)(raw);
            let guard = waiter.join().unwrap();
            guard.expect("the trouble is over").release().unwrap();
        });
    }

    /// All is well again, without anybody making a new client.
    fn is_over(&self, client: &blocking::Client, keys: &[String], extended: blocking::LockGuard) {
        let Self { server, .. } = self;
        assert!(is_free(server, &keys[2]), "{:?}: a refused lock was left", self.kind);
        let lock = client.lock(&keys[2]).ttl(TTL).wait(Wait::Within(LIMIT));
        lock.acquire().expect("the trouble is over").release().unwrap();
        assert_eq!(value(server, &keys[0]).as_deref(), Some(extended.token().as_bytes()));
        extended.release().unwrap();
        if node_error_is_final(self.kind) {
            // Such a refusal does not end by itself, so the release is not tried again.
            return;
        }
        eventually_free(server, &keys[1]);
    }

    fn is_said_by(&self, error: &NodeError) {
        let cause = error.source().map(ToString::to_string);
        assert_eq!(error.kind(), self.kind, "{error}: {cause:?}");
        let port = self.server.port().unwrap().to_string();
        assert!(error.to_string().contains(&port), "{error} does not name the server");
        assert!(
            !format!("{error} {error:?} {cause:?}").contains(PASSWORD),
            "the password is shown"
        );
    }
}

fn node_error_is_final(kind: NodeErrorKind) -> bool {
    use NodeErrorKind as Kind;
    matches!(kind, Kind::PasswordMissing | Kind::Denied | Kind::NoPermission)
}

/// Never to be read in an error.
pub(super) const PASSWORD: &str = "hunter2";
