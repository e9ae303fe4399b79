//! Running other programs.

use std::env;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// Why a task did not succeed.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    /// Exit status for the caller.
    pub(crate) code: u8,
    message: String,
}

impl CommandFailure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// The same failure, with the name of the step in which it happened.
    pub(crate) fn within(&self, step: &str) -> Self {
        Self { code: self.code, message: format!("{step}: {}", self.message) }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The cargo that runs this task, in the root of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Runs a program before the user's eyes, and hands on its exit status.
pub(crate) fn run(command: &mut Command) -> Result<(), CommandFailure> {
    let shown = shown(command);
    let status =
        command.status().map_err(|e| CommandFailure::new(format!("cannot run {shown}: {e}")))?;
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(CommandFailure { code, message: format!("{shown}: {status}") })
}

/// Runs a program in silence; its output is shown only when it fails.
pub(crate) fn run_quietly(command: &mut Command) -> Result<String, CommandFailure> {
    let shown = shown(command);
    let out =
        command.output().map_err(|e| CommandFailure::new(format!("cannot run {shown}: {e}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if out.status.success() {
        return Ok(text(&out.stdout));
    }
    let said = text(&[out.stdout, out.stderr].concat());
    Err(CommandFailure::new(format!("{shown}: {}\n{said}", out.status)))
}

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}
