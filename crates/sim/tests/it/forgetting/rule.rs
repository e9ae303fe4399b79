//! The rule as it is: no two hold the lock, in any state there is.

use tenure_sim::{ForgettingConfig, ForgettingFault as Fault, Limits, Report, search_forgetting};
use tenure_testkit::scale;

/// Searches all there is of a world, and wants no two holders. A search that sees less than it did
/// when this was written has lost a kind of step.
fn all(name: &str, at_least: usize, config: &ForgettingConfig) {
    let report = look(name, config, usize::MAX);
    assert!(!report.capped, "all of them: {report}");
    assert!(report.states >= at_least, "at least {at_least} states: {report}");
}

/// Searches a part of a world, and in a soak all there is.
fn some(name: &str, at_least: usize, config: &ForgettingConfig) {
    if scale(0, 1) == 0 {
        look(name, config, 60_000);
    } else {
        all(name, at_least, config);
    }
}

fn look(name: &str, config: &ForgettingConfig, states: usize) -> Report {
    let limits = Limits { states, liveness_every: 101, ..Limits::default() };
    let report = search_forgetting(config, limits);
    println!("{name}: {report}");
    assert!(report.found.is_none(), "{name}: {report}");
    report
}

fn with(faults: &[Fault], budget: u8) -> ForgettingConfig {
    ForgettingConfig { faults: faults.to_vec(), budget, ..ForgettingConfig::default() }
}

const ANY: [Fault; 5] =
    [Fault::RestartEmpty, Fault::RestartKept, Fault::Replicated, Fault::Flushed, Fault::MarkerLost];

#[test]
fn one_fault_of_any_kind_never_makes_two_holders() {
    all("any one fault", 229_000, &with(&ANY, 1));
}

#[test]
fn one_fault_and_resumed_leases_never_make_two_holders() {
    let returns = ForgettingConfig { returns: true, ..with(&ANY, 1) };
    some("any one fault, leases come back", 911_000, &returns);
}

#[test]
fn two_empty_restarts_never_make_two_holders() {
    some("two empty restarts", 454_000, &with(&[Fault::RestartEmpty], 2));
}

#[test]
fn an_empty_restart_with_a_clock_step_never_makes_two_holders() {
    let faults = [Fault::RestartEmpty, Fault::ClockForward];
    some("an empty restart and a step", 494_000, &with(&faults, 2));
}

#[test]
fn two_faults_one_span_apart_never_make_two_holders() {
    some("two faults of any kind", 8_945_000, &ForgettingConfig { gap: 3, ..with(&ANY, 2) });
}

#[test]
fn a_durable_server_that_opens_at_once_never_makes_two_holders() {
    let faults = [Fault::RestartEmpty, Fault::RestartKept, Fault::Replicated];
    let durable = ForgettingConfig { is_durable: true, gap: 3, ..with(&faults, 2) };
    some("durable", 4_292_000, &durable);
}

/// Locks of one server need not have one longest TTL.
#[test]
fn a_span_above_the_ttl_never_makes_two_holders() {
    let config = ForgettingConfig { span: 3, ..with(&[Fault::RestartEmpty, Fault::Flushed], 1) };
    some("a span above the TTL", 102_000, &config);
}
