//! Which nodes vote.

use tenure::InspectError;

use super::place::{Place, Store};
use crate::secs;

/// Each is named once, whatever a lock's settings are, and its lock need not be there.
pub(super) fn every_healthy_node_votes(at: &Place) {
    let lock = at.client().lock(&at.key);
    let expected = if let Store::Quorum(nodes) = at.store { nodes } else { 1 };
    let reports = lock.nodes().unwrap();
    assert_eq!(reports.len(), expected);
    assert!(reports.iter().all(|report| report.trouble.is_none()), "{reports:?}");
    let names: std::collections::BTreeSet<_> = reports.iter().map(|report| &report.node).collect();
    assert_eq!(names.len(), expected);
    let bad = lock.max_ttl(secs(9)).nodes();
    assert!(matches!(bad, Err(InspectError::Config { .. })), "{bad:?}");
}
