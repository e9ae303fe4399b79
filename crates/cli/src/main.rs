//! The command `tenure`: run a command while holding a lock on Redis or Valkey, or in a store of
//! this host.

mod acquire;
mod args;
mod child;
mod duration;
mod events;
mod exit;
mod failure;
mod json;
mod run;
mod script;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use self::{args::Parsed, failure::Failure};

fn main() -> ExitCode {
    let outcome = args::parse(std::env::args_os()).and_then(|parsed| match parsed {
        Parsed::Run(wanted) => run::run(&wanted),
        Parsed::Acquire(wanted) => script::acquire(&wanted),
        Parsed::Extend(wanted) => script::extend(&wanted),
        Parsed::Release(wanted) => script::release(&wanted),
        Parsed::Status(wanted) => script::status(&wanted),
        Parsed::Text(text) => {
            // A reader that has seen enough, such as `head`, is no trouble.
            _ = io::stdout().write_all(text.as_bytes());
            Ok(0)
        }
    });
    outcome.map_or_else(|failure: Failure| failure.tell(), ExitCode::from)
}
