//! Servers that come back without their keys, and whether they vote.

use tenure::{
    AcquireError, ExtendError, NoQuorum, NodeError, NodeErrorKind, RevalidateError,
    blocking::{Client, Lock},
};
use tenure_testkit::{FakeServer, Server, ServerKind, eventually, scale, unique_key};

use super::{Nodes, all_catch_up, name, until_all_vote};
use crate::{LIMIT, fake, ms, secs, servers};

/// Long enough to be held during a round, whatever else the machine does.
const HELD: std::time::Duration = secs(60);

/// The full error of a failed acquisition.
fn indeterminate(lock: &Lock) -> NoQuorum {
    match lock.clone().node_limit(LIMIT).try_acquire() {
        Err(AcquireError::NoQuorum(none)) => none,
        other => panic!("{other:?}"),
    }
}

fn why(none: &NoQuorum) -> Vec<(&str, NodeErrorKind)> {
    none.failed.iter().map(|error| (error.node(), error.kind())).collect()
}

/// How the next client knows the server that loses its keys.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// It has never met the server before.
    IsNew,
    /// It knew the server's run before.
    KnewIt,
    /// Somebody declared by hand that the server has forgotten nothing, which is a lie.
    WasDeceived,
}

/// One holds the lock on three of five, and cannot reach the others. One of the three forgets it,
/// and another client wants the lock. Whether that had it while the first still held it.
fn overlaps(nodes: &Nodes, victim: usize, next: Next) -> bool {
    let key = unique_key("forgets");
    let of_three = |index: usize| (index + 5 - victim) % 5 < 3;
    let url = |index: usize| format!("{}?durable=yes", nodes.0[index].url());
    let of_holder = (0..5).map(|index| match of_three(index) {
        true => url(index),
        false => format!("redis://127.0.0.1:{}", 1 + index),
    });
    let holder = Client::connect(&of_holder.collect::<Vec<_>>().join(",")).unwrap();
    let of_next = (0..5).map(|index| match (index == victim, next) {
        (true, Next::IsNew | Next::KnewIt) => nodes.0[index].url(),
        _ => url(index),
    });
    let other = Client::connect(&of_next.collect::<Vec<_>>().join(",")).unwrap();
    if let Next::KnewIt = next {
        other.lock(format!("{key}-before")).acquire_within(LIMIT).unwrap().release().unwrap();
    }
    let guard = holder.lock(&key).ttl(HELD).acquire_within(LIMIT).unwrap();
    nodes.0[victim].restart_empty();
    if let Next::WasDeceived = next {
        servers::open([&nodes.0[victim]]);
    }
    let had = match other.lock(&key).ttl(HELD).node_limit(LIMIT).try_acquire() {
        Ok(had) => had,
        Err(AcquireError::NoQuorum(none)) => {
            let restarted = (&*name(&nodes.0[victim]), NodeErrorKind::Restarted);
            assert_eq!(why(&none), [restarted], "{next:?} after {victim}");
            assert_eq!((none.granted, none.needed), (2, 3));
            None
        }
        Err(error) => panic!("{error:?}"),
    };
    assert_eq!(
        guard.ensure_held().map_err(|loss| loss.reason),
        Ok(()),
        "a round took longer than a lease"
    );
    servers::open([&nodes.0[victim]]);
    had.is_some()
}

#[test]
fn a_server_that_forgot_a_holder_has_no_vote_while_it_holds() {
    let nodes = Nodes::start(5);
    for round in 0..scale(5, 500) {
        for next in [Next::IsNew, Next::KnewIt] {
            assert!(!overlaps(&nodes, round % 5, next), "{next:?} in round {round}");
        }
    }
}

/// The test above could not fail otherwise.
#[test]
fn without_the_restart_guard_two_hold_the_lock() {
    let nodes = Nodes::start(5);
    for victim in 0..5 {
        assert!(overlaps(&nodes, victim, Next::WasDeceived), "after {victim}");
    }
}

/// A grant that was no vote leaves nothing behind, even on an ineligible server.
#[test]
fn a_grant_of_an_ineligible_server_is_undone() {
    let (nodes, key) = (Nodes::start(3), unique_key("undone"));
    nodes.0[2].kill();
    nodes.0[..2].iter().for_each(|node| assert!(node.cmd(&["FLUSHALL"]).is_ok()));
    let undeclared: Vec<_> = nodes.0.iter().map(Server::url).collect();
    let lock = Client::connect(&undeclared.join(",")).unwrap().lock(&key).ttl(secs(600));
    let none = indeterminate(&lock);
    assert_eq!(none.granted, 0);
    let restarted = none.failed.iter().find(|error| error.kind() == NodeErrorKind::Restarted);
    let cause = std::error::Error::source(restarted.unwrap()).unwrap().to_string();
    assert!(cause.contains("it votes in 60"), "no sooner than this very lock could end: {cause}");
    nodes.0[2].start_again();
    nodes.becomes_free(&key);
    // It is known what was granted, so nothing has to guard against a late arrival.
    let queue = format!("{{{key}}}:tenure.queue");
    assert!(nodes.0.iter().all(|node| !servers::exists(node, &queue)));
}

/// One is ahead with its number, one was asked to follow and has lost the key, and the third does
/// follow, but it may have forgotten an earlier holder: no majority had the number.
#[test]
fn a_confirmation_of_an_ineligible_server_does_not_count() {
    let (nodes, key) = (Nodes::start(2), unique_key("confirms"));
    let ahead = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
    let fence = format!("{{{key}}}:tenure.fence");
    let number = (ahead + 1_000_000_000).to_string();
    assert!(nodes.0[0].cmd(&["SET", &fence, &number, "PX", "600000"]).is_ok());
    let loses_it = FakeServer::tcp(move |_| {
        move |command| {
            let (now, behind) = (ahead.to_string(), (ahead + 1).to_string());
            let answer = |asked: fake::ScriptRequest| match asked.script {
                "acquire" => asked.reply(&["granted", &behind, &behind, &now]).into(),
                "confirm" => asked.reply(&[&now, "gone"]).into(),
                _ => asked.reply(&["free", "nobody"]).into(),
            };
            fake::greet(&command, "run")
                .or_else(|| fake::ScriptRequest::read(&command).map(answer))
                .unwrap()
        }
    });
    let urls = |third: String| {
        let first = servers::quorum([&nodes.0[0]]);
        Client::connect(&format!("{first},{}?durable=yes,{third}", loses_it.url())).unwrap()
    };
    assert!(nodes.0[1].cmd(&["FLUSHALL"]).is_ok());
    let ineligible = urls(nodes.0[1].url()).lock(&key).ttl(secs(20));
    let none = indeterminate(&ineligible);
    assert!(why(&none).contains(&(&name(&nodes.0[1]), NodeErrorKind::Restarted)), "{none:?}");
    nodes.becomes_free(&key);
    // One that has forgotten nothing makes the majority.
    servers::open([&nodes.0[1]]);
    let trusted = urls(nodes.0[1].url()).lock(&key).ttl(secs(20));
    assert!(trusted.try_acquire().unwrap().is_some());
}

/// The others had the lock to give, so the key on the one that is ineligible is the holder's, too.
#[test]
fn a_grant_of_an_ineligible_server_joins_a_lease_that_others_granted() {
    let (nodes, key) = (Nodes::start(3), unique_key("belongs"));
    assert!(nodes.0[2].cmd(&["FLUSHALL"]).is_ok());
    let lock = nodes.client().lock(&key).ttl(secs(3)).max_ttl(secs(3));
    let guard = lock.acquire().unwrap();
    nodes.until_had_by(&guard, 3);
    // It counts at renewals as soon as nothing that it forgot can be held.
    until_all_vote(&lock);
    std::thread::sleep(secs(2));
    nodes.0[0].kill();
    std::thread::sleep(secs(6));
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
    let left = || nodes.0[1..].iter().any(|node| servers::exists(node, &key));
    eventually(LIMIT, "no key is left", || !left());
}

/// It is known what was granted, so the release has no late arrival to guard against.
#[test]
fn a_lease_with_an_ineligible_grant_leaves_no_tombstone() {
    let (nodes, key) = (Nodes::start(3), unique_key("ineligible"));
    let proxies = nodes.proxies();
    let client = Client::connect(&servers::behind(&proxies)).unwrap();
    let lock = client.lock(&key).ttl(HELD).node_limit(LIMIT);
    assert!(nodes.0[2].cmd(&["FLUSHALL"]).is_ok());
    all_catch_up(&lock);
    // The third answers before there is a majority.
    proxies[0].delay_replies(ms(300));
    let guard = lock.acquire().unwrap();
    proxies[0].heal();
    all_catch_up(&lock);
    guard.release().unwrap();
    nodes.becomes_free(&key);
    let queue = format!("{{{key}}}:tenure.queue");
    assert!(nodes.0.iter().all(|node| !servers::exists(node, &queue)));
}

/// One of the three holds the key and is eligible, one has got it again since it forgot it, and
/// the third is down: whatever is asked about the lease, that is no majority.
#[test]
fn an_ineligible_server_cannot_renew_prove_or_resume_a_lease() {
    let (nodes, key) = (Nodes::start(3), unique_key("renews"));
    let lock = nodes.client().lock(&key).ttl(HELD).node_limit(LIMIT);
    let guard = lock.acquire().unwrap();
    all_catch_up(&lock);
    assert!(nodes.0[1].cmd(&["FLUSHALL"]).is_ok());
    guard.revalidate().unwrap();
    nodes.until_had_by(&guard, 3);
    all_catch_up(&lock);
    // By now it would count, if it were eligible.
    guard.revalidate().unwrap();
    nodes.0[2].kill();
    let is_ineligible = |error: &NodeError| error.kind() == NodeErrorKind::Restarted;
    let proved = guard.revalidate();
    let Err(RevalidateError::Unconfirmed(errors)) = proved else { panic!("{proved:?}") };
    assert!(errors.iter().any(is_ineligible), "{errors}");
    let extended = guard.extend(HELD / 2);
    let Err(ExtendError::Unconfirmed(errors)) = extended else { panic!("{extended:?}") };
    assert!(errors.iter().any(is_ineligible), "{errors}");
    let resumed = lock.resume(guard.detach());
    let Err(AcquireError::NoQuorum(none)) = resumed else { panic!("{resumed:?}") };
    assert!(none.failed.iter().any(is_ineligible), "{none}");
}

/// Whether a server votes is for each lock to say, by the longest TTL that anybody takes it with.
#[test]
fn a_new_server_votes_once_every_lost_lock_has_expired() {
    let new = ServerKind::ALL.map(|kind| Server::builder(kind).tcp().start());
    let (nodes, key) = (Nodes(new.into()), unique_key("young"));
    let undeclared: Vec<_> = nodes.0.iter().map(Server::url).collect();
    let client = Client::connect(&undeclared.join(",")).unwrap();
    let long = client.lock(&key).max_ttl(secs(3_600));
    let none = indeterminate(&long);
    // Two of three decide, and the third need not have answered by then.
    assert!(none.granted == 0 && none.failed.len() >= 2, "{none:?}");
    assert!(why(&none).iter().all(|(_, kind)| *kind == NodeErrorKind::Restarted), "{none:?}");
    let cause = std::error::Error::source(&none.failed[0]).unwrap().to_string();
    assert!(cause.contains("it has no marker yet"), "{cause}");
    assert!(cause.contains("`tenure init`"), "{cause}");
    assert!(none.failed[0].votes_in().is_some_and(|left| left > secs(3_600)), "{none:?}");
    let reports = long.nodes().unwrap();
    assert!(reports.iter().all(|report| report.trouble.is_some()), "{reports:?}");
    let short = client.lock(&key).ttl(ms(500)).max_ttl(ms(500));
    // A wait without an end does not end with that, as it does where a server is never reached.
    short.acquire().unwrap().release().unwrap();
    // The third may have been met a little later than the two that decided.
    until_all_vote(&short);
    assert_eq!(indeterminate(&long).granted, 0);
}

#[test]
fn numbers_continue_to_grow_when_all_servers_lose_their_data() {
    let (nodes, key) = (Nodes::start(5), unique_key("all-forget"));
    let client = nodes.client();
    let mut last = None;
    for round in 0..scale(4, 100) {
        match round % 2 {
            0 => nodes.0.iter().for_each(Server::restart_empty),
            _ => nodes.0.iter().for_each(|node| assert!(node.cmd(&["FLUSHALL"]).is_ok())),
        }
        servers::open(&nodes.0);
        let guard = client.lock(&key).ttl(secs(5)).acquire_within(LIMIT).unwrap();
        assert!(Some(guard.fencing_token()) > last, "in round {round}");
        last = Some(guard.fencing_token());
        guard.release().unwrap();
    }
}
