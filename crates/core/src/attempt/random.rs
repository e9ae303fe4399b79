//! Random answers in any order.

use proptest::prelude::*;

use super::*;
use crate::{Held, Holder, TtlLeft};

/// Something that happens to an attempt.
#[derive(Clone, Debug)]
enum Event {
    Vote(usize, Vote),
    Confirmed(usize, Option<Confirmation>),
    Time(u64),
}

fn event(nodes: usize) -> impl Strategy<Value = Event> {
    let held = Held { holder: Holder::from_value(b"x"), ttl_left: TtlLeft::Never };
    let number = || (5..9_u64).prop_map(|number| FencingToken::new(number).unwrap());
    let refused = Vote::Refused { held: held.clone(), last_number: None };
    let vote = prop_oneof![
        6 => number().prop_map(Vote::Granted),
        1 => Just(refused),
        1 => Just(Vote::Unknown),
    ];
    let answer = prop_oneof![
        8 => number().prop_map(|number| Some(Confirmation::Ours(number))),
        1 => Just(Some(Confirmation::Gone)),
        1 => Just(Some(Confirmation::Other(held))),
        1 => Just(None),
    ];
    prop_oneof![
        4 => (0..nodes, vote).prop_map(|(node, vote)| Event::Vote(node, vote)),
        4 => (0..nodes, answer).prop_map(|(node, answer)| Event::Confirmed(node, answer)),
        1 => (0..100_u64).prop_map(Event::Time),
        1 => (0..12_000_u64).prop_map(Event::Time),
    ]
}

fn events() -> impl Strategy<Value = (usize, Vec<Event>)> {
    (1..=6_usize).prop_flat_map(|nodes| {
        (Just(nodes), proptest::collection::vec(event(nodes), 0..=4 * nodes))
    })
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..Default::default()
    })]

    /// Whatever comes in whatever order: a lock counts as acquired only under a number that a
    /// majority had while the lock was ours there, in time; and an outcome stands.
    #[test]
    fn no_lock_is_acquired_without_a_majority_that_agrees((nodes, events) in events()) {
        let quorum = Quorum::new(nodes).unwrap();
        let ttl = Ttl::new(Duration::from_secs(10)).unwrap();
        let mut attempt = Attempt::new(at(0), quorum, ttl, Duration::ZERO);
        while attempt.poll_ask().is_some() {}
        let (mut now, mut rounds) = (1, Vec::new());
        // What each node said of itself while it said that the lock is ours.
        let mut said = vec![Vec::new(); nodes];
        let mut refused = vec![false; nodes];
        let mut asked = vec![0; nodes];
        for event in events {
            let before = attempt.outcome();
            match event {
                Event::Vote(node, vote) => {
                    match &vote {
                        Vote::Granted(number) => said[node].push(*number),
                        Vote::Refused { .. } => refused[node] = true,
                        Vote::Unknown => {}
                    }
                    attempt.handle_vote(at(now), NodeId(node), vote);
                }
                // A node answers what it was asked, and last numbers never fall.
                Event::Confirmed(node, answer) if asked[node] > 0 => {
                    asked[node] -= 1;
                    match &answer {
                        Some(Confirmation::Ours(number)) => said[node].push(*number),
                        Some(Confirmation::Other(_)) => refused[node] = true,
                        _ => {}
                    }
                    attempt.handle_confirmed(at(now), NodeId(node), answer);
                }
                Event::Confirmed(..) => {}
                Event::Time(ms) => {
                    now += ms;
                    attempt.handle_time(at(now));
                }
            }
            while let Some((node, number)) = attempt.poll_confirm() {
                asked[node.0] += 1;
                rounds.push(number);
            }
            let outcome = attempt.outcome();
            prop_assert!(before.is_none() || before == outcome, "{before:?}, then {outcome:?}");
            prop_assert_eq!(attempt.poll_timer().is_none(), outcome.is_some());
            if before.is_some() {
                continue;
            }
            match outcome {
                Some(Outcome::Acquired(number)) => {
                    let agree = said.iter().filter(|said| said.contains(&number)).count();
                    prop_assert!(agree >= quorum.needed(), "{number}: {said:?}");
                    prop_assert!(now < 9_898, "at {now} ms");
                }
                Some(Outcome::Held(_)) => {
                    let refused = refused.iter().filter(|refused| **refused).count();
                    prop_assert!(nodes - refused < quorum.needed());
                }
                Some(Outcome::Unknown { granted, needed }) => {
                    prop_assert_eq!(needed, quorum.needed());
                    prop_assert!(granted < needed || attempt.rounds == MAX_ROUNDS);
                }
                Some(Outcome::TooLate) => prop_assert!(now >= 9_898, "at {now} ms"),
                None => {}
            }
        }
        rounds.dedup();
        prop_assert!(rounds.len() <= usize::from(MAX_ROUNDS));
        // When no node answers any more, it is decided nevertheless.
        for node in 0..nodes {
            attempt.handle_vote(at(now), NodeId(node), Vote::Unknown);
        }
        while let Some(timer) = attempt.poll_timer() {
            attempt.handle_time(timer.max(at(now)));
            for (node, asked) in asked.iter_mut().enumerate() {
                for _ in 0..std::mem::take(asked) {
                    attempt.handle_confirmed(at(now), NodeId(node), None);
                }
            }
            while let Some((node, _)) = attempt.poll_confirm() {
                asked[node.0] += 1;
            }
        }
    }
}
