//! The shop that sells 100 pieces to too many customers, as the lock tutorials have it.
//!
//! ```text
//! cargo run --example stock                                    # threads, no server needed
//! cargo run --example stock -- redis://127.0.0.1:6379          # 4 processes, a real server
//! cargo run --example stock -- redis://127.0.0.1:6379 --without-lock
//! ```
//!
//! 16 workers sell from one stock. To sell a piece, a worker reads how much is left, does a little
//! work, and writes back one less. Two workers that do this at the same moment read the same
//! number, and both write the same number back: two pieces sold, one taken off. That is how shops
//! oversell; `--without-lock` shows it. With the lock around the sale it does not happen.
//!
//! One more thing is shown, and it is the one that most tutorials leave out. A worker can be paused
//! (by a full disk, a suspended machine, a long garbage collection) for longer than its lease, and
//! go on as if it still held the lock. No lock can prevent that: the worker is not awake to
//! notice. What helps is the *resource*. Every acquisition has a fencing number, larger than all
//! before it; the worker shows it with each request, and the stock keeper refuses one that is
//! smaller than a number it has already seen. `keeper.rs` does it in one line.
//!
//! The exit code is 1 when the shop has oversold, 0 when not, and 2 when something else is wrong.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks")]

mod keeper;
mod worker;

use std::{
    error::Error,
    path::Path,
    process::{Child, Command, ExitCode},
    thread::{self, JoinHandle},
};

use keeper::{Keeper, Ledger};
use worker::Crew;

/// What there is to sell.
const STOCK: u32 = 100;

/// Each crew is a process of its own, when there is a server that processes can share.
const CREWS: u32 = 4;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        // How this program calls itself for the other processes.
        ["--crew", words @ ..] => Crew::from_args(words).and_then(|crew| crew.work()).map(|()| 0),
        words => sell(words),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("stock: {error}");
            ExitCode::from(2)
        }
    }
}

/// Opens the shop, waits until everybody has bought or was turned away, and reads the ledger.
fn sell(words: &[&str]) -> Result<u8, Box<dyn Error>> {
    let (mut server, mut locked, mut pause) = (None, true, true);
    for word in words {
        match *word {
            "--with-pause" => pause = true,
            "--without-pause" => pause = false,
            "--without-lock" => locked = false,
            address if !address.starts_with('-') => server = Some(address),
            other => return Err(format!("do not know {other}").into()),
        }
    }
    // The lock's server and the stock are two things: the lock protects any resource.
    let keeper = Keeper::open(STOCK)?;
    let crew = |number| Crew {
        server: server.unwrap_or("memory://stock").to_owned(),
        keeper: keeper.socket().to_owned(),
        number,
        locked,
        pauses: locked && pause && number == 0,
    };

    // A table in memory is shared by this process only; servers are shared by all.
    let start = |crew: Crew| if server.is_some() { start_process(&crew) } else { Ok(thread(crew)) };
    let mut crews = vec![start(crew(0))?];
    if crew(0).pauses {
        // The worker that is going to pause has the lock by now, and the others come upon it.
        keeper.wait_for_a_read();
    }
    for number in 1..CREWS {
        crews.push(start(crew(number))?);
    }
    for crew in crews {
        crew.wait()?;
    }
    let place = if server.is_some() { "processes" } else { "threads" };
    println!("{} workers in {CREWS} {place}", CREWS * worker::IN_A_CREW);
    Ok(report(&keeper.close(), locked))
}

/// Prints what the ledger says, and gives the exit code.
fn report(ledger: &Ledger, locked: bool) -> u8 {
    let sold = ledger.sold();
    println!("sold:                  {sold} of {STOCK}");
    println!("left:                  {}", ledger.left);
    println!("refused by the fence:  {}", ledger.refused);
    if locked {
        let growing = ledger.numbers.is_sorted_by(|earlier, later| earlier < later);
        println!("fencing numbers:       {}", if growing { "strictly growing" } else { "WRONG" });
        if !growing {
            return 2;
        }
    }
    // Every piece that was sold must have come off the stock.
    let not_taken_off = (sold + ledger.left).saturating_sub(STOCK);
    if not_taken_off > 0 {
        println!("not taken off:         {not_taken_off}");
        println!("oversold by {}", sold.saturating_sub(STOCK));
        return 1;
    }
    println!("never oversold");
    // Without the lock this is luck, and the example has shown nothing.
    if locked { 0 } else { 2 }
}

/// Workers under way.
enum Running {
    Process(Child),
    Thread(JoinHandle<Result<(), String>>),
}

impl Running {
    fn wait(self) -> Result<(), Box<dyn Error>> {
        match self {
            Self::Process(mut child) => {
                let status = child.wait()?;
                if status.success() { Ok(()) } else { Err(format!("a crew: {status}").into()) }
            }
            Self::Thread(thread) => Ok(thread.join().map_err(|_| "a crew panicked")??),
        }
    }
}

fn start_process(crew: &Crew) -> Result<Running, Box<dyn Error>> {
    let this_program = std::env::current_exe()?;
    Ok(Running::Process(Command::new(this_program).arg("--crew").args(crew.to_args()).spawn()?))
}

fn thread(crew: Crew) -> Running {
    Running::Thread(thread::spawn(move || crew.work().map_err(|error| error.to_string())))
}

/// A socket's path as an argument for another process.
fn path_text(path: &Path) -> String {
    path.display().to_string()
}
