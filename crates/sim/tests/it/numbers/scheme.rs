//! The scheme as it is: no rule is broken, in any state there is.

use tenure_sim::{Limits, NumbersConfig, Report, Timing, search_numbers};
use tenure_testkit::scale;

/// Searches all there is of a world, and wants no rule broken. A search that sees less than it did
/// when this was written has lost a kind of step.
fn all(name: &str, at_least: usize, config: NumbersConfig) {
    let report = look(name, config, usize::MAX);
    assert!(!report.capped, "all of them: {report}");
    assert!(report.states >= at_least, "at least {at_least} states: {report}");
}

/// Searches as much as time permits.
fn some(name: &str, config: NumbersConfig, states: usize) {
    let report = look(name, config, states);
    assert!(!report.capped || report.states >= states, "{report}");
}

fn look(name: &str, config: NumbersConfig, states: usize) -> Report {
    let limits = Limits { states, liveness_every: 0, ..Limits::default() };
    let report = search_numbers(config, limits);
    println!("{name}: {report}");
    assert!(report.found.is_none(), "{name}: {report}");
    report
}

fn honest() -> NumbersConfig {
    NumbersConfig::default()
}

fn dishonest() -> NumbersConfig {
    NumbersConfig { timing: Timing::Dishonest, ..honest() }
}

/// Numbers are unique, grow from one hold to the next, and no two attempts hold the lock at once.
#[test]
fn two_attempts_with_honest_clocks() {
    all("two, honest", 12_900, honest());
    all("two, honest, time limits", 169_000, NumbersConfig { limits: true, ..honest() });
    all("two, honest, from three numbers", 38_000, NumbersConfig { last: [0, 1, 2], ..honest() });
    let equal = NumbersConfig { last: [1; 3], limits: true, ..honest() };
    all("two, honest, from equal numbers, time limits", 25_000, equal);
}

#[test]
fn two_attempts_that_propose() {
    for (proposals, at_least) in [([3, 0, 0], 7_300), ([0, 3, 0], 7_200), ([2, 2, 0], 3_900)] {
        let name = format!("two, honest, proposals {proposals:?}");
        all(&name, at_least, NumbersConfig { proposals, ..honest() });
    }
}

/// Keys may vanish at any time: numbers stay unique and in order.
#[test]
fn two_attempts_with_arbitrary_clocks() {
    all("two, dishonest", 1_166_000, dishonest());
}

#[test]
fn two_attempts_and_a_node_that_forgets() {
    let one = NumbersConfig { losses: 1, ..honest() };
    all("two, honest, a loss", 130_000, one);
    all("two, honest, a loss, a repair", 391_000, NumbersConfig { repairs: true, ..one });
}

/// One node's counter is damaged, or was drawn from a clock that was far ahead.
#[test]
fn two_attempts_and_a_node_whose_numbers_are_far_ahead() {
    let ahead = NumbersConfig { last: [1, 1, 200], ..honest() };
    all("two, honest, far ahead", 216_000, NumbersConfig { limits: true, ..ahead });
    let ahead = NumbersConfig { last: [0, 1, 200], proposals: [2, 3, 0], ..honest() };
    all("two, honest, far ahead, proposals", 21_000, ahead);
    // A clock that stepped back leaves a majority ahead, which goes on.
    all("two, honest, two far ahead", 51_000, NumbersConfig { last: [0, 200, 201], ..honest() });
}

#[test]
fn two_attempts_as_far_as_time_permits() {
    let states = scale(150_000, 20_000_000);
    let limits = NumbersConfig { limits: true, ..dishonest() };
    some("two, dishonest, time limits", limits, states);
    let two = NumbersConfig { losses: 2, repairs: true, ..honest() };
    some("two, honest, two losses, repairs", two, states);
    let two = NumbersConfig { losses: 2, repairs: true, ..dishonest() };
    some("two, dishonest, two losses, repairs", two, states);
}

/// All there is when time is honest, in a soak.
#[test]
fn three_attempts_as_far_as_time_permits() {
    let states = scale(150_000, 20_000_000);
    let three = NumbersConfig { attempts: 3, ..honest() };
    if scale(0, 1) == 0 {
        some("three, honest", three, states);
    } else {
        all("three, honest", 2_282_000, three);
    }
    some("three, dishonest", NumbersConfig { attempts: 3, ..dishonest() }, states);
}
