//! The workers, who sell.

use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    thread,
    time::Duration,
};

use tenure::{
    Lease, RunError,
    blocking::{Client, Lock, Renewal},
};

use crate::path_text;

/// Workers in a crew.
pub(crate) const IN_A_CREW: u32 = 4;

/// Customers of each worker: together they want more than there is.
const CUSTOMERS: u32 = 10;

/// What a worker does between read and write: wrapping the piece, say. It makes races show.
const WORK: Duration = Duration::from_millis(1);

/// For the worker that pauses: how long its lease is, and how long it sleeps.
const SHORT_LEASE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(1_500);

/// A few workers that share a process, and a client.
pub(crate) struct Crew {
    pub(crate) server: String,
    pub(crate) keeper: PathBuf,
    pub(crate) number: u32,
    pub(crate) locked: bool,
    /// Its first worker sleeps past its lease, once.
    pub(crate) pauses: bool,
}

impl Crew {
    /// What [`Crew::from_args`] reads, in another process.
    pub(crate) fn to_args(&self) -> [String; 5] {
        let Self { server, keeper, number, locked, pauses } = self;
        let keeper = path_text(keeper);
        [server.clone(), keeper, number.to_string(), locked.to_string(), pauses.to_string()]
    }

    pub(crate) fn from_args(words: &[&str]) -> Result<Self, Box<dyn Error>> {
        let [server, keeper, number, locked, pauses] = words else {
            return Err("a crew needs five words".into());
        };
        Ok(Self {
            server: (*server).to_owned(),
            keeper: keeper.into(),
            number: number.parse()?,
            locked: locked.parse()?,
            pauses: pauses.parse()?,
        })
    }

    /// Serves all customers.
    pub(crate) fn work(&self) -> Result<(), Box<dyn Error>> {
        // One client is enough for a process, whatever the number of threads and locks.
        let client = Client::connect(&self.server)?;
        // The key names what is protected. By default waiting has no limit, and the lease
        // is renewed in the background for as long as the work goes on.
        let lock = client.lock("stock:deduct:sku_1001").ttl(Duration::from_secs(10));

        if self.pauses {
            self.sleep_past_the_lease(&lock)?;
        }
        thread::scope(|scope| {
            let workers: Vec<_> = (0..IN_A_CREW)
                .map(|_| scope.spawn(|| self.worker(&lock).map_err(|error| error.to_string())))
                .collect();
            for worker in workers {
                worker.join().map_err(|_| "a worker panicked")??;
            }
            Ok(())
        })
    }

    fn worker(&self, lock: &Lock) -> Result<(), Box<dyn Error>> {
        let mut keeper = Line::to(self)?;
        for _ in 0..CUSTOMERS {
            if !self.locked {
                keeper.sell(None, WORK)?;
                continue;
            }
            // This is all: the work gets the lease, and the lock is released behind it.
            let sale = match lock.run(|lease| keeper.sell(Some(&lease), WORK)) {
                Ok(sale) => sale,
                // The keeper has the last word on a sale whose lease was lost on the way.
                Err(RunError::Lost { output: Some(sale), .. }) => sale,
                // The sale stands; the key ends with its TTL.
                Err(RunError::Release { output: sale, .. }) => sale,
                Err(error) => return Err(error.into()),
            };
            sale?;
        }
        Ok(())
    }

    /// What the fence is for: the lease of this worker ends while it sleeps, another worker sells,
    /// and then this one writes what it believes to be right.
    fn sleep_past_the_lease(&self, lock: &Lock) -> Result<(), Box<dyn Error>> {
        let mut keeper = Line::to(self)?;
        // A whole process that stops cannot renew either; here only the worker sleeps, so the
        // renewal in the background is switched off.
        let short = lock.clone().ttl(SHORT_LEASE).renewal(Renewal::Manual);
        match short.run(|lease| keeper.sell(Some(&lease), PAUSE)) {
            Err(RunError::Lost { loss, output: Some(sale), .. }) => {
                println!("a worker slept past its lease: {loss}");
                println!("its sale:              {:?}", sale?);
                Ok(())
            }
            other => Err(format!("the lease was to be lost, and came to {other:?}").into()),
        }
    }
}

/// How a customer fared.
#[derive(Debug)]
enum Sale {
    Sold,
    SoldOut,
    /// The keeper has seen a later holder of the lock.
    RefusedAsStale,
}

/// A worker's line to the keeper.
struct Line {
    stream: BufReader<UnixStream>,
}

impl Line {
    fn to(crew: &Crew) -> Result<Self, Box<dyn Error>> {
        Ok(Self { stream: BufReader::new(UnixStream::connect(&crew.keeper)?) })
    }

    /// Sells one piece: read, work, write. Exactly what goes wrong when two do it at once.
    fn sell(&mut self, lease: Option<&Lease>, work: Duration) -> Result<Sale, String> {
        // The number goes with every request, so that the keeper can tell late ones.
        let fence = lease.map_or_else(String::new, |lease| {
            format!(" {} {}", lease.fencing_token(), lease.token().as_str())
        });
        let left = match self.ask(&format!("read{fence}"))?.as_str() {
            "stale" => return Ok(Sale::RefusedAsStale),
            left => left.parse::<u32>().map_err(|_| left.to_owned())?,
        };
        let Some(less) = left.checked_sub(1) else { return Ok(Sale::SoldOut) };
        thread::sleep(work);
        match self.ask(&format!("write {less}{fence}"))?.as_str() {
            "ok" => Ok(Sale::Sold),
            "stale" => Ok(Sale::RefusedAsStale),
            other => Err(other.to_owned()),
        }
    }

    fn ask(&mut self, request: &str) -> Result<String, String> {
        let mut answer = String::new();
        writeln!(self.stream.get_mut(), "{request}")
            .and_then(|()| self.stream.read_line(&mut answer))
            .map_err(|error| format!("the keeper is gone: {error}"))?;
        Ok(answer.trim_end().to_owned())
    }
}
