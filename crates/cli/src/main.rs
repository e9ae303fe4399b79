//! The command `tenure`: run a command while holding a lock on Redis or Valkey, or in a store of
//! this host.

mod acquire;
mod args;
mod child;
mod client;
mod duration;
mod events;
mod exit;
mod failure;
#[cfg(test)]
mod fuzz;
mod json;
mod messages;
mod output;
mod run;
mod script;
mod system;

use std::process::ExitCode;

use self::{args::Parsed, failure::Failure};

fn main() -> ExitCode {
    system::outlive_file_limits();
    let outcome = args::parse(std::env::args_os()).and_then(|parsed| match parsed {
        Parsed::Run(wanted) => run::run(&wanted),
        Parsed::Acquire(wanted) => script::acquire(&wanted),
        Parsed::Extend(wanted) => script::extend(&wanted),
        Parsed::Release(wanted) => script::release(&wanted),
        Parsed::Status(wanted) => script::status(&wanted),
        Parsed::Init(wanted) => script::init(&wanted),
        Parsed::Text(text) => output::show(&text).map(|()| 0),
    });
    let code = outcome.map_or_else(|failure: Failure| failure.tell(), ExitCode::from);
    messages::flush();
    code
}
