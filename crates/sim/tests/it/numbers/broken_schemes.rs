//! A search that cannot fail proves nothing: each way to get the numbers wrong must be found.

use tenure_sim::{Kind, Limits, NumbersConfig, NumbersFlaw, Timing, search_numbers};

/// Searches with a flaw, and wants this rule broken; by a shortest way, which may be no longer than
/// it was when this was written. The same search without the flaw must find nothing.
fn finds(kind: Kind, steps: usize, flaw: NumbersFlaw, config: NumbersConfig) {
    let limits = Limits { states: 1_500_000, liveness_every: 0, ..Limits::default() };
    let report = search_numbers(NumbersConfig { flaw: Some(flaw), ..config }, limits);
    println!("{flaw:?}: {report}");
    let found = report.found.as_ref().expect("a violation");
    assert_eq!(found.violation.kind(), kind);
    assert!(found.steps <= steps, "{} steps", found.steps);
    let sound = search_numbers(config, Limits { states: report.states, ..limits });
    assert!(sound.found.is_none(), "without the flaw: {sound}");
}

fn dishonest() -> NumbersConfig {
    NumbersConfig { timing: Timing::Dishonest, ..NumbersConfig::default() }
}

#[test]
fn the_largest_number_alone_gives_duplicates() {
    finds(Kind::SameNumber, 12, NumbersFlaw::NaiveMaximum, NumbersConfig::default());
}

/// What was written back where another holds the lock says nothing of that other's number.
#[test]
fn an_unconditional_write_back_gives_duplicates() {
    finds(Kind::SameNumber, 15, NumbersFlaw::UnconditionalWriteBack, NumbersConfig::default());
    finds(Kind::SameNumber, 14, NumbersFlaw::UnconditionalWriteBack, dishonest());
}

#[test]
fn counting_a_grant_whose_reply_was_lost_gives_duplicates() {
    finds(Kind::SameNumber, 16, NumbersFlaw::CountLostGrants, dishonest());
}

#[test]
fn the_middle_number_gives_duplicates() {
    finds(Kind::SameNumber, 14, NumbersFlaw::MiddleNumber, dishonest());
}

#[test]
fn without_a_bound_one_counter_spoils_the_others() {
    let config = NumbersConfig { last: [1, 1, 200], ..NumbersConfig::default() };
    finds(Kind::Spoiled, 7, NumbersFlaw::NoBound, config);
}

fn losing(losses: u8) -> NumbersConfig {
    NumbersConfig { losses, repairs: true, ..NumbersConfig::default() }
}

#[test]
fn a_restart_delay_alone_breaks_the_order_of_numbers() {
    finds(Kind::Order, 12, NumbersFlaw::NoQuarantine, losing(1));
}

/// An attempt that was confirmed before the loss is still to return when the others are read.
#[test]
fn a_repair_before_the_delay_has_passed_gives_duplicates() {
    let config = NumbersConfig { crashes: false, ..losing(1) };
    finds(Kind::SameNumber, 17, NumbersFlaw::EarlyRepair, config);
}
