//! Developer tasks of tenure; `cargo xtask` lists them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user")]

mod bench;
mod ci;
mod command;
mod fuzz;
mod install;
mod soak;
mod test;
mod tidy;

use std::env;
use std::process::ExitCode;

use crate::command::CommandFailure;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let (task, rest) = args.split_first().map_or(("", args.as_slice()), |(t, r)| (t.as_str(), r));
    let outcome = match task {
        "ci" => ci::run(rest),
        "check" => ci::check(),
        "test" => test::run(rest),
        "fuzz" => fuzz::run(rest),
        "soak" => soak::run(rest),
        "tidy" => tidy::run(),
        "bench" => bench::run(rest),
        "" | "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(CommandFailure::new(format!("no task is called {other:?}\n{USAGE}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.code)
        }
    }
}

const USAGE: &str = "\
usage: cargo xtask TASK

  ci                             everything a change must pass, in order, timed
  check                          the same but the tests
  test [--install] [-- ARGS]     the tests; ARGS go to `cargo test`
  fuzz [--seconds N] [--seed N] [TARGET]
                                 parsers fed with mutated seeds; 60 s together unless set
  soak [--install] [-- ARGS]     the tests at their full size, optimized
  tidy                           what compilers and lints do not check
  bench [--install] NAME [ARGS]  a benchmark: contended, cycle, quorum, renewal, startup, store
                                 or waiters

--install fetches the servers the tests need; so does the variable CI.";
