//! Where the store is, and whether it may be trusted.

mod directory;
mod file_system;
mod home;
mod unfit;

use std::{
    fmt, fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode};
use tenure_core::Shown;

pub(super) use self::{
    directory::{Directory, check_private, make_private},
    unfit::Unfit,
};

/// Where a store is kept.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// `local:`, this user's own store.
    Own,
    /// `file:///path`.
    At(PathBuf),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("local:"),
            Self::At(path) => Shown::new(path.as_os_str().as_encoded_bytes()).fmt(f),
        }
    }
}

/// Which file it is: its device, and its inode there.
pub(super) type Identity = (u64, u64);

/// The file of a store, made if it is not there, and checked in any case. Its path has no symbolic
/// links.
pub(super) fn prepare(location: &Location) -> Result<PathBuf, Unfit> {
    let named = match location {
        Location::At(file) => file.clone(),
        Location::Own => home::own_directory()?.join("locks.db"),
    };
    let (Some(directory), Some(name)) = (named.parent(), named.file_name()) else {
        return Err(Unfit::NotAFile(named));
    };
    let directory = directory::real(directory)?;
    file_system::check(&directory)?;
    let file = directory.join(name);
    make(&file)?;
    check(&file)?;
    // SQLite plays a journal back, whatever it says.
    match check(&beside(&file, "-journal")) {
        Err(Unfit::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
        checked => _ = checked?,
    }
    // SQLite reads them in place of the store, and no store of ours has them.
    for suffix in ["-wal", "-shm"] {
        let log = beside(&file, suffix);
        if fs::symlink_metadata(&log).is_ok() {
            return Err(Unfit::OtherLog(log));
        }
    }
    Ok(file)
}

/// Checks that nobody but this user can open the file, and that it has one name and one path: under
/// another path SQLite looks for another journal. Returns which file it is.
pub(super) fn check(file: &Path) -> Result<Identity, Unfit> {
    let of = || file.to_owned();
    let metadata = metadata(file)?;
    if metadata.is_symlink() {
        return Err(Unfit::Link(of()));
    }
    if !metadata.is_file() {
        return Err(Unfit::NotAFile(of()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(Unfit::Owner(of(), metadata.uid()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Unfit::Open(of(), mode));
    }
    if metadata.nlink() > 1 {
        return Err(Unfit::Names(of(), metadata.nlink()));
    }
    Ok((metadata.dev(), metadata.ino()))
}

/// What SQLite keeps beside the file.
pub(super) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.to_owned().into_os_string();
    name.push(suffix);
    name.into()
}

/// Makes the file, if it is not there, without opening it: closing a file gives up all the
/// locks that the process has there, those of another client's transaction too.
fn make(file: &Path) -> Result<(), Unfit> {
    match rustix::fs::mknodat(CWD, file, FileType::RegularFile, Mode::from_raw_mode(OWN_FILE), 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(Unfit::Io(file.to_owned(), error.into())),
    }
    if file_system::is_mount_point(file) {
        return Err(Unfit::Mounted(file.to_owned()));
    }
    give_owner(file, OWN_FILE)
}

/// Gives this user the rights to its own file or directory that a umask kept from it.
pub(super) fn give_owner(path: &Path, rights: u32) -> Result<(), Unfit> {
    let metadata = metadata(path)?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    let mode = metadata.mode() & 0o7777;
    if !is_own || metadata.is_symlink() || mode & rights == rights {
        return Ok(());
    }
    let mode = Mode::from_raw_mode(mode | rights);
    let changed = rustix::fs::chmod(path, mode);
    changed.map_err(|error| Unfit::Io(path.to_owned(), error.into()))
}

/// Which file or directory it is.
pub(super) fn identity(path: &Path) -> Result<Identity, Unfit> {
    metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

fn metadata(path: &Path) -> Result<fs::Metadata, Unfit> {
    fs::symlink_metadata(path).map_err(|error| Unfit::Io(path.to_owned(), error))
}

const OWN_FILE: u32 = 0o600;
const OWN_DIRECTORY: u32 = 0o700;
