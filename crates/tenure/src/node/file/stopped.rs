//! Processes that are stopped while they hold the store's file lock.

use std::{
    error::Error,
    fmt, fs,
    os::unix::fs::MetadataExt as _,
    sync::{Mutex, PoisonError},
};

use tenure_core::Shown;

use super::place::Identity;

/// The stopped process that the last op met, for the error of an op whose time is over before the
/// store's thread has answered it.
#[derive(Debug, Default)]
pub(super) struct Obstacle(Mutex<Option<StoppedHolder>>);

impl Obstacle {
    pub(super) fn set(&self, holder: Option<StoppedHolder>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = holder;
    }

    pub(super) fn get(&self) -> Option<StoppedHolder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A stopped process that keeps the store locked.
///
/// SIGSTOP and Ctrl-Z can hit a process inside its transaction, which takes some 50 µs. Then nobody
/// can use the store until the process continues or ends. Only its user can decide which: it may
/// have been stopped on purpose. So it is named, and no signal is sent.
#[derive(Clone, Debug)]
pub(super) struct StoppedHolder {
    pid: u32,
    name: String,
}

impl StoppedHolder {
    /// Finds the stopped process that holds a lock on the file with this device and inode. It may
    /// be a directory.
    ///
    /// `/proc/locks` names the file system by another number than `stat` on some file systems, so
    /// the device is compared at the descriptors of the process. Where those cannot be read, as
    /// with another user's process, no process is named.
    pub(super) fn find(file: Identity) -> Option<Self> {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let mut holders = locks.lines().filter_map(|lock| holder(lock, file.1));
        holders.find_map(|pid| {
            let name = stopped_name(pid)?;
            has_open(pid, file).then_some(Self { pid, name })
        })
    }
}

impl fmt::Display for StoppedHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, name } = self;
        write!(
            f,
            "process {pid} ({name}) is stopped inside its transaction: continue it with \
             `kill -CONT {pid}`, or end it"
        )
    }
}

impl Error for StoppedHolder {}

/// The holder that a line of `/proc/locks` names, when it is about this inode:
/// `1: POSIX  ADVISORY  WRITE 4711 fe:01:131072 0 EOF`.
fn holder(lock: &str, inode: u64) -> Option<u32> {
    let mut fields = lock.split_ascii_whitespace().skip(4);
    let pid = fields.next()?.parse().ok()?;
    let is_this = fields.next()?.rsplit(':').next()?.parse() == Ok(inode);
    is_this.then_some(pid)
}

/// The name of a process, if it is stopped.
fn stopped_name(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // "PID (name) STATE …", where the name may hold anything.
    let (before, state) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    state.starts_with('T').then(|| Shown::new(name).to_string())
}

fn has_open(pid: u32, file: Identity) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    descriptors.into_iter().flatten().flatten().any(|descriptor| {
        // Follows the link to the file itself, whatever has become of its path.
        let open = fs::metadata(descriptor.path());
        open.is_ok_and(|open| (open.dev(), open.ino()) == file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_files_name_no_process() {
        let line = "1: POSIX  ADVISORY  WRITE 4711 fe:01:131072 1073741826 1073742335";
        assert_eq!(holder(line, 131_072), Some(4711));
        assert_eq!(holder(line, 131_073), None);
        // A waiter's line has an arrow before its kind.
        assert_eq!(holder("1: -> POSIX  ADVISORY  WRITE 4711 fe:01:131072 0 0", 131_072), None);
        assert_eq!(holder("", 1), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_is_known_by_its_device_as_well_as_its_inode() {
        let file = fs::File::open("/proc/self/exe").unwrap();
        let (device, inode) = file.metadata().map(|file| (file.dev(), file.ino())).unwrap();
        let own = std::process::id();
        assert!(has_open(own, (device, inode)));
        assert!(!has_open(own, (device + 1, inode)));
        assert!(!has_open(own, (device, inode + 1)));
    }
}
