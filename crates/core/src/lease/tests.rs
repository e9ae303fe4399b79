//! Renewal, loss and proof, moment by moment.

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn settings(ttl: u64) -> LeaseSettings {
    LeaseSettings { ttl: Ttl::new(ms(ttl)).unwrap(), renewed: true, max_hold: None }
}

#[test]
fn a_lease_is_renewed_at_a_third_and_lost_a_margin_before_its_end() {
    // TTL 10 s: drift 102 ms, validity 9 898 ms, margin 200 ms.
    let mut lease = LeaseState::new(at(0), settings(10_000));
    assert_eq!(lease.deadline(), at(9_898));
    assert_eq!(lease.poll_timeout().as_nanos(), 9_898_000_000 / 3);
    assert!(!lease.poll_renewal(at(3_299), Duration::ZERO));
    assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
    assert_eq!(lease.poll_timeout(), at(9_698), "in flight: only the loss is due");
    lease.handle_time(at(9_697));
    assert_eq!(lease.lost(), None);
    lease.handle_time(at(9_698));
    assert_eq!(lease.lost(), Some(&LossReason::Expired));
    assert_eq!(lease.poll_timeout(), Timestamp::MAX);
}

#[test]
fn validity_counts_from_before_the_request() {
    let mut lease = LeaseState::new(at(0), settings(10_000));
    assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
    lease.handle_renewed(at(4_000), at(3_300));
    assert_eq!(lease.deadline(), at(3_300 + 9_898));
    // An answer to an older, shorter request never lowers the deadline.
    lease.handle_renewed(at(4_001), at(100));
    assert_eq!(lease.deadline(), at(3_300 + 9_898));
}

#[test]
fn a_failed_renewal_is_tried_again_soon_and_blips_do_not_add_up() {
    let mut lease = LeaseState::new(at(0), settings(12_000));
    assert!(lease.poll_renewal(at(4_000), Duration::ZERO));
    lease.handle_unknown(at(4_500), 500);
    let wait = lease.poll_timeout().since(at(4_500));
    assert!((ms(980)..ms(1_000)).contains(&wait), "{wait:?}");
    assert!(lease.poll_renewal(at(5_500), Duration::ZERO));
    lease.handle_renewed(at(5_501), at(5_500));
    assert_eq!(lease.deadline(), at(5_500 + 11_878));
    assert_eq!(lease.poll_timeout().since(at(5_500)), ms(11_878) / 3);
}

#[test]
fn a_loss_is_final() {
    let mut lease = LeaseState::new(at(0), settings(10_000));
    assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
    lease.handle_renewed(at(9_800), at(3_300));
    assert_eq!(lease.lost(), Some(&LossReason::Expired));
    assert_eq!(lease.deadline(), at(9_898));
    lease.lose(LossReason::Gone);
    assert_eq!(lease.lost(), Some(&LossReason::Expired));
    assert!(!lease.poll_renewal(at(9_801), Duration::ZERO));
}

#[test]
fn an_expired_lease_is_held_again_with_a_proof() {
    let mut lease = LeaseState::new(at(0), settings(10_000));
    assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
    lease.handle_time(at(20_000));
    assert_eq!(lease.lost(), Some(&LossReason::Expired));
    assert_eq!(lease.final_loss(at(20_000)), None);
    lease.handle_proved(at(20_010), at(20_001));
    assert_eq!(lease.lost(), None);
    assert_eq!(lease.deadline(), at(20_001 + 9_898));
    // Renewals go on, though the one that was under way was never answered.
    assert_eq!(lease.poll_timeout().since(at(20_001)), ms(9_898) / 3);
    assert!(lease.poll_renewal(at(23_301), Duration::ZERO));
    // And it ends as others do.
    lease.handle_time(at(20_001 + 9_698));
    assert_eq!(lease.lost(), Some(&LossReason::Expired));
}

#[test]
fn a_late_proof_changes_nothing() {
    let mut lease = LeaseState::new(at(0), settings(10_000));
    lease.handle_proved(at(30_000), at(30_000 - 9_698));
    assert_eq!(lease.lost(), Some(&LossReason::Expired));
    assert_eq!(lease.deadline(), at(9_898));

    let longest = LeaseSettings { max_hold: Some(ms(15_000)), ..settings(10_000) };
    let mut lease = LeaseState::new(at(0), longest);
    lease.handle_time(at(14_000));
    assert_eq!(lease.final_loss(at(15_000)), Some(LossReason::MaxHold));
    lease.handle_proved(at(15_000), at(14_999));
    assert_eq!(lease.lost(), Some(&LossReason::Expired));

    for reason in [LossReason::Gone, LossReason::Released, LossReason::MaxHold] {
        let mut lease = LeaseState::new(at(0), settings(10_000));
        lease.lose(reason.clone());
        assert_eq!(lease.final_loss(at(1)), Some(reason.clone()));
        lease.handle_proved(at(1), at(1));
        assert_eq!(lease.lost(), Some(&reason));
    }
}

#[test]
fn a_proof_renews_a_lease_that_is_held() {
    let mut lease = LeaseState::new(at(0), settings(10_000));
    lease.handle_proved(at(1_001), at(1_000));
    assert_eq!(lease.deadline(), at(1_000 + 9_898));
    // A longer extension stays.
    lease.handle_extended(at(1_002), at(1_000), Ttl::new(ms(60_000)).unwrap());
    lease.handle_proved(at(1_003), at(1_003));
    assert_eq!(lease.deadline(), at(1_000 + 59_398));
}

#[test]
fn max_hold_ends_the_lease() {
    let mut lease =
        LeaseState::new(at(0), LeaseSettings { max_hold: Some(ms(5_000)), ..settings(10_000) });
    assert!(lease.poll_renewal(at(4_999), Duration::ZERO));
    lease.handle_renewed(at(4_999), at(4_999));
    assert_eq!(lease.poll_timeout(), at(5_000));
    lease.handle_time(at(5_000));
    assert_eq!(lease.lost(), Some(&LossReason::MaxHold));
}

#[test]
fn without_renewal_only_the_end_is_due() {
    let mut lease = LeaseState::new(at(0), LeaseSettings { renewed: false, ..settings(1_000) });
    assert_eq!(lease.poll_timeout(), at(988 - 50));
    assert!(!lease.poll_renewal(at(900), Duration::ZERO));
    // The caller extends by hand.
    lease.handle_extended(at(901), at(900), Ttl::new(ms(2_000)).unwrap());
    assert_eq!(lease.deadline(), at(900 + 1_978));
}

#[test]
fn the_largest_ttl_is_not_lost_at_once() {
    for ttl in [Ttl::MAX_MS, 10_000 * 365 * 24 * 3_600_000, 500 * 365 * 24 * 3_600_000] {
        let mut lease = LeaseState::new(at(5), settings(ttl));
        lease.handle_time(at(1_000_000));
        assert_eq!(lease.lost(), None, "{ttl} ms");
    }
}

#[test]
fn renewals_go_along_with_one_that_is_due() {
    let mut lease = LeaseState::new(at(0), settings(10_000));
    assert!(!lease.poll_renewal(at(3_000), ms(200)));
    assert!(lease.poll_renewal(at(3_100), ms(200)));
}

/// The caller extends to each part of the TTL, at each pace; the server answers at once.
#[test]
fn no_extension_delays_a_renewal_past_the_end() {
    for (ttl, percent, every) in [100, 3_000, 10_000].into_iter().flat_map(|ttl| {
        [1, 3, 10, 33, 50, 66, 67, 90, 99, 100, 101, 150, 300, 1_000]
            .into_iter()
            .flat_map(move |percent| [1, 7, 30, 60, 95].map(move |every| (ttl, percent, every)))
    }) {
        let to = Ttl::new(ms((ttl * percent / 100).max(10))).unwrap();
        let mut lease = LeaseState::new(at(0), settings(ttl));
        let mut key_ends = at(ttl);
        let mut next_extension = ms(ttl * every / 100).max(ms(1));
        let pace = next_extension;
        let what = format!("TTL {ttl} ms, extended to {to:?} every {pace:?}");
        while next_extension < ms(20 * ttl) {
            let timer = lease.poll_timeout();
            let now = timer.min(Timestamp::default() + next_extension);
            lease.handle_time(now);
            assert_eq!(lease.lost(), None, "{what}, at {now:?}");
            if lease.poll_renewal(now, Duration::ZERO) {
                assert!(now < key_ends.before(loss_margin(lease.ttl())), "{what}, at {now:?}");
                key_ends = key_ends.max(now + lease.ttl().get());
                lease.handle_renewed(now, now);
            }
            if Timestamp::default() + next_extension <= now {
                key_ends = key_ends.max(now + to.get());
                lease.handle_extended(now, now, to);
                next_extension += pace;
            }
            assert!(lease.deadline() <= key_ends, "{what}, at {now:?}");
        }
    }
}

#[test]
fn an_extension_leaves_a_renewal_in_flight() {
    let mut lease = LeaseState::new(at(0), settings(10_000));
    assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
    lease.handle_extended(at(3_301), at(3_300), Ttl::new(ms(100)).unwrap());
    assert!(!lease.poll_renewal(at(3_301), Duration::ZERO), "a second one beside it");
    lease.handle_unknown(at(5_000), 500);
    assert!(lease.poll_renewal(at(5_900), Duration::ZERO));
}

/// Whatever is left when a renewal fails, there is another before the end.
#[test]
fn a_renewal_that_fails_is_tried_again_before_the_end() {
    for (failed, random) in (3_300..9_690).step_by(10).flat_map(|at| [(at, 0), (at, 1_000)]) {
        let mut lease = LeaseState::new(at(0), settings(10_000));
        assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
        lease.handle_unknown(at(failed), random);
        assert!(lease.poll_timeout() < at(9_698), "failed at {failed}");
    }
}

#[test]
fn a_loss_during_a_pause_is_reported_as_a_pause() {
    let pause = |from, to| Pause { from: at(from), to: at(to) };
    let after = |pause, failing| {
        let mut lease = LeaseState::new(at(0), settings(10_000));
        if failing {
            assert!(lease.poll_renewal(at(3_300), Duration::ZERO));
            lease.handle_unknown(at(3_300), 500);
        }
        lease.handle_pause(pause);
        lease.handle_time(pause.to);
        lease.lost().cloned()
    };
    let by_pause = |ms| Some(LossReason::Paused { pause: Duration::from_millis(ms) });
    assert_eq!(after(pause(3_300, 60_000), false), by_pause(56_700));
    assert_eq!(after(pause(3_300, 9_698), false), by_pause(6_398));
    assert_eq!(after(pause(3_300, 9_697), false), None, "it was over in time");
    assert_eq!(after(pause(3_300, 60_000), true), Some(LossReason::Expired), "an outage before");
    assert_eq!(after(pause(9_690, 60_000), false), Some(LossReason::Expired), "over without it");
    assert_eq!(after(pause(9_000, 9_800), false), Some(LossReason::Expired), "a busy machine");
    let mut manual = LeaseState::new(at(0), LeaseSettings { renewed: false, ..settings(10_000) });
    manual.handle_pause(pause(3_300, 60_000));
    assert_eq!(manual.lost(), None, "its holder may not have wanted to extend it");
    // The first reason stays, and the next hold has nothing to do with an old pause.
    let mut lease = LeaseState::new(at(0), settings(10_000));
    lease.lose(LossReason::Gone);
    lease.handle_pause(pause(3_300, 60_000));
    assert_eq!(lease.lost(), Some(&LossReason::Gone));
    let mut lease = LeaseState::new(at(70_000), settings(10_000));
    lease.handle_pause(pause(3_300, 60_000));
    assert_eq!(lease.lost(), None);
}

#[test]
fn a_lease_lost_during_a_pause_is_held_again_with_a_proof() {
    let mut lease = LeaseState::new(at(0), settings(10_000));
    lease.handle_pause(Pause { from: at(3_300), to: at(20_000) });
    assert!(lease.lost().is_some_and(LossReason::ran_out));
    assert_eq!(lease.final_loss(at(20_000)), None);
    lease.handle_proved(at(20_010), at(20_001));
    assert_eq!(lease.lost(), None);
}
