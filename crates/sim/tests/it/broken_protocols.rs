//! A search that cannot fail proves nothing: each way to get the protocol wrong must be found.

use tenure_sim::{Config, Faults, Flaw, Kind, Limits, search};

/// Searches with a flaw, and wants this rule broken; by a shortest way, which may be no longer than
/// it was when this was written.
fn finds(kind: Kind, steps: usize, flaw: Flaw, config: Config) {
    // Only a search that goes on from every state can find that a client waits forever.
    let liveness_every = usize::from(kind == Kind::Stuck);
    let limits =
        Limits { states: 1_000_000, liveness_every, seeking: Some(kind), ..Limits::default() };
    let report = search(Config { flaw: Some(flaw), ..config }, limits);
    println!("{flaw:?}: {report}");
    let found = report.found.as_ref().expect("a violation");
    assert_eq!(found.violation.kind(), kind);
    assert!(found.steps <= steps, "{} steps", found.steps);
    // The same search without the flaw must find nothing: it is the flaw that is found.
    let limits = Limits { states: report.states, seeking: None, ..limits };
    let sound = search(config, limits);
    assert!(sound.found.is_none(), "without the flaw: {sound}");
}

fn clients(clients: u8, faults: Faults) -> Config {
    Config { clients, faults, ..Config::default() }
}

const NONE: Faults =
    Faults { ticks: Some(0), disconnects: 0, crashes: 0, deletes: 0, renewals: 0, resends: 0 };

const ONE_CUT: Faults = Faults { disconnects: 1, ..NONE };

#[test]
fn without_a_tombstone_a_late_acquisition_holds_the_lock() {
    finds(Kind::LateHolder, 7, Flaw::NoTombstone, clients(1, ONE_CUT));
}

#[test]
fn without_a_tombstone_a_late_acquisition_joins_the_queue() {
    finds(Kind::LateWaiter, 9, Flaw::NoTombstone, clients(2, ONE_CUT));
}

#[test]
fn a_release_that_was_cut_off_must_leave_a_tombstone() {
    finds(Kind::LateHolder, 7, Flaw::StaleStanding, clients(1, ONE_CUT));
}

/// The bytes of an undone steal, or of an undone release by force, arrive late.
#[test]
fn forced_commands_must_obey_a_tombstone() {
    let by_force = |clients, faults| Config { by_force: true, ..self::clients(clients, faults) };
    finds(Kind::LateHolder, 6, Flaw::ForceIgnoresTombstone, by_force(1, ONE_CUT));
    finds(Kind::LateForce, 8, Flaw::ForceIgnoresTombstone, by_force(2, ONE_CUT));
}

#[test]
fn a_repeated_request_for_a_key_needs_a_tombstone_too() {
    let faults = Faults { disconnects: 1, renewals: 1, deletes: 1, ..NONE };
    let config = Config { keeps: true, ..clients(1, faults) };
    finds(Kind::LateHolder, 11, Flaw::RepairIsForgotten, config);
}

#[test]
fn a_waiter_that_gives_up_must_hand_its_grant_on() {
    finds(Kind::LateHolder, 6, Flaw::CancelOnlyDequeues, clients(2, NONE));
}

#[test]
fn a_message_is_not_a_lease() {
    let faults = Faults { ticks: Some(1), ..NONE };
    finds(Kind::Belief, 9, Flaw::BelieveMessage, clients(2, faults));
}

#[test]
fn validity_counts_from_the_request() {
    let faults = Faults { ticks: Some(1), ..NONE };
    finds(Kind::Belief, 4, Flaw::BelieveFromReply, clients(1, faults));
}

#[test]
fn acquiring_again_must_not_lower_the_ttl() {
    let faults = Faults { disconnects: 1, renewals: 1, ..NONE };
    finds(Kind::Belief, 9, Flaw::LowerTtl, clients(1, faults));
}

#[test]
fn every_waiter_must_poll() {
    let faults = Faults { crashes: 1, ..NONE };
    finds(Kind::Stuck, 7, Flaw::OnlyHeadPolls, clients(3, faults));
}

#[test]
fn a_waiter_must_bring_its_ticket_back() {
    let faults = Faults { ticks: Some(3), ..NONE };
    finds(Kind::Place, 12, Flaw::NoTicket, clients(3, faults));
}

#[test]
fn a_waiter_must_send_one_request_at_a_time() {
    let faults = Faults { ticks: Some(3), resends: 1, ..NONE };
    finds(Kind::Place, 12, Flaw::Resend, Config { cancels: false, ..clients(3, faults) });
}

#[test]
fn a_waiter_must_poll_after_a_reconnect() {
    finds(Kind::Stuck, 2, Flaw::NoPollAfterReconnect, clients(1, ONE_CUT));
}

#[test]
fn the_reply_more_means_to_ask_again() {
    let faults = Faults { ticks: Some(2), crashes: 1, ..NONE };
    let config = Config { most_served: 1, ..clients(2, faults) };
    finds(Kind::Stuck, 8, Flaw::MoreIsForgotten, config);
}
