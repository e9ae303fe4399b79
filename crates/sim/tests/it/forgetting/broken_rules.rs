//! Simpler rules: each lets two clients hold the lock, by a shortest way.

use tenure_sim::{
    ForgettingConfig, ForgettingFault as Fault, ForgettingRule as Rule, Kind, Limits,
    search_forgetting,
};

/// Searches under a rule, and wants two holders after at most the steps of the first run. The
/// same search under the chosen rule must find nothing.
fn refuted(rule: Rule, steps: usize, config: &ForgettingConfig) {
    let limits = Limits { states: 2_000_000, liveness_every: 0, ..Limits::default() };
    let report = search_forgetting(&ForgettingConfig { rule, ..config.clone() }, limits);
    println!("{rule:?}, {:?}: {report}", config.faults);
    let found = report.found.as_ref().expect("two holders");
    assert_eq!(found.violation.kind(), Kind::TwoBelieve);
    assert!(found.steps <= steps, "{} steps", found.steps);
    let sound = search_forgetting(config, Limits { states: report.states, ..limits });
    assert!(sound.found.is_none(), "under the chosen rule: {sound}");
}

fn with(faults: &[Fault], budget: u8) -> ForgettingConfig {
    ForgettingConfig { faults: faults.to_vec(), budget, ..ForgettingConfig::default() }
}

#[test]
fn an_uptime_is_no_proof_once_a_clock_steps() {
    refuted(Rule::Uptime, 9, &with(&[Fault::RestartEmpty, Fault::ClockForward], 2));
}

#[test]
fn an_uptime_shows_neither_a_replication_nor_a_flush() {
    refuted(Rule::Uptime, 8, &with(&[Fault::Replicated], 1));
    refuted(Rule::Uptime, 8, &with(&[Fault::Flushed], 1));
}

#[test]
fn the_memory_of_one_client_does_not_help_a_new_one() {
    refuted(Rule::RunMemory, 9, &with(&[Fault::RestartEmpty, Fault::ClockForward], 2));
    refuted(Rule::RunMemory, 8, &with(&[Fault::Replicated], 1));
    refuted(Rule::RunMemory, 8, &with(&[Fault::Flushed], 1));
}

#[test]
fn a_marker_without_an_identity_is_copied_to_a_replica() {
    refuted(Rule::NoIdentity, 8, &with(&[Fault::Replicated], 1));
}

#[test]
fn a_run_id_alone_does_not_show_a_former_replica() {
    refuted(Rule::RunAlone, 20, &with(&[Fault::Replicated], 2));
}

#[test]
fn a_server_without_a_marker_is_not_necessarily_new() {
    refuted(Rule::MissingIsNew, 8, &with(&[Fault::RestartEmpty], 1));
    refuted(Rule::MissingIsNew, 8, &with(&[Fault::Flushed], 1));
}

#[test]
fn the_first_grant_must_not_write_the_marker() {
    refuted(Rule::FirstGrantWrites, 8, &with(&[Fault::RestartEmpty], 1));
}

#[test]
fn the_clock_of_the_server_alone_is_not_enough() {
    refuted(Rule::ServerClock, 12, &with(&[Fault::RestartEmpty, Fault::ClockForward], 2));
}

#[test]
fn renewals_of_a_closed_server_must_not_count() {
    refuted(Rule::AnyRenewal, 17, &with(&[Fault::RestartEmpty], 1));
}

fn returning(faults: &[Fault]) -> ForgettingConfig {
    ForgettingConfig { returns: true, ..with(faults, 1) }
}

#[test]
fn proofs_of_a_closed_server_must_not_count() {
    refuted(Rule::AnyProof, 20, &returning(&[Fault::Replicated]));
}

#[test]
fn resumptions_of_a_closed_server_must_not_count() {
    refuted(Rule::AnyResumption, 20, &returning(&[Fault::Replicated]));
}

/// The span is the longest TTL that anybody uses, and not less.
#[test]
fn a_span_below_the_ttl_is_too_short() {
    let limits = Limits { states: 2_000_000, liveness_every: 0, ..Limits::default() };
    let config = ForgettingConfig { ttl: 3, span: 2, ..with(&[Fault::RestartEmpty], 1) };
    let report = search_forgetting(&config, limits);
    println!("a span below the TTL: {report}");
    assert_eq!(report.found.expect("two holders").violation.kind(), Kind::TwoBelieve);
}
