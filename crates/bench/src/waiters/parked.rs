//! The process whose one client waits.

use tenure::Client;

use super::{TTL, key};
use crate::{Trouble, options::BenchOptions, process};

/// Waits at one lock or at many, as ordered; nobody ever releases them.
pub(crate) fn parked(options: &mut BenchOptions) -> Result<(), Trouble> {
    let url: String = options.needed("server")?;
    let run: u32 = options.needed("run")?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let client = Client::connect(&url)?;
    // The connection and the scripts are there before anything is measured.
    let other = client.lock(format!("bench-{run}-other"));
    runtime.block_on(async { other.acquire().await?.release().await.map_err(Trouble::from) })?;
    process::answer_orders(|order| {
        let mut words = order.split(' ');
        let mut number = || -> Result<u32, Trouble> { Ok(words.next().unwrap_or("").parse()?) };
        let (first, end, locks) = (number()?, number()?, number()?);
        runtime.block_on(async {
            for number in first..end {
                let lock = client.lock(key(run, number % locks)).ttl(TTL);
                tokio::spawn(async move {
                    match lock.acquire().await {
                        Ok(_) => eprintln!("bench: a waiter holds a lock"),
                        Err(error) => eprintln!("bench: a waiter gave up: {error}"),
                    }
                });
            }
            // Each is polled once meanwhile, which is all that its engine needs.
            for _ in first..end {
                tokio::task::yield_now().await;
            }
        });
        Ok(vec![])
    })
}
