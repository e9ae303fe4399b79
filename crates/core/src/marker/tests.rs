//! The rule, case by case.

use super::*;

const G: u64 = 30_302;

fn check() -> MarkerCheck {
    let mode = MarkerMode::Check;
    MarkerCheck { span_ms: G, client_ms: 5_000, database: 0, is_durable: false, mode }
}

fn server(replid: &str, run_id: &str) -> ServerIdentity {
    let (replid, run_id) = (replid.to_owned(), run_id.to_owned());
    ServerIdentity { replid, run_id, has_second_replid: false }
}

/// What checks at these times of server and client come to, on a server with this marker.
fn visit(
    marker: &mut Option<String>,
    check: MarkerCheck,
    server: &ServerIdentity,
    now_ms: u64,
) -> Eligibility {
    let found = marker.as_ref().map_or(MarkerFound::Nothing, |t| MarkerFound::Text(t.as_bytes()));
    let (eligibility, written) = check.judge(found, Some(server), now_ms);
    if let Some(written) = written {
        *marker = Some(written);
    }
    eligibility
}

fn closed(cause: MarkerCause, left: u64) -> Eligibility {
    Eligibility::Closed(Closure::Forgetful(cause, Duration::from_millis(left)))
}

#[test]
fn a_server_without_a_marker_is_closed_until_both_clocks_have_passed() {
    let (mut marker, a) = (None, server("a", "1"));
    let at = |client_ms| MarkerCheck { client_ms, ..check() };
    assert_eq!(visit(&mut marker, at(5_000), &a, 1_000), closed(MarkerCause::New, G));
    // The server's clock was set forward by an hour, and that of its clients was not.
    assert_eq!(visit(&mut marker, at(5_001), &a, 3_601_000), closed(MarkerCause::New, G - 1));
    // The other way round.
    assert_eq!(visit(&mut marker, at(9_000_000), &a, 2_000), closed(MarkerCause::New, G - 1_000));
    let both = at(5_000 + G);
    assert_eq!(visit(&mut marker, both, &a, 999 + G), closed(MarkerCause::New, 1));
    assert_eq!(visit(&mut marker, both, &a, 1_000 + G), Eligibility::Eligible);
    // For locks of this span it stays open, whatever the clocks do then.
    assert_eq!(visit(&mut marker, at(0), &a, 0), Eligibility::Eligible);
}

#[test]
fn a_clock_that_was_ahead_causes_no_second_wait() {
    let (mut marker, a) = (None, server("a", "1"));
    let at = |client_ms| MarkerCheck { client_ms, ..check() };
    _ = visit(&mut marker, at(7_000_000), &a, 9_000_000);
    assert_eq!(visit(&mut marker, at(100), &a, 200), closed(MarkerCause::New, G));
    assert_eq!(visit(&mut marker, at(100 + G), &a, 200 + G), Eligibility::Eligible);
}

#[test]
fn another_identity_or_database_closes_it_and_the_longest_span_is_kept() {
    let a = server("a", "1");
    let long = MarkerCheck { span_ms: 10 * G, ..check() };
    let mut opened = None;
    _ = visit(&mut opened, MarkerCheck { mode: MarkerMode::Open, ..long }, &a, 0);
    assert_eq!(visit(&mut opened, check(), &a, 0), Eligibility::Eligible);
    let other_database = MarkerCheck { database: 1, ..check() };
    for (check, server) in
        [(check(), server("b", "1")), (check(), server("b", "2")), (other_database, a)]
    {
        let closure = closed(MarkerCause::Changed, 10 * G);
        assert_eq!(visit(&mut opened.clone(), check, &server, 0), closure);
    }
    let damaged = || Some("open 1 2 3".to_owned());
    let closure = closed(MarkerCause::Changed, G);
    assert_eq!(visit(&mut damaged(), check(), &server("a", "1"), 0), closure);
}

/// It is open for every span, and still it writes down the longest that it was open for: that much
/// of locks it may have forgotten when it has changed.
#[test]
fn the_longest_span_is_kept_by_a_server_that_is_open_for_it_already() {
    let (mut marker, a) = (None, server("a", "1"));
    let by_hand = MarkerCheck { mode: MarkerMode::Open, ..check() };
    assert_eq!(visit(&mut marker, by_hand, &a, 0), Eligibility::Opened);
    let long = MarkerCheck { span_ms: 10 * G, ..check() };
    assert_eq!(visit(&mut marker, long, &a, 0), Eligibility::Eligible);
    let closure = closed(MarkerCause::Changed, 10 * G);
    assert_eq!(visit(&mut marker, check(), &server("b", "2"), 0), closure);
}

/// Its last word may be a part of a longer number.
#[test]
fn a_marker_that_ends_early_opens_nothing() {
    let mut marker = Some("0 a 9999999 9999999".to_owned());
    let closure = closed(MarkerCause::Changed, G);
    assert_eq!(visit(&mut marker, check(), &server("a", "1"), 0), closure);
}

/// A lock that needs less is not made to wait for one that needs more, nor the other way round.
#[test]
fn each_lock_waits_for_its_own_span_on_a_server_that_lost_its_marker() {
    let (mut marker, a) = (None, server("a", "1"));
    let at = |span_ms, client_ms| MarkerCheck { span_ms, client_ms, ..check() };
    assert_eq!(visit(&mut marker, at(100, 0), &a, 0), closed(MarkerCause::New, 100));
    assert_eq!(visit(&mut marker, at(900, 50), &a, 50), closed(MarkerCause::New, 850));
    assert_eq!(visit(&mut marker, at(100, 100), &a, 100), Eligibility::Eligible);
    assert_eq!(visit(&mut marker, at(900, 100), &a, 100), closed(MarkerCause::New, 800));
    assert_eq!(visit(&mut marker, at(900, 900), &a, 900), Eligibility::Eligible);
}

#[test]
fn only_a_restart_opens_a_durable_server_at_once() {
    let durable = MarkerCheck { is_durable: true, ..check() };
    let mut opened = None;
    let by_hand = MarkerCheck { mode: MarkerMode::Open, ..check() };
    _ = visit(&mut opened, by_hand, &server("a", "1"), 0);
    let restarted = server("b", "2");
    let continued = ServerIdentity { has_second_replid: true, ..server("b", "2") };
    let was_replica = server("b", "1");
    assert_eq!(visit(&mut opened.clone(), durable, &restarted, 0), Eligibility::Eligible);
    for (check, server) in [(check(), restarted), (durable, continued), (durable, was_replica)] {
        let closure = closed(MarkerCause::Changed, G);
        assert_eq!(visit(&mut opened.clone(), check, &server, 0), closure);
    }
    let (mut emptied, b) = (None, server("b", "2"));
    assert_eq!(visit(&mut emptied, durable, &b, 0), closed(MarkerCause::New, G));
    // While it is closed a restart does not open it, nor does it begin again.
    let later = MarkerCheck { client_ms: 6_000, ..durable };
    assert_eq!(
        visit(&mut emptied, later, &server("c", "3"), 1_000),
        closed(MarkerCause::New, G - 1_000)
    );
}

#[test]
fn opening_by_hand_needs_a_missing_marker() {
    let by_hand = MarkerCheck { mode: MarkerMode::Open, ..check() };
    let (mut marker, a) = (None, server("a", "1"));
    assert_eq!(visit(&mut marker, check(), &a, 0), closed(MarkerCause::New, G));
    assert_eq!(visit(&mut marker, by_hand, &a, 0), Eligibility::Opened);
    assert_eq!(visit(&mut marker, by_hand, &a, 0), Eligibility::Eligible);
    assert_eq!(visit(&mut marker, by_hand, &server("b", "1"), 0), closed(MarkerCause::Changed, G));
}

#[test]
fn peeking_writes_nothing() {
    let peek = MarkerCheck { mode: MarkerMode::Peek, ..check() };
    let answer = peek.judge(MarkerFound::Nothing, Some(&server("a", "1")), 0);
    assert_eq!(answer, (closed(MarkerCause::New, G), None));
}

#[test]
fn an_unreadable_marker_is_closed_and_left_alone() {
    let unusable = check().judge(MarkerFound::OtherType, Some(&server("a", "1")), 0);
    assert_eq!(unusable, (Eligibility::Closed(Closure::Unusable), None));
    let hidden = check().judge(MarkerFound::Nothing, None, 0);
    assert_eq!(hidden, (Eligibility::Closed(Closure::Hidden), None));
}

#[test]
fn a_marker_is_read_as_it_is_written() {
    let text = "0 a0 1 2 3 changed 1f 9007199254740991 9";
    assert_eq!(Marker::read(text.as_bytes()).unwrap().to_string(), text);
    for bad in [
        "",
        "0 a0 1 2 3 open 1f 8 9",
        "0 a0 1 2 3 new 1f 8",
        "0 a0 1 2 3 new 1f 8 9 ",
        "0 a0 1 2 3 new 1f 9007199254740992 9",
        "0 a0 -1 2 3 new 1f 8 9",
        "0 x0 1 2 3 new 1f 8 9",
        "0  1 2 3 new 1f 8 9",
    ] {
        assert_eq!(Marker::read(bad.as_bytes()), None, "{bad:?}");
    }
}
