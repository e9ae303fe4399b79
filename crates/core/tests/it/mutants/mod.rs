//! Proof that the property can fail: scripts broken on purpose, each of which it must catch.

mod bodies;
mod force;
mod library;
mod marker;
mod numbers;
mod places;
mod polling;
mod serving;

use proptest::test_runner::Config;
use tenure_core::script;
use tenure_testkit::ServerKind;

use crate::node::Node;
use crate::property::{config, seeded, try_sequences};

/// A fault: what it comes to, and in each of these scripts one text in place of another.
struct Mutant(&'static str, &'static [&'static str], &'static str, &'static str);

#[test]
fn every_broken_script_is_caught() {
    let mut node = Node::start(ServerKind::Valkey91);
    let mut survivors = Vec::new();
    for Mutant(fault, scripts, sound, broken) in mutants() {
        node.load(|script| {
            if !scripts.contains(&script.name) {
                return script.text.to_owned();
            }
            script.text.replace(sound, broken)
        });
        // How short a counter-example can be does not matter here.
        let config = Config { max_shrink_iters: 0, ..config(SEQUENCES) };
        let tried = try_sequences(&mut node, seeded(SEED, config));
        match tried.difference {
            Some(_) => println!("caught by sequence {:4}: {fault}", tried.sequences),
            None => survivors.push(fault),
        }
    }
    assert!(survivors.is_empty(), "not caught by {SEQUENCES} sequences: {survivors:#?}");
}

/// A mutant of a text that is no longer there would prove nothing.
#[test]
fn every_mutant_breaks_each_of_its_scripts_at_one_place() {
    let mut wrong = Vec::new();
    for Mutant(fault, scripts, sound, broken) in mutants() {
        for script in script::ALL.iter().filter(|script| scripts.contains(&script.name)) {
            if script.text.matches(sound).count() != 1 || sound == broken {
                wrong.push((fault, script.name, script.text.matches(sound).count()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_script_has_mutants() {
    for script in script::ALL {
        assert!(mutants().any(|mutant| mutant.1.contains(&script.name)), "{}", script.name);
    }
}

fn mutants() -> impl Iterator<Item = &'static Mutant> {
    let libraries = library::MUTANTS.iter().chain(serving::MUTANTS);
    let bodies =
        bodies::MUTANTS.iter().chain(places::MUTANTS).chain(polling::MUTANTS).chain(force::MUTANTS);
    libraries.chain(numbers::MUTANTS).chain(bodies).chain(marker::MUTANTS)
}

/// Other sequences than those of the property itself, and as many as it tries on all kinds.
const SEED: u8 = 77;
const SEQUENCES: usize = 10_000;
