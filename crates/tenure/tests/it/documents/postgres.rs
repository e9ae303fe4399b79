//! A database server of its own for one test.

use std::{
    fs,
    io::Write as _,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tenure_testkit::TempDir;

/// A server with an empty database, on a Unix socket in a directory of its own. Stopped on drop.
pub(super) struct Postgres {
    programs: PathBuf,
    directory: TempDir,
}

impl Postgres {
    /// Starts a server; `None` where it is not installed.
    pub(super) fn start() -> Option<Self> {
        let server = Self { programs: programs()?, directory: TempDir::new() };
        if is_root() {
            chown(server.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let data = server.path().join("data");
        let initdb = ["--auth=trust", "--username=postgres", "--no-sync", "--locale=C", "-D"];
        succeed(server.command("initdb").args(initdb).arg(&data));
        let options = format!("-c listen_addresses= -k {}", server.path().display());
        let log = server.path().join("log");
        let start = ["start", "-w", "-o", &options, "-D"];
        succeed(server.command("pg_ctl").args(start).arg(&data).arg("-l").arg(log));
        Some(server)
    }

    /// Runs SQL with these variables (`name=value`), and returns the rows, or what was done.
    pub(super) fn run(&self, sql: &str, variables: &[String]) -> String {
        let mut psql = self.command("psql");
        psql.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"]);
        psql.arg(self.path()).args(["-f", "-"]);
        variables.iter().for_each(|variable| _ = psql.args(["-v", variable]));
        let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = psql.stdin.take().unwrap();
        input.write_all(sql.trim_end().trim_end_matches(';').as_bytes()).unwrap();
        input.write_all(b";\n").unwrap();
        drop(input);
        let output = psql.wait_with_output().unwrap();
        assert!(output.status.success(), "{sql}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A program of the server, which refuses to run as root.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.path()).env_clear();
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.path().join("data");
        let stop = ["stop", "-w", "-m", "immediate", "-D"];
        succeed(self.command("pg_ctl").args(stop).arg(data));
    }
}

/// The user and the group that own nothing, on Linux.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Where the programs are: Debian keeps those of each version in a directory of its own.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let directories = versions.map(|version| version.path().join("bin"));
    let mut directories = directories.chain(std::env::split_paths(&path));
    directories.find(|directory| {
        ["initdb", "pg_ctl", "psql"].iter().all(|name| directory.join(name).is_file())
    })
}

fn succeed(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}
