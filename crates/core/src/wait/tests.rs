//! When waiters try again.

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const NEVER: TtlLeft = TtlLeft::Never;

#[test]
fn no_wait_and_a_wait_of_zero_are_one_try() {
    for wait in [Wait::No, Wait::Within(Duration::ZERO)] {
        let mut waiting = Waiting::new(at(5), wait);
        assert_eq!(waiting.handle_held(at(5), NEVER, 0), None);
        assert_eq!(waiting.handle_unknown(at(5), 0), None);
    }
}

#[test]
fn the_last_try_is_at_the_deadline_and_never_later() {
    let mut waiting = Waiting::new(at(0), Wait::Within(ms(1_000)));
    let mut now = at(0);
    let mut tries = 0;
    while let Some(next) = waiting.handle_held(now, NEVER, 500) {
        assert!(next > now && next <= at(1_000));
        now = next;
        tries += 1;
    }
    assert_eq!(now, at(1_000));
    assert!((5..=10).contains(&tries), "{tries}");
}

#[test]
fn a_lease_that_ends_sooner_is_tried_at_its_end() {
    let mut waiting = Waiting::new(at(0), Wait::Forever);
    for _ in 0..10 {
        _ = waiting.handle_held(at(0), NEVER, 500);
    }
    assert_eq!(waiting.handle_held(at(0), NEVER, 500), Some(at(250)));
    assert_eq!(waiting.handle_held(at(0), TtlLeft::Ends(ms(30)), 500), Some(at(32)));
}

#[test]
fn an_unlimited_wait_survives_only_outages_after_a_reply() {
    let mut waiting = Waiting::new(at(0), Wait::Forever);
    assert_eq!(waiting.handle_unknown(at(0), 0), None);
    assert!(waiting.handle_held(at(0), NEVER, 0).is_some());
    assert!(waiting.handle_unknown(at(1), 0).is_some());
    assert!(Waiting::new(at(0), Wait::Forever).handle_not_yet(at(0), 0).is_some());
    let mut waiting = Waiting::new(at(0), Wait::Within(ms(100)));
    assert!(waiting.handle_unknown(at(0), 0).is_some());
    assert_eq!(waiting.handle_unknown(at(100), 0), None);
}

fn held(holder: &[u8], ttl_left: TtlLeft) -> Held {
    Held { holder: crate::Holder::from_value(holder), ttl_left }
}

const OURS: &[u8] = b"0123456789abcdef0123456789abcdef@h";

#[test]
fn each_place_in_the_queue_polls_a_second_later() {
    let mut waiting = Waiting::new(at(0), Wait::Forever);
    let ticket = Ticket::new(7).unwrap();
    let mut look = |position, left| {
        waiting.handle_queued(at(0), &held(OURS, left), ticket, position, 500).unwrap()
    };
    assert_eq!(look(0, TtlLeft::Ends(ms(10_000))), at(250));
    assert_eq!(look(0, TtlLeft::Ends(ms(100))), at(102));
    assert_eq!(look(1, TtlLeft::Ends(ms(10_000))), at(11_002));
    assert_eq!(look(3, TtlLeft::Ends(ms(10_000))), at(13_002));
    assert_eq!(look(500, TtlLeft::Ends(ms(10_000))), at(40_002));
    assert_eq!(look(1, NEVER), at(31_002));
    assert_eq!(look(1, TtlLeft::Ends(ms(3_600_000))), at(31_002));
    assert_eq!(waiting.ticket(), Some(ticket));
}

#[test]
fn the_head_polls_once_a_second_without_tracking() {
    let look = |watched, left| {
        let held = held(OURS, TtlLeft::Ends(left));
        Waiting::next_poll(Timestamp::MAX, at(0), &held, 0, watched, 0)
    };
    assert_eq!(look(true, ms(10_000)), Some(at(10_002)));
    assert_eq!(look(false, ms(10_000)), Some(at(1_000)));
    assert_eq!(look(false, ms(500)), Some(at(502)));
}

#[test]
fn only_the_head_polls_a_foreign_holder() {
    let mut waiting = Waiting::new(at(0), Wait::Forever);
    let ticket = Ticket::new(7).unwrap();
    let foreign = held(b"theirs", NEVER);
    assert_eq!(waiting.handle_queued(at(0), &foreign, ticket, 0, 500), Some(at(100)));
    assert_eq!(waiting.handle_queued(at(0), &foreign, ticket, 1, 500), Some(at(31_002)));
}

#[test]
fn a_notification_ends_a_pause_within_the_jitter_window() {
    let mut waiting = Waiting::new(at(0), Wait::Forever);
    waiting.handle_round(ms(1));
    let next = waiting.handle_held(at(0), NEVER, 1_000).unwrap();
    let next = waiting.handle_held(next, NEVER, 1_000).unwrap();
    let now = at(16);
    assert!(next > now + ms(20));
    assert_eq!(waiting.handle_notification(now, next, 0), now);
    assert_eq!(waiting.handle_notification(now, next, 250), now + ms(2));
    assert_eq!(waiting.handle_notification(now, next, 999), now + Duration::from_micros(7_992));
    // The others of one release change nothing.
    for soon in [now, now + ms(2), now + ms(8)] {
        assert_eq!(waiting.handle_notification(now, soon, 0), soon);
    }
    // Who was not the first polls soon again.
    assert_eq!(waiting.handle_held(now, NEVER, 500), Some(now + ms(10)));
}

#[test]
fn the_jitter_window_grows_while_the_votes_are_split() {
    let mut waiting = Waiting::new(at(0), Wait::Within(ms(1_000)));
    waiting.handle_round(ms(2));
    for half in [8, 16] {
        assert_eq!(waiting.handle_split(at(0), NEVER, 500), Some(at(half)));
    }
    assert_eq!(waiting.handle_notification(at(0), at(500), 500), at(16));
    assert!(waiting.handle_held(at(0), NEVER, 500).is_some());
    assert_eq!(waiting.handle_split(at(0), NEVER, 500), Some(at(8)), "somebody held it");
    assert_eq!(waiting.handle_split(at(0), TtlLeft::Ends(ms(3)), 999), Some(at(5)));
    assert_eq!(waiting.handle_split(at(999), NEVER, 500), Some(at(1_000)), "the last try");
    assert_eq!(waiting.handle_split(at(1_000), NEVER, 500), None);
}

#[test]
fn a_successor_watch_polls_after_the_grant_and_names_the_suspect_once() {
    let mut waiting = Waiting::new(at(0), Wait::Within(ms(5_000)));
    let granted = Channel::new(9);
    assert_eq!(waiting.handle_successor_watch(at(10), 1_000, granted.clone()), Some(at(1_012)));
    assert_eq!(waiting.take_suspect(), Some(granted));
    assert_eq!(waiting.take_suspect(), None);
    assert_eq!(waiting.handle_successor_watch(at(4_500), 1_000, Channel::new(1)), Some(at(5_000)));
}
