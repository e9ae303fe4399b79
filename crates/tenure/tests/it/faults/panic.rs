//! The engine's thread panics: in a subscriber of the user's, say. Then no call waits forever, and
//! no holder believes in a lease that is not renewed.

use tenure::{AcquireError, ExtendError, LossReason, ReleaseError, blocking::Client};
use tenure_testkit::unique_key;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{
    TTL, connect,
    program::{self, Program},
    shared,
};

#[test]
fn a_panic_in_the_engine_ends_every_call_and_every_lease() {
    for at in ["acquired", "lost"] {
        let key = unique_key("panic");
        let settings = [("SERVER", &*shared().url()), ("KEY", &*key), ("AT", at)];
        let mut program = Program::start("panic in the engine", &settings);
        assert_eq!(program.hear(), "all calls ended");
        program.end_well();
    }
}

pub(super) fn panic_in_the_engine() {
    tracing::subscriber::set_global_default(Faulty { at: program::setting("AT") }).unwrap();
    let key = program::setting("KEY");
    // Another client's, whose engine works: this one's can report nothing.
    let client = connect(&program::setting("SERVER"));
    match program::setting("AT").as_str() {
        "acquired" => {
            let result = client.lock(&key).ttl(TTL).acquire();
            assert!(matches!(result, Err(AcquireError::EngineStopped { .. })));
        }
        _ => after_a_loss(&client, &key),
    }
    assert!(matches!(client.lock(&key).try_acquire(), Err(AcquireError::EngineStopped { .. })));
    assert!(client.lock(&key).inspect().is_err());
    client.close().unwrap();
    program::say("all calls ended");
}

fn after_a_loss(client: &Client, key: &str) {
    let stolen = client.lock(key).ttl(TTL).acquire().unwrap();
    let guard = client.lock(format!("{key}-other")).ttl(TTL * 100).acquire().unwrap();
    let lease = guard.lease();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.lock(guard.key().as_bytes()).acquire());
        let lost = scope.spawn(|| guard.lost());
        let mut raw = server();
        raw.cmd(&["DEL", key]);
        assert_eq!(lost.join().unwrap(), LossReason::EngineStopped);
        assert!(matches!(waiter.join().unwrap(), Err(AcquireError::EngineStopped { .. })));
    });
    // The panic happened while its own loss was logged.
    assert!(stolen.ensure_held().is_err());
    _ = stolen.lost();
    assert_eq!((guard.valid_for(), lease.valid_for()), (None, None));
    assert_eq!(lease.ensure_held().map_err(|loss| loss.reason), Err(LossReason::EngineStopped));
    assert!(matches!(guard.extend(TTL), Err(ExtendError::EngineStopped { .. })));
    assert!(matches!(guard.release(), Err(ReleaseError::EngineStopped { .. })));
}

fn server() -> tenure_testkit::Raw {
    let url = program::setting("SERVER");
    let (_, port) = url.rsplit_once(':').expect("a port");
    tenure_testkit::Raw::tcp(port.parse().expect("a port"))
}

/// A subscriber that panics at one message.
struct Faulty {
    at: String,
}

impl Subscriber for Faulty {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tenure")
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = EventMessage(String::new());
        event.record(&mut message);
        assert!(message.0 != self.at, "a fault of the user's subscriber");
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct EventMessage(String);

impl Visit for EventMessage {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
