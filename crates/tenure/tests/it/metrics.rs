//! What is counted, under the names that docs/metrics.md promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tenure::{LossReason, Renewal, blocking::Client};
use tenure_testkit::{Server, ServerKind, eventually, unique_key};

use crate::{
    LIMIT,
    program::{self, Program},
    secs, servers,
};

/// What the tests here start, by name. A recorder is for a whole process.
pub(crate) const PROGRAMS: [(&str, fn()); 1] = [("count", count)];

/// How often each metric was counted or measured, by its name and its label.
#[derive(Clone, Debug, Default)]
struct Table(Arc<Mutex<BTreeMap<String, u64>>>);

impl Table {
    fn add(&self, name: &str, times: u64) {
        let mut table = self.0.lock().unwrap();
        *table.entry(name.to_owned()).or_default() += times;
    }

    fn of(&self, name: &str) -> u64 {
        let table = self.0.lock().unwrap();
        table.get(name).copied().unwrap_or_default()
    }

    fn metric(&self, key: &Key) -> Arc<Metric> {
        let labels: Vec<_> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Metric {
            name: format!("{} {}", key.name(), labels.join(" ")),
            table: self.clone(),
        })
    }
}

struct Metric {
    name: String,
    table: Table,
}

impl CounterFn for Metric {
    fn increment(&self, value: u64) {
        self.table.add(&self.name, value);
    }

    fn absolute(&self, _: u64) {
        unreachable!("nothing counts so");
    }
}

impl HistogramFn for Metric {
    fn record(&self, seconds: f64) {
        assert!((0.0..60.0).contains(&seconds), "{}: {seconds}", self.name);
        self.table.add(&self.name, 1);
    }
}

impl Recorder for Table {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.metric(key))
    }
}

/// Lets everything happen that is counted, and says what was.
fn count() {
    let table = Table::default();
    metrics::set_global_recorder(table.clone()).unwrap();
    let client = Client::connect(&program::setting("SERVER")).unwrap();
    let lock = client.lock(program::setting("KEY")).class("stock");

    let guard = lock.acquire().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    guard.release().unwrap();

    let guard = lock.acquire().unwrap();
    lock.force_release().unwrap();
    assert!(guard.extend(secs(40)).is_err());
    drop(guard);

    // It runs out here, and not on the server.
    let token = lock.clone().ttl(secs(600)).acquire().unwrap().detach();
    let short = lock.clone().ttl(secs(2)).renewal(Renewal::Manual).resume(token);
    let short = short.unwrap().expect("it is held by this token");
    assert_eq!(short.lost(), LossReason::Expired);
    short.revalidate().unwrap();
    drop(short.detach());
    lock.force_release().unwrap();

    let several = Client::connect(&program::setting("SERVERS")).unwrap();
    several.lock("any").nodes().unwrap();

    let guard = lock.clone().ttl(secs(6)).acquire().unwrap();
    program::say("held");
    assert_eq!(program::heed(), "the server is down");
    assert!(lock.try_acquire().is_err());
    eventually(LIMIT, "a renewal fails", || table.of(RENEWAL_FAILED) > 0);
    let counted = table.0.lock().unwrap().clone();
    drop(guard);
    counted.iter().for_each(|(name, times)| program::say(&format!("{name}: {times}")));
    program::say("");
}

/// Counted once for each renewal in an outage, however long that is.
const RENEWAL_FAILED: &str = "tenure_renewal_failed_total class=stock";

#[test]
fn every_metric_is_counted_once_under_its_documented_name() {
    let [server, new, old] = ServerKind::ALL.map(Server::start);
    servers::open([&old]);
    let several = format!("{},{}", new.url(), servers::quorum([&old]));
    let key = unique_key("counted");
    let settings = [("SERVER", &*server.url()), ("SERVERS", &several), ("KEY", &key)];
    let mut program = Program::start("count", &settings);
    assert_eq!(program.hear(), "held");
    server.kill();
    program.tell("the server is down");
    let counted = std::iter::repeat_with(|| program.hear()).take_while(|line| !line.is_empty());
    let (failed, counted): (Vec<_>, Vec<_>) =
        counted.partition(|line| line.starts_with(RENEWAL_FAILED));
    assert_eq!(failed.len(), 1);
    let expected = [
        "tenure_acquired_total class=stock: 5",
        "tenure_contended_total class=stock: 1",
        "tenure_held_again_total class=stock: 1",
        "tenure_hold_seconds class=stock: 1",
        "tenure_indeterminate_total class=stock: 1",
        "tenure_lost_total class=stock: 2",
        "tenure_node_warnings_total kind=unmarked: 1",
        "tenure_released_total class=stock: 1",
        "tenure_wait_seconds class=stock: 5",
    ];
    assert_eq!(counted, expected, "a lease that is resumed by its token counts as acquired");

    let document = include_str!("../../../../docs/metrics.md");
    let promised = document.split('`').filter(|word| word.starts_with("tenure_"));
    let name = |line: &String| line.split(' ').next().unwrap().to_owned();
    let told: BTreeSet<_> = counted.iter().chain(&failed).map(name).collect();
    assert_eq!(told, promised.map(str::to_owned).collect());
}
