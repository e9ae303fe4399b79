//! Five servers: what a lease outlives, and when its loss is reported.

use tenure_testkit::{scale, unique_key};

use super::Nodes;
use crate::{
    LIMIT,
    faults::{outage, ownership, renewal},
    secs,
    servers::several,
};

#[test]
fn a_lease_over_five_servers_outlives_a_busy_machine_and_a_slow_network() {
    renewal::outlives_a_busy_machine(&Nodes::start(5).0, scale(2, 30));
}

/// All five at once: each renewal of that time fails, on every server.
#[test]
fn a_lease_over_five_servers_outlives_a_short_outage_of_all() {
    renewal::outlives_short_outages(|with| Nodes::start_with(5, with).0);
}

#[test]
fn in_an_outage_of_five_servers_the_loss_is_reported_before_expiry() {
    outage::told_in_every_outage(&several(5));
}

#[test]
fn a_key_deleted_from_a_majority_is_a_loss_and_is_not_recreated() {
    ownership::whatever_removes_it_is_a_loss(|| Nodes::start(5).0);
}

/// A holder that loses its key on a minority holds the lock; where it is free it gets it again, and
/// where another has it, it leaves it alone.
#[test]
fn a_key_deleted_from_a_minority_is_repaired() {
    let (nodes, key) = (Nodes::start(5), unique_key("minority"));
    let guard = nodes.client().lock(&key).ttl(secs(2)).acquire_within(LIMIT).unwrap();
    let token = guard.token().as_str().to_owned();
    nodes.until_had_by(&guard, 5);
    let [deleted, stolen, ..] = &nodes.0[..] else { panic!("five nodes") };
    assert_eq!(deleted.cmd(&["DEL", &key]).int(), 1);
    assert!(stolen.cmd(&["SET", &key, "another's", "PX", "600000"]).is_ok());
    let mut monitor = nodes.0[4].monitor();
    nodes.until_had_by(&guard, 4);
    // Renewed on, and still not at the other's cost.
    for _ in 0..3 {
        monitor.lines_until(|line| line.contains(&token) && !line.contains("lua]"));
    }
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    assert_eq!(stolen.cmd(&["GET", &key]).text(), Some("another's"));
    guard.release().unwrap();
    assert_eq!(stolen.cmd(&["DEL", &key]).int(), 1);
    nodes.becomes_free(&key);
}
