//! What is reported when too few of several servers answer.

use tenure::{
    AcquireError, ExtendError, InspectError, NodeError, NodeErrorKind, ReleaseError,
    blocking::Client,
};
use tenure_testkit::{Server, unique_key};

use super::Nodes;
use crate::secs;

/// The name that errors give to a node.
fn name(node: &Server) -> String {
    format!("127.0.0.1:{}", node.port().unwrap())
}

fn names<'a>(errors: impl IntoIterator<Item = &'a NodeError>) -> Vec<String> {
    let mut names: Vec<_> = errors.into_iter().map(|error| error.node().to_owned()).collect();
    names.sort();
    names
}

/// Some hold the lock for another, some are down, and the rest would grant it.
fn is_told(nodes: &Nodes, client: &Client, refusing: usize, down: usize) {
    let (key, up) = (unique_key("reported"), 5 - down);
    for node in &nodes.0[..refusing] {
        assert!(node.cmd(&["SET", &key, "another's", "PX", "600000"]).is_ok());
    }
    let row = format!("{refusing} refuse, {down} are down");
    match client.lock(&key).ttl(secs(600)).try_acquire() {
        Ok(None) => assert!(refusing >= 3, "{row}: contention"),
        Ok(Some(guard)) => {
            assert!(up - refusing >= 3, "{row}: granted");
            guard.release().unwrap();
        }
        Err(AcquireError::NoQuorum(none)) => {
            assert!(refusing < 3 && up - refusing < 3, "{row}: {none:?}");
            // On a busy machine a healthy server may answer too late, and is reported as such.
            let (late, failed): (Vec<_>, Vec<_>) =
                none.failed.iter().partition(|error| error.kind() == NodeErrorKind::TimedOut);
            assert_eq!((none.granted + late.len(), none.needed), (up - refusing, 3), "{row}");
            let killed: Vec<_> = nodes.0[up..].iter().map(name).collect();
            let told: Vec<_> = failed.iter().map(|error| error.node().to_owned()).collect();
            assert_eq!(told, killed, "{row}");
        }
        Err(error) => panic!("{row}: {error}"),
    }
}

/// Contention is reported when so many servers say so that no majority is left; no quorum is
/// reported, with the name of each server, when the missing replies could have decided otherwise.
#[test]
fn contention_and_outage_differ_whichever_server_refuses_or_is_down() {
    let nodes = Nodes::start(5);
    let knows_them = nodes.client();
    for down in 0..=3 {
        if down > 0 {
            nodes.0[5 - down].kill();
        }
        for refusing in 0..=5 - down {
            is_told(&nodes, &nodes.client(), refusing, down);
            is_told(&nodes, &knows_them, refusing, down);
        }
    }
}

#[test]
fn each_operation_names_every_server_that_failed() {
    let (nodes, key) = (Nodes::start(5), unique_key("named"));
    let lock = nodes.client().lock(&key).ttl(secs(600)).max_ttl(secs(900));
    let guard = lock.acquire().unwrap();
    let killed = &nodes.0[1..4];
    killed.iter().for_each(Server::kill);
    let mut killed: Vec<_> = killed.iter().map(name).collect();
    killed.sort();

    let Err(ExtendError::Unconfirmed(errors)) = guard.extend(secs(900)) else { panic!("extended") };
    assert_eq!(names(errors.iter()), killed);
    let text = errors.to_string();
    assert!(killed.iter().all(|name| text.contains(name)), "{text}");
    let Err(InspectError::Unanswered(errors)) = lock.inspect() else { panic!("inspected") };
    assert_eq!(names(errors.iter()), killed);
    let released = lock.release(guard.token());
    let Err(ReleaseError::Unconfirmed(errors)) = released else { panic!("{released:?}") };
    assert_eq!(names(errors.iter()), killed);
    let released = guard.release();
    // The two that are left say that the lock is free there by now: that decides nothing.
    let Err(ReleaseError::Unconfirmed(errors)) = released else { panic!("{released:?}") };
    assert_eq!(names(errors.iter()), killed);
    let forced = lock.force_release();
    let Err(InspectError::Unanswered(errors)) = forced else { panic!("{forced:?}") };
    assert_eq!(names(errors.iter()), killed);
}
