//! The command line.

#[cfg(test)]
mod manual;
mod options;
mod run;
mod script;

use std::ffi::OsString;

use clap::{Command, error::ErrorKind};

pub(crate) use self::{
    run::Run,
    script::{Acquire, Extend, Release, Status, TOKEN, Target},
};
use crate::{exit, failure::Failure};

/// What the command line comes to.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// A command to run.
    Run(Run),
    /// A lock to acquire and to leave held.
    Acquire(Acquire),
    /// A lock to extend.
    Extend(Extend),
    /// A lock to release.
    Release(Release),
    /// A lock to look at.
    Status(Status),
    /// A text to print: the help, or the version.
    Text(String),
}

/// Reads the command line and the environment.
///
/// # Errors
///
/// What is wrong with them, found before anything is sent.
pub(crate) fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Parsed, Failure> {
    let line: Vec<_> = line.into_iter().collect();
    let matches = match tenure().try_get_matches_from(&line) {
        Ok(matches) => matches,
        Err(error) => return unparsed(&error),
    };
    match matches.subcommand() {
        Some(("run", matches)) => Run::read(matches, &line).map(Parsed::Run),
        Some(("acquire", matches)) => Acquire::read(matches).map(Parsed::Acquire),
        Some(("extend", matches)) => Extend::read(matches).map(Parsed::Extend),
        Some(("release", matches)) => Release::read(matches).map(Parsed::Release),
        Some(("status", matches)) => Status::read(matches).map(Parsed::Status),
        _ => Err(Failure::new(exit::USAGE, "no such command")),
    }
}

/// A help text, or the first paragraph of what is wrong, as one line.
fn unparsed(error: &clap::Error) -> Result<Parsed, Failure> {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Ok(Parsed::Text(text));
    }
    let words = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "what is to be done?".to_owned()
        }
        _ => {
            let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
            lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
        }
    };
    Err(Failure::new(exit::USAGE, words).hint("see `tenure --help` and `tenure run --help`"))
}

/// The whole command line, for the parser and for the manual.
fn tenure() -> Command {
    Command::new("tenure")
        .about(
            "Runs commands and scripts under a lock that is shared by many hosts, on Redis or \
             Valkey, or by the processes of one host.",
        )
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(options::help())
        .arg(options::version())
        .after_help(exit::table())
        .subcommand(run::command())
        .subcommand(script::acquire())
        .subcommand(script::extend())
        .subcommand(script::release())
        .subcommand(script::status())
}

/// How durations are written, for every help.
const DURATIONS: &str = "\
A duration D is a number of seconds, or a number with ms, s, m, h or d behind it, such as 1.5
or 1500ms.
";

#[cfg(test)]
mod tests;
