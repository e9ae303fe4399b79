//! Random walks through worlds that are too large to search.

use tenure_sim::{Config, Faults, Flaw, walk};
use tenure_testkit::scale;

fn walks(name: &str, config: Config, seed: u64) {
    let walks = scale(10_000, 500_000);
    let report = walk(config, walks, 120, seed);
    println!("{name}: {walks} walks, {report}");
    assert!(report.found.is_none(), "{name}: {report}");
    assert!(report.states > walks * 20, "they lead somewhere: {report}");
}

const FAULTS: Faults =
    Faults { ticks: Some(10), disconnects: 3, crashes: 1, deletes: 0, renewals: 2, resends: 0 };

fn three() -> Config {
    Config { clients: 3, attempts: 2, faults: FAULTS, ..Config::default() }
}

#[test]
fn three_clients_that_come_twice() {
    walks("one at a time", three(), 1);
    walks("one served at a time", Config { most_served: 1, ..three() }, 2);
}

#[test]
fn three_clients_with_two_waiters_each() {
    let config = Config { together: true, most_served: 2, ..three() };
    walks("two at a time", config, 3);
    walks("replies first", Config { pushes_first: false, ..config }, 4);
}

#[test]
fn a_key_that_is_deleted() {
    let faults = Faults { deletes: 2, ..FAULTS };
    walks("with DEL", Config { faults, together: true, ..three() }, 5);
}

#[test]
fn four_clients() {
    walks("four", Config { clients: 4, ..three() }, 6);
}

/// Walks that cannot find what is wrong prove nothing.
#[test]
fn random_walks_find_flaws() {
    let flaws = [Flaw::NoTombstone, Flaw::BelieveMessage, Flaw::LowerTtl, Flaw::NoTicket];
    for flaw in flaws {
        let report = walk(Config { flaw: Some(flaw), ..three() }, 10_000, 120, 7);
        println!("{flaw:?}: {report}");
        assert!(report.found.is_some(), "{flaw:?}");
    }
}
