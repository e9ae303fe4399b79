//! Rounds of votes, one by one.

use super::*;
use crate::{Held, Holder, TtlLeft};

fn ttl() -> Ttl {
    Ttl::new(Duration::from_secs(10)).unwrap()
}

fn n(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn granted(number: u64) -> Vote {
    Vote::Granted(n(number))
}

fn held(ms: u64) -> Held {
    let ttl_left = TtlLeft::Ends(Duration::from_millis(ms));
    Held { holder: Holder::from_value(b"x"), ttl_left }
}

fn refused() -> Vote {
    Vote::Refused { held: held(500), last_number: None }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

fn attempt(nodes: usize) -> Attempt {
    let mut attempt = Attempt::new(at(0), Quorum::new(nodes).unwrap(), ttl(), Duration::ZERO);
    let asked: Vec<_> = std::iter::from_fn(|| attempt.poll_ask()).collect();
    assert_eq!(asked, (0..nodes).map(NodeId).collect::<Vec<_>>());
    attempt
}

/// The votes come one after the other, at 1 ms, 2 ms and so on.
fn round(nodes: usize, votes: &[Vote]) -> Attempt {
    let mut attempt = attempt(nodes);
    for (index, vote) in votes.iter().enumerate() {
        attempt.handle_vote(at(1 + index as u64), NodeId(index), vote.clone());
    }
    attempt
}

fn confirms(attempt: &mut Attempt) -> Vec<(usize, u64)> {
    let next = || attempt.poll_confirm().map(|(node, number)| (node.0, number.get()));
    std::iter::from_fn(next).collect()
}

fn ours(number: u64) -> Option<Confirmation> {
    Some(Confirmation::Ours(n(number)))
}

fn acquired(number: u64) -> Option<Outcome> {
    Some(Outcome::Acquired(n(number)))
}

fn unknown(granted: usize, needed: usize) -> Option<Outcome> {
    Some(Outcome::Unknown { granted, needed })
}

#[test]
fn one_node_decides_alone() {
    assert_eq!(round(1, &[granted(7)]).outcome(), acquired(7));
    assert_eq!(round(1, &[refused()]).outcome(), Some(Outcome::Held(held(500))));
    assert_eq!(round(1, &[Vote::Unknown]).outcome(), unknown(0, 1));
    assert_eq!(confirms(&mut round(1, &[granted(7)])), []);
}

#[test]
fn equal_numbers_of_a_majority_need_no_confirmation() {
    for nodes in 1..=6 {
        let needed = Quorum::new(nodes).unwrap().needed();
        let votes = vec![granted(7); needed];
        assert_eq!(round(nodes, &votes).outcome(), acquired(7), "{nodes}");
        assert_eq!(round(nodes, &votes[1..]).outcome(), None, "{nodes}");
    }
    // A larger number of another node is in nobody's way: it is not counted.
    assert_eq!(round(3, &[granted(9), granted(7), granted(7)]).outcome(), acquired(7));
}

#[test]
fn unequal_numbers_wait_for_an_equal_one_for_one_round() {
    let mut attempt = round(3, &[granted(6), granted(7)]);
    assert_eq!(attempt.poll_timer(), Some(at(4)), "the second came at 2 ms");
    assert_eq!(confirms(&mut attempt), []);
    let mut late = attempt.clone();
    attempt.handle_vote(at(3), NodeId(2), granted(6));
    assert_eq!(attempt.outcome(), acquired(6));
    late.handle_time(at(4));
    assert_eq!(confirms(&mut late), [(0, 7), (2, 7)]);
    late.handle_confirmed(at(5), NodeId(0), ours(7));
    assert_eq!(late.outcome(), acquired(7));
}

#[test]
fn confirmations_start_at_once_when_no_equal_number_can_come() {
    let mut attempt = round(3, &[granted(5), granted(6), granted(7)]);
    assert_eq!(confirms(&mut attempt), [(0, 7), (1, 7)]);
    attempt.handle_confirmed(at(5), NodeId(1), ours(7));
    assert_eq!(attempt.outcome(), acquired(7));
    let mut attempt = round(3, &[granted(5), refused(), granted(7)]);
    assert_eq!(confirms(&mut attempt), [(0, 7)]);
}

/// A confirmation counts only while the key is ours: another may have had the number.
#[test]
fn a_node_that_lost_the_key_does_not_count() {
    for (answer, expected) in [
        (Confirmation::Gone, unknown(1, 2)),
        (Confirmation::Other(held(70)), Some(Outcome::Held(held(70)))),
    ] {
        let mut attempt = round(3, &[granted(5), refused(), granted(7)]);
        assert_eq!(confirms(&mut attempt), [(0, 7)]);
        attempt.handle_confirmed(at(5), NodeId(0), Some(answer));
        assert_eq!(attempt.outcome(), expected);
        assert_eq!((attempt.holds(NodeId(0)), attempt.holds(NodeId(2))), (false, true));
    }
}

/// The third node's grant was lost, and was above the largest number that arrived.
#[test]
fn a_number_whose_reply_was_lost_may_be_larger() {
    let mut attempt = round(3, &[granted(5), granted(7), Vote::Unknown]);
    assert_eq!(confirms(&mut attempt), [(0, 7), (2, 7)]);
    attempt.handle_confirmed(at(5), NodeId(2), ours(9));
    assert_eq!(attempt.outcome(), None);
    attempt.handle_confirmed(at(6), NodeId(0), None);
    assert_eq!(confirms(&mut attempt), [(0, 9), (1, 9)]);
    attempt.handle_confirmed(at(7), NodeId(1), ours(9));
    assert_eq!(attempt.outcome(), acquired(9));
    assert_eq!(attempt.seen(), Some(n(9)));
}

#[test]
fn the_number_of_a_late_grant_may_be_larger() {
    let mut attempt = round(3, &[granted(5), granted(7)]);
    attempt.handle_time(at(4));
    assert_eq!(confirms(&mut attempt), [(0, 7), (2, 7)]);
    attempt.handle_vote(at(5), NodeId(2), granted(9));
    attempt.handle_confirmed(at(6), NodeId(0), Some(Confirmation::Gone));
    assert_eq!(confirms(&mut attempt), [(1, 9)]);
    attempt.handle_confirmed(at(7), NodeId(2), ours(9));
    attempt.handle_confirmed(at(8), NodeId(1), ours(9));
    assert_eq!(attempt.outcome(), acquired(9));
}

#[test]
fn there_are_two_rounds_of_confirmations_and_no_third() {
    let mut attempt = round(3, &[granted(5), granted(7), Vote::Unknown]);
    for _ in 0..2 {
        assert_eq!(confirms(&mut attempt), [(0, 7), (2, 7)]);
        attempt.handle_confirmed(at(5), NodeId(0), None);
        attempt.handle_confirmed(at(5), NodeId(2), None);
    }
    assert_eq!(confirms(&mut attempt), []);
    assert_eq!(attempt.outcome(), unknown(2, 2));
}

#[test]
fn an_unknown_vote_is_neither_a_grant_nor_a_refusal() {
    assert_eq!(round(3, &[granted(1), refused(), Vote::Unknown]).outcome(), unknown(1, 2));
    let held = Some(Outcome::Held(held(500)));
    assert_eq!(round(3, &[refused(), refused(), Vote::Unknown]).outcome(), held);
    assert_eq!(round(3, &[granted(3), granted(3), Vote::Unknown]).outcome(), acquired(3));
}

/// All votes distinguish contention from an outage, however early the failure is certain.
#[test]
fn an_attempt_is_decided_as_soon_as_certain() {
    let held = Some(Outcome::Held(held(500)));
    assert_eq!(round(5, &[refused(), refused()]).outcome(), None);
    assert_eq!(round(5, &[refused(), refused(), refused()]).outcome(), held);
    // Three unknown: no majority, and three refusals cannot come any more either.
    let unknowns = vec![Vote::Unknown; 3];
    assert_eq!(round(5, &unknowns).outcome(), unknown(0, 3));
    // No majority any more; but the last two may say that another holds the lock.
    let mixed = [refused(), Vote::Unknown, Vote::Unknown];
    let mut attempt = round(5, &mixed);
    assert_eq!(attempt.outcome(), None);
    attempt.handle_vote(at(9), NodeId(3), refused());
    assert_eq!(attempt.outcome(), None);
    attempt.handle_vote(at(9), NodeId(4), refused());
    assert_eq!(attempt.outcome(), held);
}

#[test]
fn an_even_split_is_contention() {
    let half = [granted(1), granted(1), refused(), refused()];
    assert_eq!(round(4, &half).outcome(), Some(Outcome::Held(held(500))));
    assert_eq!(round(4, &half[..3]).outcome(), None);
    assert_eq!(round(2, &[granted(1), refused()]).outcome(), Some(Outcome::Held(held(500))));
    let third = [granted(1), refused(), refused()];
    assert_eq!(round(3, &third).outcome(), Some(Outcome::Held(held(500))));
}

#[test]
fn votes_are_split_when_nobody_may_have_a_majority() {
    let by_under = |name: &[u8], number| {
        let value = [b"0123456789abcdef0123456789abcdef@", name].concat();
        let held = Held { holder: Holder::from_value(&value), ttl_left: TtlLeft::Never };
        Vote::Refused { held, last_number: Some(n(number)) }
    };
    let by = |name| by_under(name, 7);
    let theirs = |number| Vote::Refused { held: held(1), last_number: Some(n(number)) };
    for (votes, is_split) in [
        (vec![by(b"x"), by(b"x"), by(b"x")], false),
        (vec![by(b"x"), Vote::Unknown, Vote::Unknown], false),
        (vec![by(b"x"), by(b"y")], true),
        (vec![theirs(1), theirs(2)], false),
        (vec![by(b"x"), by_under(b"x", 8)], true),
        (vec![granted(1), by(b"x"), by(b"x")], false),
        (vec![granted(1), by(b"x"), Vote::Unknown], true),
        (vec![granted(1), by(b"x"), by_under(b"x", 8)], true),
        (vec![by(b"x"), by_under(b"x", 8), by(b"x")], false),
        (vec![granted(1), Vote::Unknown, Vote::Unknown], false),
        (vec![Vote::Unknown; 3], false),
    ] {
        assert_eq!(round(3, &votes).is_split(), is_split, "{votes:?}");
    }
}

/// Of three refusals by three nodes one may stay: the second to end is the one to wait for.
#[test]
fn the_reported_refusal_is_the_one_whose_end_frees_a_majority() {
    let refused = |ms| Vote::Refused { held: held(ms), last_number: Some(n(ms)) };
    let attempt = round(3, &[refused(900), refused(100)]);
    assert_eq!(attempt.outcome(), Some(Outcome::Held(held(100))));
    let never = Held { holder: Holder::from_value(b"y"), ttl_left: TtlLeft::Never };
    let forever = Vote::Refused { held: never.clone(), last_number: None };
    assert_eq!(round(1, &[forever]).outcome(), Some(Outcome::Held(never)));
    assert_eq!(attempt.seen(), Some(n(900)), "the next attempt proposes more");
}

#[test]
fn grants_that_arrive_after_the_validity_do_not_count() {
    // 10 s less 1 % less 2 ms.
    for (ms, expected) in [(9_897, acquired(1)), (9_898, Some(Outcome::TooLate))] {
        let mut attempt = attempt(1);
        attempt.handle_vote(at(ms), NodeId(0), granted(1));
        assert_eq!(attempt.outcome(), expected);
        assert_eq!(attempt.poll_undo(), Some(NodeId(0)));
    }
    // Nor do confirmations, and nobody waits for them.
    let mut attempt = round(3, &[granted(5), refused(), granted(7)]);
    assert_eq!(confirms(&mut attempt), [(0, 7)]);
    assert_eq!(attempt.poll_timer(), Some(at(9_898)));
    let mut silent = attempt.clone();
    attempt.handle_confirmed(at(9_898), NodeId(0), ours(7));
    assert_eq!(attempt.outcome(), Some(Outcome::TooLate));
    silent.handle_time(at(9_898));
    assert_eq!((silent.outcome(), silent.poll_timer()), (Some(Outcome::TooLate), None));
}

#[test]
fn a_grant_with_too_little_left_does_not_count() {
    let wanted = Duration::from_millis(9_000);
    let mut attempt = Attempt::new(at(0), Quorum::ONE, ttl(), wanted);
    let node = attempt.poll_ask().unwrap();
    attempt.handle_vote(at(898), node, granted(1));
    assert_eq!(attempt.outcome(), Some(Outcome::TooLate));
}

#[test]
fn all_but_those_that_refused_are_undone() {
    let mut attempt = round(3, &[granted(1), refused(), Vote::Unknown]);
    let undone: Vec<_> = std::iter::from_fn(|| attempt.poll_undo()).collect();
    assert_eq!(undone, [NodeId(0), NodeId(2)]);
    // A node that was asked and has not answered is undone too; one not asked is not.
    let mut attempt = Attempt::new(at(0), Quorum::new(3).unwrap(), ttl(), Duration::ZERO);
    let asked = attempt.poll_ask();
    assert_eq!((attempt.poll_undo(), attempt.poll_undo()), (asked, None));
}

#[test]
fn an_outcome_is_final_and_late_grants_are_reported() {
    let mut attempt = round(1, &[Vote::Unknown]);
    attempt.handle_vote(at(2), NodeId(0), granted(1));
    assert_eq!(attempt.outcome(), unknown(0, 1));
    assert_eq!((attempt.holds(NodeId(0)), attempt.poll_undo()), (true, Some(NodeId(0))));
    let mut attempt = round(3, &[granted(7), granted(7)]);
    assert!(!attempt.holds(NodeId(2)));
    attempt.handle_vote(at(5), NodeId(2), granted(9));
    assert_eq!(attempt.outcome(), acquired(7));
    assert!(attempt.holds(NodeId(2)), "it belongs to the lease");
    assert_eq!(attempt.seen(), Some(n(9)), "what a release may leave behind");
    assert_eq!(confirms(&mut attempt), []);
}

#[test]
fn a_vote_is_final() {
    let mut attempt = round(3, &[refused()]);
    attempt.handle_vote(at(2), NodeId(0), granted(1));
    assert!(!attempt.holds(NodeId(0)));
    attempt.handle_vote(at(2), NodeId(7), granted(1));
    assert_eq!(attempt.outcome(), None);
}
