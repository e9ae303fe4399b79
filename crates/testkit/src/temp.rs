//! Private directories, and the sweeping up after tests that were killed.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// A directory only this user can enter, removed on drop.
///
/// A test process that dies first, or keeps the directory in a `static`, leaves it behind. So the
/// owner holds a lock in it, and the next process that needs a directory removes those without.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
    _lock: File,
}

impl TempDir {
    /// Makes an empty directory.
    #[must_use]
    pub fn new() -> Self {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep(&base()));

        static NEXT: AtomicUsize = AtomicUsize::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = base().join(format!("{PREFIX}{}-{number}", process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let lock = File::create(path.join(LOCK)).expect("make a lock file");
                    flock(&lock, FlockOperation::NonBlockingLockExclusive)
                        .expect("lock a directory just made");
                    return Self { path, _lock: lock };
                }
                // Left behind by an earlier process of the same number.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => panic!("cannot make the directory {}: {e}", path.display()),
            }
        }
    }

    /// Where it is; absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Default for TempDir {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What cannot be removed now is swept up by a later process.
        drop(fs::remove_dir_all(&self.path));
    }
}

/// The system's temporary directory, unless a socket path in it would be too long for the kernel.
fn base() -> PathBuf {
    let dir = env::temp_dir();
    if dir.as_os_str().len() <= MAX_BASE { dir } else { PathBuf::from("/tmp") }
}

fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // A directory is made before it is locked: leave the very young ones alone.
        let old = entry
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNG));
        if ours && old && !is_locked(&entry.path()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

fn is_locked(dir: &Path) -> bool {
    File::open(dir.join(LOCK))
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
}

const PREFIX: &str = "tenure-test-";
const LOCK: &str = "owner.lock";
/// Far longer than the moment between making a directory and locking it.
const YOUNG: Duration = Duration::from_secs(60);
/// A Unix socket path has at most 107 bytes; ours appends fewer than 40.
const MAX_BASE: usize = 64;
