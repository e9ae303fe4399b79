//! Two processes that take turns.

use tenure::blocking::Client;
use tenure_testkit::TempDir;

use crate::{
    Trouble,
    figures::quantile,
    options::BenchOptions,
    process::{self, Other, monotonic},
};

/// Prints what passes between the call of a release and the return of the other's acquisition,
/// which waits for it; returns whether the target is met.
pub(super) fn measure(hand_overs: u32) -> Result<bool, Trouble> {
    let directory = TempDir::new();
    let url = format!("file://{}/locks.db", directory.path().display());
    let mut sides =
        [Other::start(&["turns", "--server", &url])?, Other::start(&["turns", "--server", &url])?];
    let rounds = hand_overs / 2;
    sides.iter_mut().try_for_each(|side| side.send(&rounds.to_string()))?;
    let mut turns = Vec::new();
    for side in &mut sides {
        let moments = side.receive()?;
        let (turns_of_side, _) = moments.as_chunks::<2>();
        turns.extend_from_slice(turns_of_side);
    }
    turns.sort_by(|[one, _], [other, _]| one.total_cmp(other));
    let took = turns.iter().zip(turns.iter().skip(1));
    let mut took: Vec<f64> =
        took.map(|([_, released], [acquired, _])| (acquired - released) / 1e3).collect();
    let [p50, p99] = [0.5, 0.99].map(|part| quantile(&mut took, part));
    println!("{} hand-overs: p50 {p50:.0} µs, p99 {p99:.0} µs", took.len());
    println!("target: p50 below {MAX_US} µs");
    Ok(p50 < MAX_US)
}

/// One of the two: acquires and releases as often as ordered, while the other waits; answers
/// when it had the lock each time, and when it began to give it up.
pub(crate) fn turns(options: &mut BenchOptions) -> Result<(), Trouble> {
    let url: String = options.needed("server")?;
    let client = Client::connect(&url)?;
    let lock = client.lock("turns");
    process::answer_orders(|order| {
        let rounds: u32 = order.parse()?;
        let mut moments = Vec::new();
        for round in 1..=rounds {
            let guard = lock.acquire()?;
            moments.push(monotonic());
            // The other side may have done all of its rounds.
            while round < rounds && lock.inspect()?.waiting == Some(0) {
                std::thread::yield_now();
            }
            moments.push(monotonic());
            guard.release()?;
        }
        #[expect(clippy::cast_precision_loss, reason = "a hundred days are below 2^53 ns")]
        Ok(moments.into_iter().map(|moment| moment as f64).collect())
    })
}

/// A tenth of the pause of a waiter that would poll the file.
const MAX_US: f64 = 1_500.0;
