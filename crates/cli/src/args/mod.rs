//! The command line.

#[cfg(test)]
mod manual;
mod options;
mod run;
mod script;

use std::ffi::{OsStr, OsString};

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

pub(crate) use self::{
    run::RunArgs,
    script::{AcquireArgs, ExtendArgs, InitArgs, LockArgs, ReleaseArgs, StatusArgs, TOKEN},
};
use crate::{
    exit,
    failure::{Failure, quoted},
};

/// What the command line comes to.
#[derive(Debug)]
pub(crate) enum CommandLine {
    /// A command to run.
    Run(RunArgs),
    /// A lock to acquire and to leave held.
    Acquire(AcquireArgs),
    /// A lock to extend.
    Extend(ExtendArgs),
    /// A lock to release.
    Release(ReleaseArgs),
    /// A lock to look at.
    Status(StatusArgs),
    /// Servers to open by hand.
    Init(InitArgs),
    /// A text to print: the help, or the version.
    Text(String),
}

/// Reads the command line and the environment.
///
/// # Errors
///
/// What is wrong with them, found before anything is sent.
pub(crate) fn parse(line: impl IntoIterator<Item = OsString>) -> Result<CommandLine, Failure> {
    let line: Vec<OsString> = line.into_iter().collect();
    let matches = match tenure().try_get_matches_from(&line) {
        Ok(matches) => matches,
        Err(error) => return unparsed(&error, &line),
    };
    match matches.subcommand() {
        Some(("run", matches)) => RunArgs::read(matches, &line).map(CommandLine::Run),
        Some(("acquire", matches)) => AcquireArgs::read(matches).map(CommandLine::Acquire),
        Some(("extend", matches)) => ExtendArgs::read(matches).map(CommandLine::Extend),
        Some(("release", matches)) => ReleaseArgs::read(matches).map(CommandLine::Release),
        Some(("status", matches)) => StatusArgs::read(matches).map(CommandLine::Status),
        Some(("init", matches)) => InitArgs::read(matches).map(CommandLine::Init),
        _ => Err(Failure::new(exit::USAGE, "no such command")),
    }
}

/// A help text, or what is wrong, as one line, with what was probably meant.
fn unparsed(error: &clap::Error, line: &[OsString]) -> Result<CommandLine, Failure> {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Ok(CommandLine::Text(text));
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
    let failure = Failure::new(exit::USAGE, without_secrets(error, words));
    let failure = match suggested(error).or_else(|| with_one_dash(line)) {
        Some(meant) => failure.hint(&format!("is {meant} meant?")),
        None => failure,
    };
    Err(failure.hint("see `tenure --help` and `tenure run --help`"))
}

/// What is wrong, without an argument that may be a secret: a token, or an address.
fn without_secrets(error: &clap::Error, words: String) -> String {
    error.context().fold(words, |words, (_, value)| match value {
        ContextValue::String(given) if may_be_secret(given) => words.replace(given, "\u{2026}"),
        _ => words,
    })
}

fn may_be_secret(given: &str) -> bool {
    given.contains('@') || given.contains("://")
}

/// An argument that stands where it cannot, as it is shown.
fn misplaced(word: &OsStr) -> String {
    let shown = quoted(word.as_encoded_bytes());
    if may_be_secret(&shown) { "\u{2026}".to_owned() } else { shown }
}

/// What the parser finds most like an argument that it does not know.
fn suggested(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
    let meant = kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(meant) => Some(meant.clone()),
        ContextValue::Strings(meant) => meant.last().cloned(),
        _ => None,
    });
    meant.map(|meant| format!("`{meant}`"))
}

/// A long option that was written with one dash.
fn with_one_dash(line: &[OsString]) -> Option<String> {
    let tenure = tenure();
    let command = tenure.find_subcommand(line.get(1)?)?;
    let longs: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_long()).collect();
    line.iter().find_map(|word| {
        let name = word.to_str()?.strip_prefix('-')?;
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        longs.contains(&name).then(|| format!("`--{name}`"))
    })
}

/// The whole command line, for the parser and for the manual.
fn tenure() -> Command {
    Command::new("tenure")
        .about("Run commands and scripts under a lock on Redis or Valkey, or on this host")
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
        .subcommand(script::init())
}

/// How durations are written, for every help.
const DURATIONS: &str = "\
A duration D is a number of seconds, or has a unit: ms, s, m, h or d (1.5, 1500ms).
";

#[cfg(test)]
mod tests;
