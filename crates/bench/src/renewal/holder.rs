//! The process that holds the leases.

use std::time::Duration;

use tenure::{Client, LockGuard};
use tokio::task::JoinSet;

use crate::{Trouble, options::BenchOptions, process};

/// Acquires, counts what was lost, and releases, as ordered.
pub(crate) fn holder(options: &mut BenchOptions) -> Result<(), Trouble> {
    let url: String = options.needed("server")?;
    let ttl = Duration::from_millis(options.needed("ttl-ms")?);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let client = Client::connect(&url)?;
    let mut held = Vec::new();
    process::answer_orders(|order| {
        let mut words = order.split(' ');
        match (words.next(), words.next()) {
            (Some("acquire"), Some(leases)) => {
                held = runtime.block_on(acquire(&client, leases.parse()?, ttl))?;
                Ok(vec![])
            }
            (Some("lost"), _) => {
                let lost = held.iter().filter(|guard| guard.ensure_held().is_err()).count();
                Ok(vec![f64::from(u32::try_from(lost)?)])
            }
            (Some("release"), _) => {
                runtime.block_on(release(std::mem::take(&mut held)))?;
                Ok(vec![])
            }
            _ => Err(format!("do not know how to {order:?}").into()),
        }
    })
}

/// Acquires many leases, some at a time, so that their requests leave together.
async fn acquire(client: &Client, leases: u32, ttl: Duration) -> Result<Vec<LockGuard>, Trouble> {
    let run = std::process::id();
    let mut workers = JoinSet::new();
    for nth in 0..AT_A_TIME {
        let client = client.clone();
        workers.spawn(async move {
            let mut guards = Vec::new();
            for number in (nth..leases).step_by(AT_A_TIME as usize) {
                let lock = client.lock(format!("bench-{run}-{number}")).ttl(ttl);
                guards.push(lock.acquire().await?);
            }
            Ok::<_, Trouble>(guards)
        });
    }
    let mut held = Vec::new();
    while let Some(guards) = workers.join_next().await {
        held.extend(guards??);
    }
    Ok(held)
}

/// Gives all back and waits for the answers, some at a time.
async fn release(mut guards: Vec<LockGuard>) -> Result<(), Trouble> {
    let share = guards.len().div_ceil(AT_A_TIME as usize);
    let mut workers = JoinSet::new();
    while !guards.is_empty() {
        let rest = guards.split_off(share.min(guards.len()));
        let mine = std::mem::replace(&mut guards, rest);
        workers.spawn(async move {
            for guard in mine {
                guard.release().await?;
            }
            Ok::<_, Trouble>(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(())
}

/// Enough for the server never to wait for us.
const AT_A_TIME: u32 = 256;
