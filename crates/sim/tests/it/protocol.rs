//! The protocol as it is: no rule is broken, in any state there is.

use tenure_sim::{Config, Faults, Limits, Report, search};
use tenure_testkit::scale;

/// Searches all there is of a world, and wants no rule broken. A search that sees less than it did
/// when this was written has lost a kind of step.
fn all(name: &str, at_least: usize, config: Config) {
    let report = look(name, config, usize::MAX);
    assert!(!report.capped, "all of them: {report}");
    assert!(report.states >= at_least, "at least {at_least} states: {report}");
}

/// Searches as much as time permits.
fn some(name: &str, config: Config, states: usize) {
    let report = look(name, config, states);
    assert!(report.states >= states, "{report}");
}

fn look(name: &str, config: Config, states: usize) -> Report {
    let every = scale(50, 20);
    let limits = Limits { states, liveness_every: every, ..Limits::default() };
    let report = search(config, limits);
    println!("{name}: {report}");
    assert!(report.found.is_none(), "{name}: {report}");
    report
}

const FAULTS: Faults =
    Faults { ticks: Some(0), disconnects: 0, crashes: 0, deletes: 0, renewals: 0, resends: 0 };

const TWO: Config = Config {
    clients: 2,
    attempts: 1,
    together: false,
    most_served: 64,
    cancels: true,
    by_force: false,
    keeps: false,
    pushes_first: true,
    patience: 20,
    faults: FAULTS,
    flaw: None,
};

#[test]
fn two_clients_for_any_time() {
    let faults = Faults { ticks: None, crashes: 1, renewals: 1, ..FAULTS };
    all("two, a crash, a renewal, any time", 300_000, Config { faults, ..TWO });
}

#[test]
fn two_clients_and_a_connection_that_ends() {
    let faults = Faults { ticks: Some(3), disconnects: 1, ..FAULTS };
    all("two, a disconnect, 3 ticks", 450_000, Config { faults, ..TWO });
    let faults = Faults { ticks: Some(2), disconnects: 1, renewals: 1, ..FAULTS };
    all("two, a disconnect, a renewal, 2 ticks", 310_000, Config { faults, ..TWO });
}

#[test]
fn two_clients_and_two_connections_that_end() {
    let faults = Faults { ticks: Some(1), disconnects: 2, ..FAULTS };
    all("two, 2 disconnects, 1 tick", 350_000, Config { faults, ..TWO });
    let faults = Faults { disconnects: 2, crashes: 1, ..FAULTS };
    all("two, 2 disconnects, a crash", 140_000, Config { faults, ..TWO });
}

#[test]
fn two_clients_and_several_faults() {
    let faults = Faults { ticks: Some(2), disconnects: 1, crashes: 1, ..FAULTS };
    let config = Config { faults, most_served: 1, ..TWO };
    all("two, a disconnect, a crash, 2 ticks, one served at a time", 280_000, config);
    let faults = Faults { ticks: Some(1), disconnects: 1, deletes: 1, ..FAULTS };
    all("two, a disconnect, a DEL, 1 tick", 85_000, Config { faults, ..TWO });
}

#[test]
fn two_clients_that_come_twice() {
    let faults = Faults { ticks: Some(2), ..FAULTS };
    all("two, twice each, 2 ticks", 520_000, Config { attempts: 2, faults, ..TWO });
    let faults = Faults { ticks: Some(1), crashes: 1, ..FAULTS };
    all("two, twice each, a crash, 1 tick", 140_000, Config { attempts: 2, faults, ..TWO });
}

#[test]
fn two_clients_with_two_waiters_each() {
    for pushes_first in [true, false] {
        let config = Config { attempts: 2, together: true, pushes_first, ..TWO };
        all("two, two at a time, no time", 72_000, config);
    }
}

#[test]
fn two_clients_that_take_the_lock_by_force() {
    let config = Config { by_force: true, ..TWO };
    let faults = Faults { disconnects: 1, ..FAULTS };
    all("two, by force, a disconnect", 18_000, Config { faults, ..config });
    let faults = Faults { ticks: Some(1), disconnects: 1, ..FAULTS };
    all("two, by force, a disconnect, 1 tick", 95_000, Config { faults, ..config });
    let faults = Faults { disconnects: 2, ..FAULTS };
    all("two, by force, 2 disconnects", 200_000, Config { faults, ..config });
}

#[test]
fn two_clients_that_resume_confirm_and_repair() {
    let config = Config { keeps: true, ..TWO };
    let faults = Faults { disconnects: 1, deletes: 1, renewals: 1, ..FAULTS };
    all("two, a disconnect, a DEL, 1 request of a holder", 90_000, Config { faults, ..config });
    let faults = Faults { ticks: Some(1), disconnects: 1, renewals: 1, ..FAULTS };
    all("two, a disconnect, 1 request of a holder, 1 tick", 104_000, Config { faults, ..config });
}

#[test]
fn three_clients() {
    let faults = Faults { ticks: Some(2), ..FAULTS };
    let config = Config { clients: 3, most_served: 1, faults, ..TWO };
    all("three, 2 ticks, one served at a time", 185_000, config);
    let faults = Faults { ticks: Some(1), crashes: 1, ..FAULTS };
    all("three, a crash, 1 tick", 53_000, Config { clients: 3, faults, ..TWO });
    let faults = Faults { disconnects: 1, ..FAULTS };
    all("three, a disconnect, no time", 108_000, Config { clients: 3, faults, ..TWO });
}

#[test]
fn three_clients_as_far_as_time_permits() {
    let states = scale(200_000, 5_000_000);
    let faults = Faults { ticks: Some(3), crashes: 1, ..FAULTS };
    let config = Config { clients: 3, most_served: 1, faults, ..TWO };
    some("three, a crash, 3 ticks, one served at a time", config, states);
    let faults = Faults { ticks: Some(2), disconnects: 1, ..FAULTS };
    some("three, a disconnect, 2 ticks", Config { clients: 3, faults, ..TWO }, states);
}

#[test]
fn many_faults_at_once_as_far_as_time_permits() {
    let states = scale(200_000, 5_000_000);
    let faults =
        Faults { ticks: Some(4), disconnects: 2, crashes: 1, deletes: 1, renewals: 1, resends: 0 };
    some("two, all faults", Config { faults, ..TWO }, states);
    let faults = Faults { ticks: Some(1), disconnects: 1, crashes: 1, ..FAULTS };
    let config = Config { attempts: 2, together: true, faults, ..TWO };
    some("two, two at a time, a disconnect, a crash", config, states);
}

/// Clients are all alike, so states that differ only in which is which are searched once.
#[test]
fn symmetry_reduction_leaves_nothing_out() {
    let faults = Faults { ticks: Some(1), crashes: 1, ..FAULTS };
    for (clients, faults) in [(2, Faults { disconnects: 1, ..faults }), (3, FAULTS)] {
        let config = Config { clients, faults, ..TWO };
        let limits = Limits { states: usize::MAX, liveness_every: 0, ..Limits::default() };
        let folded = search(config, limits);
        let plain = search(config, Limits { as_they_are: true, ..limits });
        println!("folded {folded}\nplain {plain}");
        let orders = (1..=usize::from(clients)).product::<usize>();
        assert!(plain.states <= folded.states * orders, "no state is lost");
        assert!(plain.states * 10 >= folded.states * orders * 9, "few are alike in themselves");
        assert_eq!(plain.depth, folded.depth);
    }
}
