//! Where the store is, and whether it may be trusted.

use std::{
    fmt, fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode};
use tenure_core::Shown;

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

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("{0} belongs to another user (number {1}); what holds locks must be one's own")]
    Owner(PathBuf, u32),
    #[error("{0} can be written by others (mode {1:03o}); it must not be")]
    Writable(PathBuf, u32),
    #[error("{0} is on a network file system ({1}), where file locks cannot be trusted")]
    Network(PathBuf, &'static str),
    #[error("{0} is no regular file")]
    NotAFile(PathBuf),
    #[error("no home directory is known for user {0}; name a file: file:///path/to/locks.db")]
    NoHome(u32),
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
}

/// The file of a store, made with its directory when it is this user's own; checked in any case.
pub(super) fn prepare(location: &Location) -> Result<PathBuf, Unfit> {
    let file = match location {
        Location::At(file) => file.clone(),
        Location::Own => {
            let directory = own_directory()?;
            make_private(&directory)?;
            directory.join("locks.db")
        }
    };
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    check_file_system(directory)?;
    check_directory(directory)?;
    make(&file)?;
    if !metadata(&file)?.is_file() {
        return Err(Unfit::NotAFile(file));
    }
    check_owner(&file)?;
    // SQLite plays these back, whoever made them.
    for suffix in ["-journal", "-wal"] {
        let mut log = file.clone().into_os_string();
        log.push(suffix);
        match check_owner(Path::new(&log)) {
            Err(Unfit::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
            checked => checked?,
        }
    }
    Ok(file)
}

/// Makes the file, if it is not there, without opening it: whoever closes a file gives up all the
/// locks that its process has there, those of another client's transaction too.
fn make(file: &Path) -> Result<(), Unfit> {
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::mknodat(CWD, file, FileType::RegularFile, mode, 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(Unfit::Io(file.to_owned(), error.into())),
    }
}

/// `~/.local/state/tenure` under the home of the user's account.
///
/// Not a run-time directory, which cron jobs do not have; and not `$HOME` first, which `sudo` may
/// leave pointing at another's.
fn own_directory() -> Result<PathBuf, Unfit> {
    let user = rustix::process::geteuid().as_raw();
    let home = home_in_passwd(user).or_else(std::env::home_dir);
    Ok(home.ok_or(Unfit::NoHome(user))?.join(".local/state/tenure"))
}

fn home_in_passwd(user: u32) -> Option<PathBuf> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    accounts.lines().find_map(|account| {
        let mut fields = account.split(':');
        let number = fields.nth(2)?.parse::<u32>().ok()?;
        let home = fields.nth(2)?;
        (number == user && home.starts_with('/')).then(|| PathBuf::from(home))
    })
}

fn make_private(directory: &Path) -> Result<(), Unfit> {
    let failed = |error| Unfit::Io(directory.to_owned(), error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    check_owner(directory)
}

/// Whose file it is: one that others own, or may write, is no proof of anything.
fn check_owner(path: &Path) -> Result<(), Unfit> {
    let metadata = metadata(path)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(Unfit::Owner(path.to_owned(), metadata.uid()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(Unfit::Writable(path.to_owned(), mode));
    }
    Ok(())
}

/// Who may put another file in the store's place: nobody but this user and root, whose directories
/// are everybody's to be in, such as /tmp with its sticky bit.
fn check_directory(directory: &Path) -> Result<(), Unfit> {
    let metadata = metadata(directory)?;
    if ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid()) {
        return Err(Unfit::Owner(directory.to_owned(), metadata.uid()));
    }
    let mode = metadata.mode() & 0o1777;
    if mode & 0o1002 == 0o002 {
        return Err(Unfit::Writable(directory.to_owned(), mode));
    }
    Ok(())
}

fn metadata(path: &Path) -> Result<fs::Metadata, Unfit> {
    fs::metadata(path).map_err(|error| Unfit::Io(path.to_owned(), error))
}

#[cfg(target_os = "linux")]
fn check_file_system(directory: &Path) -> Result<(), Unfit> {
    let stat = rustix::fs::statfs(directory)
        .map_err(|error| Unfit::Io(directory.to_owned(), error.into()))?;
    // Magic numbers of linux/magic.h and of the file systems' own headers.
    let network = match u32::try_from(stat.f_type & 0xffff_ffff) {
        Ok(0x6969) => "nfs",
        Ok(0x517b) => "smb",
        Ok(0xff53_4d42) => "cifs",
        Ok(0xfe53_4d42) => "smb2",
        Ok(0x0102_1997) => "9p",
        Ok(0x00c3_6400) => "ceph",
        Ok(0x5346_414f) => "afs",
        Ok(0x0bd0_0bd0) => "lustre",
        Ok(0x6573_5546) => "fuse",
        _ => return Ok(()),
    };
    Err(Unfit::Network(directory.to_owned(), network))
}

#[cfg(not(target_os = "linux"))]
fn check_file_system(_directory: &Path) -> Result<(), Unfit> {
    Ok(())
}
