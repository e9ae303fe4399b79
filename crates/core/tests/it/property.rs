//! Random sequences: a server and the model say the same and keep the same, after each step.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tenure_core::{
    FenceFault, Held, Holder, Inspection, LockKey, Release, RenewalAnswer, Reply, TtlLeft,
};
use tenure_testkit::{ServerKind, scale};

use crate::model::Model;
use crate::node::{self, Node};
use crate::steps::{Place, Step, locks, sequences};

#[test]
fn redis_70_does_as_the_model() {
    does_as_the_model(ServerKind::Redis70);
}

#[test]
fn valkey_81_does_as_the_model() {
    does_as_the_model(ServerKind::Valkey81);
}

#[test]
fn valkey_91_does_as_the_model() {
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
    // Proof that the sequences go where it matters: every form of reply came, and came often.
    for form in FORMS {
        let seen = tried.forms.get(form).copied().unwrap_or_default();
        assert!(seen > 20, "{kind}: only {seen} replies of the form {form:?}: {:?}", tried.forms);
    }
}

/// What came of some sequences.
pub(crate) struct Tried {
    /// The first difference, made as short as possible.
    pub(crate) difference: Option<String>,
    /// How many sequences it took, or how many there were.
    pub(crate) sequences: usize,
    /// How often each form of reply came.
    forms: BTreeMap<&'static str, usize>,
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
pub(crate) fn try_sequences(node: &mut Node, mut runner: TestRunner) -> Tried {
    let node = RefCell::new(node);
    let forms = RefCell::new(BTreeMap::new());
    let tried = Cell::new(0);
    let failed = Cell::new(false);
    let outcome = runner.run(&sequences(), |steps| {
        // What comes after the first difference is the search for a shorter one.
        if !failed.get() {
            tried.set(tried.get() + 1);
        }
        run(&mut node.borrow_mut(), &steps, &mut forms.borrow_mut()).map_err(|difference| {
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
    Tried { difference, sequences: tried.get(), forms: forms.into_inner() }
}

/// Takes the steps on a fresh node and on a fresh model.
fn run(
    node: &mut Node,
    steps: &[Step],
    forms: &mut BTreeMap<&'static str, usize>,
) -> Result<(), String> {
    let locks = locks();
    let mut model = Model::new(&locks);
    node.reset();
    for (number, step) in (1..).zip(steps) {
        take(node, &mut model, &locks, step, forms)
            .map_err(|difference| format!("step {number}, {step:?}: {difference}"))?;
    }
    Ok(())
}

/// Takes one step on both, and compares what they say and what they keep.
fn take(
    node: &mut Node,
    model: &mut Model,
    locks: &[LockKey],
    step: &Step,
    forms: &mut BTreeMap<&'static str, usize>,
) -> Result<(), String> {
    let at = node.now();
    let mut asked = None;
    let mut commands = match step {
        Step::Ask(op) => {
            let (request, command) = node.request(op);
            asked = Some((op, request, model.ask(at, op)));
            vec![command]
        }
        Step::Clock(to) => {
            if let Some(target) = model.target(at, to) {
                node.set_clock(target);
            }
            Vec::new()
        }
        Step::Foreign(key, place, write) => {
            model.foreign(at, key, *place, write);
            write.commands(&match place {
                Place::Lock => key.as_bytes().to_vec(),
                Place::Fence => key.fence(),
            })
        }
        Step::Flush => {
            model.flush();
            vec![vec![b"FLUSHALL".to_vec()]]
        }
    };
    let own = commands.len();
    commands.extend(node::look(locks));
    let mut replies = node.pipeline(&commands);
    let looked = replies.split_off(own);

    if let Some((op, request, expected)) = asked {
        let reply = node::read(op, request, replies.remove(0))?;
        if reply != expected {
            return Err(format!("the server says\n  {reply:?}\nand the model\n  {expected:?}"));
        }
        count(&reply, forms);
    } else if let Some(error) = replies.iter().find_map(|reply| reply.error()) {
        return Err(format!("refused: {error}"));
    }
    let (seen, size) = node::seen(&looked);
    let (expected, expected_size) = model.look(node.now(), locks);
    let keys = locks.iter().flat_map(|lock| [(lock, "lock"), (lock, "fence")]);
    for ((key, seen), expected) in keys.zip(seen).zip(expected) {
        if seen != expected {
            return Err(format!(
                "at {key:?} the server has\n  {seen:?}\nand the model\n  {expected:?}"
            ));
        }
    }
    if size != expected_size {
        return Err(format!("the server has {size} keys, and the model {expected_size}"));
    }
    Ok(())
}

fn count(reply: &Reply, forms: &mut BTreeMap<&'static str, usize>) {
    let mut add = |form| *forms.entry(form).or_default() += 1;
    match reply {
        Reply::Granted(_) => add("granted"),
        Reply::Held(Held { holder, ttl_left }) => {
            add(match holder {
                Holder::Tenure(_) => "held",
                Holder::ForeignType(_) => "held by a type",
                _ => "held by another library",
            });
            if *ttl_left == TtlLeft::Never {
                add("held for ever");
            }
        }
        Reply::Free => add("not resumed: free"),
        Reply::Faulty(FenceFault::Type) => add("fault: type"),
        Reply::Faulty(FenceFault::Value) => add("fault: value"),
        Reply::Faulty(_) => add("fault: exhausted"),
        Reply::Renewed(answers) => answers.iter().for_each(|answer| {
            add(match answer {
                RenewalAnswer::Renewed => "renewed",
                RenewalAnswer::Gone => "gone",
                RenewalAnswer::Other(_) => "not renewed: another's",
                RenewalAnswer::Refused(_) => "refused",
            });
        }),
        Reply::Released(Release::Released(_)) => add("released"),
        Reply::Released(Release::Free) => add("already free"),
        Reply::Released(Release::Other(_)) => add("not released: another's"),
        Reply::Inspected(Inspection { held: None, .. }) => add("inspected: free"),
        Reply::Inspected(Inspection { last_number: None, .. }) => add("inspected: no number"),
        Reply::Inspected(_) => add("inspected"),
    }
}

/// All that a server says in these sequences.
const FORMS: [&str; 18] = [
    "not resumed: free",
    "granted",
    "held",
    "held by a type",
    "held by another library",
    "held for ever",
    "fault: type",
    "fault: value",
    "fault: exhausted",
    "renewed",
    "gone",
    "not renewed: another's",
    "released",
    "already free",
    "not released: another's",
    "inspected: free",
    "inspected: no number",
    "inspected",
];
