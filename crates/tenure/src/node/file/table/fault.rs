//! Why a transaction was not carried out.

use std::path::Path;

use rusqlite::{Error as SqlError, ErrorCode};

use crate::error::{NodeErrorKind, is_shortage};

/// Nothing of the transaction is in the store.
#[derive(Debug)]
pub(in crate::node::file) enum Fault {
    /// SQLite's word, and what it meant when it was said: a moment later there may be descriptors
    /// again.
    Sql(SqlError, NodeErrorKind),
    /// Other clients had all the turns.
    Busy,
    /// What is stored is not what was written.
    Damaged(String),
    /// The file is no store of this layout.
    NotOurs(String),
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Self {
        let kind = kind(&error);
        Self::Sql(error, kind)
    }
}

/// The fault in words, with the cure.
#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(
        "{what}: the store is damaged; end all programs that use it, then remove {file}",
        file = .file.display()
    )]
    Damaged { what: String, file: std::path::PathBuf },
    #[error("{0}")]
    NotOurs(String),
    #[error("other processes use it all the time")]
    Busy,
}

impl Fault {
    /// Whether others are in the way, which ends by itself.
    pub(in crate::node::file) fn is_busy(&self) -> bool {
        self.kind() == NodeErrorKind::Busy
    }

    pub(in crate::node::file) fn kind(&self) -> NodeErrorKind {
        match self {
            Self::Sql(_, kind) => *kind,
            Self::Busy => NodeErrorKind::Busy,
            Self::Damaged(_) | Self::NotOurs(_) => NodeErrorKind::UnfitStore,
        }
    }

    /// The cause of an error, for people.
    pub(in crate::node::file) fn cause(
        self,
        file: &Path,
    ) -> Box<dyn std::error::Error + Send + Sync> {
        let is_damage = self.kind() == NodeErrorKind::UnfitStore;
        let damaged = |what| Cause::Damaged { what, file: file.to_owned() }.into();
        match self {
            Self::Sql(error, _) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                Cause::NotOurs(error.to_string()).into()
            }
            Self::Sql(error, _) if is_damage => damaged(error.to_string()),
            Self::Sql(error, _) => error.into(),
            Self::Busy => Cause::Busy.into(),
            Self::Damaged(what) => damaged(what),
            Self::NotOurs(what) => Cause::NotOurs(what).into(),
        }
    }
}

fn kind(error: &SqlError) -> NodeErrorKind {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => NodeErrorKind::Busy,
        Some(ErrorCode::DiskFull) => NodeErrorKind::DiskFull,
        // SQLite does not say why.
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
            if is_shortage(&std::io::Error::other("unknown")) =>
        {
            NodeErrorKind::NoResources
        }
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure,
        ) => NodeErrorKind::Unreachable,
        Some(ErrorCode::OutOfMemory) => NodeErrorKind::Refused,
        // Our statements are right. A value or a table that is not what it has to be was
        // damaged.
        _ => NodeErrorKind::UnfitStore,
    }
}
