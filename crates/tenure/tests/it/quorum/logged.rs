//! What is logged about servers, by events with names of their own, once each time.

use std::time::Instant;

use tenure::{AcquireError, NodeErrorKind, blocking::Client};
use tenure_testkit::{Server, ServerKind, unique_key};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{Nodes, name, replicate};
use crate::{
    LIMIT,
    program::{self, Program},
    secs, servers,
};

/// Of the program: renewed three times in it.
const TTL: std::time::Duration = secs(9);

/// Holds a lock, or tries to, and prints what is logged about the servers.
pub(super) fn hold_and_tell() {
    tracing::subscriber::set_global_default(Told).unwrap();
    let client = Client::connect(&program::setting("SERVERS")).unwrap();
    let lock = client.lock(program::setting("KEY")).ttl(TTL);
    let guard = lock.acquire_within(LIMIT);
    program::say(if guard.is_ok() { "held" } else { "not held" });
    while program::heed() == "look" {
        lock.nodes().unwrap();
        program::say("looked");
    }
}

fn start(urls: &str) -> Program {
    let settings = [("SERVERS", urls), ("KEY", &*unique_key("reported"))];
    Program::start("hold and report", &settings)
}

fn hears(program: &mut Program, event: &str, node: &Server) {
    assert_eq!(program.hear(), format!("tenure.node.{event} {}", name(node)));
}

/// Each is logged once, although many renewals follow: the next event is about the other server.
#[test]
fn a_clock_step_is_logged_by_the_next_renewal() {
    let server = |kind| Server::builder(kind).tcp().shim().start();
    let nodes = Nodes::of(ServerKind::ALL.into_iter().map(server));
    let mut program = start(&nodes.urls());
    assert_eq!(program.hear(), "held");
    // One may not have answered yet: whether its clock moved before that is unknown.
    program.tell("look");
    assert_eq!(program.hear(), "looked");
    for (node, by) in [(1, 40_000), (2, -3_600_000)] {
        nodes.0[node].clock().step_ms(by);
        let stepped = Instant::now();
        hears(&mut program, "clock_stepped", &nodes.0[node]);
        assert!(stepped.elapsed() < TTL, "a lease could have ended by then");
    }
}

#[test]
fn a_new_or_restarted_server_is_logged() {
    let nodes = Nodes::start(3);
    assert!(nodes.0[1].cmd(&["FLUSHALL"]).is_ok());
    let mut program = start(&nodes.urls());
    // Its answer may come after the others have decided.
    let mut told = [program.hear(), program.hear()];
    told.sort_unstable();
    assert_eq!(told, ["held".to_owned(), format!("tenure.node.unmarked {}", name(&nodes.0[1]))]);
    nodes.0[1].restart_empty();
    hears(&mut program, "restarted", &nodes.0[1]);
    // It is still ineligible, which is logged once.
    program.tell("look");
    assert_eq!(program.hear(), "looked");
    nodes.0[1].restart_empty();
    hears(&mut program, "restarted", &nodes.0[1]);
}

#[test]
fn a_server_that_hides_its_run_id_is_logged() {
    let nodes = Nodes::start(3);
    assert!(nodes.0[2].cmd(&["ACL", "SETUSER", "default", "-info"]).is_ok());
    let mut program = start(&nodes.urls());
    let mut told = [program.hear(), program.hear()];
    told.sort_unstable();
    assert_eq!(told, ["held".to_owned(), format!("tenure.node.run_hidden {}", name(&nodes.0[2]))]);
}

/// It cannot show that it is the server that granted the locks before.
#[test]
fn a_server_that_hides_its_identity_never_votes_and_the_log_says_why() {
    let (nodes, key) = (Nodes::start(3), unique_key("hidden"));
    for node in &nodes.0[1..] {
        assert!(node.cmd(&["ACL", "SETUSER", "default", "-info"]).is_ok());
    }
    let lock = nodes.client().lock(&key).node_limit(LIMIT);
    let Err(AcquireError::NoQuorum(none)) = lock.acquire() else { panic!("two hide theirs") };
    assert_eq!(none.granted, 1, "{none:?}");
    for error in &none.failed {
        assert_eq!((error.kind(), error.votes_in()), (NodeErrorKind::NoPermission, None));
        let cause = std::error::Error::source(error).unwrap().to_string();
        assert!(cause.contains("INFO"), "{cause}");
    }
    nodes.becomes_free(&key);
}

#[test]
fn a_second_address_and_a_replica_are_logged() {
    let nodes = Nodes::start(2);
    replicate(&nodes.0[0], &nodes.0[1]);
    assert_eq!(nodes.0[1].cmd(&["DEL", "tenure:marker"]).int(), 1);
    servers::open([&nodes.0[1]]);
    let database = format!("{}/1?durable=yes", nodes.0[1].url());
    let mut program = start(&format!("{},{database}", servers::quorum(&nodes.0)));
    let mut told = [program.hear(), program.hear()];
    told.sort_unstable();
    let second = format!("tenure.node.same_server {}", name(&nodes.0[1]));
    assert_eq!(told[0], format!("tenure.node.not_primary {}", name(&nodes.0[0])));
    assert!(told[1].starts_with(&second), "{told:?}");
}

/// A subscriber that says the events about servers.
struct Told;

impl Subscriber for Told {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.name().starts_with("tenure.node.")
    }

    fn event(&self, event: &Event<'_>) {
        let mut node = Node::default();
        event.record(&mut node);
        assert!(!node.words.is_empty(), "each says more");
        program::say(&format!("{} {}", event.metadata().name(), node.name));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Node {
    name: String,
    words: String,
}

impl Visit for Node {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "node" => value.clone_into(&mut self.name),
            "words" => value.clone_into(&mut self.words),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
