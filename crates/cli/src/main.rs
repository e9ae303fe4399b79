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

use self::{args::CommandLine, failure::Failure};

fn main() -> ExitCode {
    system::outlive_file_limits();
    let outcome = args::parse(std::env::args_os()).and_then(|parsed| match parsed {
        CommandLine::Run(wanted) => run::run(&wanted),
        CommandLine::Acquire(wanted) => script::acquire(&wanted),
        CommandLine::Extend(wanted) => script::extend(&wanted),
        CommandLine::Release(wanted) => script::release(&wanted),
        CommandLine::Status(wanted) => script::status(&wanted),
        CommandLine::Init(wanted) => script::init(&wanted),
        CommandLine::Text(text) => output::show(&text).map(|()| 0),
    });
    let code = outcome.map_or_else(|failure: Failure| failure.report(), ExitCode::from);
    messages::flush();
    code
}
