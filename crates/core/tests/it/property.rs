//! Random sequences: a server and the model say the same and keep the same, after each step.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tenure_core::{LockKey, MARKER_KEY, Notification, Op, ServerIdentity};
use tenure_testkit::{ServerKind, Value, scale};

use crate::forms::Forms;
use crate::listeners::{Heard, Listeners};
use crate::model::Model;
use crate::node::{self, Command, Node};
use crate::steps::{Listen, MarkerStep, Step, locks, sequences};

#[test]
fn redis_70_matches_the_model() {
    does_as_the_model(ServerKind::Redis70);
}

#[test]
fn valkey_81_matches_the_model() {
    does_as_the_model(ServerKind::Valkey81);
}

#[test]
fn valkey_91_matches_the_model() {
    does_as_the_model(ServerKind::Valkey91);
}

/// 10,000 sequences over the three kinds: the same ones on every run, except in a soak.
fn does_as_the_model(kind: ServerKind) {
    let sequences = scale(3_334, 100_000);
    let mut node = Node::start(kind);
    let runner = if scale(0, 1) == 0 {
        seeded(kind as u8, config(sequences))
    } else {
        TestRunner::new(config(sequences))
    };
    let tried = try_sequences(&mut node, runner);
    if let Some(difference) = tried.difference {
        panic!("{kind}: {difference}");
    }
    assert_eq!(tried.sequences, sequences, "{kind}");
    tried.forms.assert_often(kind);
}

/// What came of some sequences.
pub(crate) struct Tries {
    /// The first difference, made as short as possible.
    pub(crate) difference: Option<String>,
    /// How many sequences it took, or how many there were.
    pub(crate) sequences: usize,
    /// How often each form of reply and of message came.
    forms: Forms,
}

/// This many sequences.
pub(crate) fn config(sequences: usize) -> Config {
    let cases = u32::try_from(sequences).unwrap();
    // Nothing is written beside the sources; a difference is shown in full instead.
    Config { cases, failure_persistence: None, max_shrink_iters: 3_000, ..Config::default() }
}

/// The same sequences on every run.
pub(crate) fn seeded(seed: u8, config: Config) -> TestRunner {
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]))
}

/// Tries random sequences until there is a difference.
pub(crate) fn try_sequences(node: &mut Node, mut runner: TestRunner) -> Tries {
    let pair = RefCell::new(Pair::new(node));
    let tried = Cell::new(0);
    let failed = Cell::new(false);
    let outcome = runner.run(&sequences(), |steps| {
        // What comes after the first difference is the search for a shorter one.
        if !failed.get() {
            tried.set(tried.get() + 1);
        }
        pair.borrow_mut().run(&steps).map_err(|difference| {
            failed.set(true);
            TestCaseError::fail(difference)
        })
    });
    let difference = outcome.err().map(|error| match error {
        TestError::Fail(reason, steps) => {
            let lines: Vec<_> = steps.iter().map(|step| format!("  {step:?}")).collect();
            format!("{reason}\nafter\n{}", lines.join("\n"))
        }
        TestError::Abort(reason) => format!("gave up: {reason}"),
    });
    Tries { difference, sequences: tried.get(), forms: pair.into_inner().forms }
}

/// A node with its listeners, and the model that it should do as.
struct Pair<'a> {
    node: &'a mut Node,
    listeners: Listeners,
    locks: Vec<LockKey>,
    identity: ServerIdentity,
    model: Model,
    forms: Forms,
}

impl<'a> Pair<'a> {
    fn new(node: &'a mut Node) -> Self {
        let listeners = Listeners::start(&node.server);
        let locks = locks();
        let identity = node.identity();
        let model = Model::new(&locks, identity.clone());
        Self { node, listeners, locks, identity, model, forms: Forms::default() }
    }

    /// Takes the steps on a fresh node and on a fresh model.
    fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        self.node.reset();
        self.model = Model::new(&self.locks, self.identity.clone());
        self.listeners.restore();
        for (number, step) in (1..).zip(steps) {
            self.take(step)
                .map_err(|difference| format!("step {number}, {step:?}: {difference}"))?;
        }
        Ok(())
    }

    /// Takes one step on both, and compares what they say, whom they notify, and what they keep.
    fn take(&mut self, step: &Step) -> Result<(), String> {
        let at = self.node.now();
        let mut commands = Vec::new();
        match step {
            Step::Ask(op) => return self.ask(op),
            Step::Again(op) => return self.ask(&self.model.again(op)),
            Step::Listen(change) => self.listen(*change),
            Step::Clock(to) => {
                if let Some(target) = self.model.target(at, to) {
                    self.node.set_clock(target);
                }
            }
            Step::Foreign(key, part, write) => {
                if self.model.foreign(at, key, *part, write) {
                    commands = write.commands(&part.of(key));
                }
            }
            Step::Marker(change) => {
                let text = self.model.mark(at, change);
                commands = change.commands(text.as_deref());
            }
            Step::Flush => {
                self.model.flush();
                commands.push(vec![b"FLUSHALL".to_vec()]);
            }
        }
        let (replies, looked) = self.send(commands);
        if let Some(error) = replies.iter().find_map(|reply| reply.error()) {
            return Err(format!("refused: {error}"));
        }
        if let Step::Marker(MarkerStep::Renamed) = step {
            self.identity = self.node.identity();
            self.model.identify(self.identity.clone());
        }
        self.compare_keys(&looked)
    }

    fn ask(&mut self, op: &Op) -> Result<(), String> {
        let at = self.node.now();
        let before = self.model.before(at, op);
        let (expected, notifications) = self.model.ask(at, op);
        let (request, command) = self.node.request(op);
        let mark = self.listeners.mark();
        let (mut replies, looked) = self.send(vec![command, mark]);
        let published = self.listeners.published();
        let reply = node::read(op, request, replies.remove(0))?;
        if reply != expected {
            return Err(differ("says", &reply, &expected));
        }
        self.compare_messages(&published, &notifications)?;
        self.compare_keys(&looked)?;
        if let Some(passed) =
            before.and_then(|before| before.passed_over(op, &reply, &notifications))
        {
            return Err(format!("passed over: {passed}"));
        }
        self.forms.count(op, &reply, &notifications);
        Ok(())
    }

    /// Sends the commands, and looks at the keys afterwards, in one write.
    fn send(&mut self, mut commands: Vec<Command>) -> (Vec<Value>, Vec<Value>) {
        let own = commands.len();
        commands.extend(["MGET", "TYPE"].map(|word| vec![word.into(), MARKER_KEY.to_vec()]));
        commands.extend(node::look(&self.locks));
        let mut replies = self.node.pipeline(&commands);
        let looked = replies.split_off(own);
        (replies, looked)
    }

    fn listen(&mut self, change: Listen) {
        self.model.listen(change);
        match change {
            Listen::Open(index) => self.listeners.open(index),
            Listen::Close(index) => self.listeners.close(index),
            Listen::Cut(line) => self.listeners.cut(line, &self.node.server),
        }
    }

    fn compare_messages(
        &mut self,
        published: &[(String, String)],
        notifications: &[Notification],
    ) -> Result<(), String> {
        let message =
            |notification: &Notification| (notification.to().to_string(), notification.text());
        let expected: Vec<_> = notifications.iter().map(message).collect();
        if published != expected {
            return Err(differ("publishes", &published, &expected));
        }
        for (notification, (_, text)) in notifications.iter().zip(published) {
            assert_eq!(
                Notification::read(notification.to(), text).as_ref(),
                Some(notification),
                "read as it was meant"
            );
        }
        if expected.is_empty() {
            return Ok(());
        }
        let mut by_channel = Heard::new();
        for (channel, text) in expected {
            by_channel.entry(channel).or_default().push(text);
        }
        let heard = self.listeners.heard();
        if heard == by_channel { Ok(()) } else { Err(differ("notifications", &heard, &by_channel)) }
    }

    fn compare_keys(&mut self, looked: &[Value]) -> Result<(), String> {
        let (of_marker, looked) = looked.split_at(2);
        let marker = (of_marker[1].text(), of_marker[0].array()[0].text());
        if marker != self.model.marker() {
            return Err(differ("has as its marker", &marker, &self.model.marker()));
        }
        let (seen, size) = node::seen(looked);
        let (expected, expected_size) = self.model.look(self.node.now(), &self.locks);
        let parts = ["lock", "fence", "queue"];
        let keys = self.locks.iter().flat_map(|lock| parts.map(|part| (lock, part)));
        for ((key, seen), expected) in keys.zip(seen).zip(expected) {
            if seen != expected {
                return Err(format!("at {key:?} {}", differ("has", &seen, &expected)));
            }
        }
        if size == expected_size { Ok(()) } else { Err(differ("counts", &size, &expected_size)) }
    }
}

fn differ(what: &str, server: &dyn Debug, model: &dyn Debug) -> String {
    format!("the server {what}\n  {server:?}\nand the model\n  {model:?}")
}
