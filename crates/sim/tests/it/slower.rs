//! What is only for speed: without it no rule is broken, and somebody waits longer.

use tenure_sim::{Config, Faults, Flaw, Kind, Limits, search};

const FAULTS: Faults =
    Faults { ticks: Some(0), disconnects: 0, crashes: 1, deletes: 0, renewals: 0, resends: 0 };

/// The ticks that somebody waits at worst, when nothing more goes wrong.
fn worst(config: Config, liveness_every: usize) -> u8 {
    let limits = Limits { liveness_every, ..Limits::default() };
    let report = search(config, limits);
    println!("{:?}: {report}", config.flaw);
    assert!(report.found.is_none() && !report.capped, "{report}");
    report.worst_ticks
}

fn without(flaw: Flaw, config: Config, liveness_every: usize) -> u8 {
    worst(Config { flaw: Some(flaw), ..config }, liveness_every)
}

#[test]
fn a_successor_watch_need_not_wait_for_the_full_ttl() {
    let faults = Faults { renewals: 1, ..FAULTS };
    let config = Config { clients: 3, cancels: false, faults, ..Config::default() };
    assert_eq!(worst(config, 1), 3, "as long as a renewed lease has left");
    assert_eq!(without(Flaw::NoSuccessorWatch, config, 1), 4);
}

/// One client has crashed with the lock and two more waiters; the other looks, and serves one of
/// those, who looks alive. It must know whom to suspect, and not wait a second for each place.
#[test]
fn a_caller_that_serves_another_becomes_its_successor_watch() {
    let config =
        Config { attempts: 3, together: true, cancels: false, faults: FAULTS, ..Config::default() };
    assert_eq!(worst(config, 25), 6);
    assert_eq!(without(Flaw::CallerIsNoSuccessorWatch, config, 25), 7);
}

#[test]
fn releasing_a_missing_key_serves_the_queue() {
    let faults = Faults { ticks: Some(2), crashes: 0, ..FAULTS };
    let config = Config { faults, ..Config::default() };
    let limits = Limits::default();
    for flaw in [None, Some(Flaw::ReleaseOfNoneServesNone)] {
        let report = search(Config { flaw, ..config }, limits);
        println!("{flaw:?}: {report}");
        assert!(report.found.is_none() && !report.capped, "{report}");
    }
}

/// Patience is what finds the difference above.
#[test]
fn a_wait_longer_than_the_limit_is_found() {
    let faults = Faults { renewals: 1, ..FAULTS };
    let config = Config { clients: 3, cancels: false, patience: 3, faults, ..Config::default() };
    let config = Config { flaw: Some(Flaw::NoSuccessorWatch), ..config };
    let found = search(config, Limits::default()).found.expect("somebody waits longer");
    assert_eq!(found.violation.kind(), Kind::Stuck);
}
