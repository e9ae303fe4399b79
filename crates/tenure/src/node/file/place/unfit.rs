//! Why a store cannot be used.

use std::{io, path::PathBuf};

/// Why a place cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub(in crate::node::file) enum Unfit {
    #[error(
        "{path} belongs to another user (number {1}); put the store into a directory of your own",
        path = .0.display()
    )]
    Owner(PathBuf, u32),
    #[error(
        "{path} can be written by others (mode {1:03o}), who could replace the store; \
         `chmod go-w {path}`",
        path = .0.display()
    )]
    Writable(PathBuf, u32),
    #[error(
        "{path} can be opened by others (mode {1:03o}), who could keep it locked; \
         `chmod 600 {path}`",
        path = .0.display()
    )]
    Open(PathBuf, u32),
    #[error("{path} is a symbolic link; name the file that it leads to", path = .0.display())]
    Link(PathBuf),
    #[error(
        "{path} is a symbolic link of another user (number {1}), who may lead it elsewhere; \
         name the directory that it leads to",
        path = .0.display()
    )]
    OthersLink(PathBuf, u32),
    #[error("{path} leads through too many symbolic links", path = .0.display())]
    Loop(PathBuf),
    #[error(
        "{path} has {1} names, and under each SQLite would keep another journal; remove the others",
        path = .0.display()
    )]
    Names(PathBuf, u64),
    #[error(
        "{path} is mounted by itself, and its journal is not; mount its directory instead",
        path = .0.display()
    )]
    Mounted(PathBuf),
    #[error(
        "{path} is there, so another program uses the store in SQLite's WAL mode; \
         when none does, remove it",
        path = .0.display()
    )]
    OtherLog(PathBuf),
    #[error(
        "{path} is on a file system ({1}) that is not known to be this host's own, so file locks \
         there may exclude nobody; name a file on a local disk, or use a server",
        path = .0.display()
    )]
    FileSystem(PathBuf, String),
    #[error("{path} is no regular file", path = .0.display())]
    NotAFile(PathBuf),
    #[error("no home directory is known for user {0}; name a file: file:///path/to/locks.db")]
    NoHome(u32),
    #[error(
        "HOME is the relative path {0:?}, so the store would depend on the working directory; \
         set HOME to an absolute path, or name a file: file:///path/to/locks.db"
    )]
    RelativeHome(PathBuf),
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, #[source] io::Error),
}
