//! Which process this is: a forked child has its parent's memory, and none of its threads.

#[cfg(any(target_os = "linux", target_os = "android"))]
use std::{
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The process that made this.
///
/// A process number alone does not tell a child from its parent: in a PID namespace of its own it
/// may have the same one. On Linux the kernel wipes a marked page in every child, however it was
/// forked; elsewhere, and on kernels before 4.14, the number has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u64);

impl Process {
    /// This process.
    pub(crate) fn current() -> Self {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(mark) = mark() {
            return Self(marked(mark));
        }
        Self(std::process::id().into())
    }

    /// Whether this process is that one.
    pub(crate) fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// What the page says, once it says anything: no two processes with one ancestor agree.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn marked(mark: &AtomicU64) -> u64 {
    /// Copied by `fork`, unlike the page: a child goes on counting.
    static LAST: AtomicU64 = AtomicU64::new(0);
    match mark.load(Ordering::Relaxed) {
        0 => {
            let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let marked = mark.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
            // Another thread was first.
            marked.map_or_else(|other| other, |_| next)
        }
        marked => marked,
    }
}

/// A page that reads as zero in a forked child; `None` where the kernel has no such thing.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn mark() -> Option<&'static AtomicU64> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    static MARK: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    const SIZE: usize = size_of::<AtomicU64>();
    *MARK.get_or_init(|| {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        #[expect(unsafe_code, reason = "no safe crate maps memory that a fork wipes")]
        // SAFETY: the mapping is new, so nothing else is there; it is at least one page, aligned to
        // it and zeroed, which is a valid `AtomicU64`; and it is never unmapped.
        unsafe {
            let page = mmap_anonymous(ptr::null_mut(), SIZE, access, MapFlags::PRIVATE).ok()?;
            madvise(page, SIZE, Advice::LinuxWipeOnFork).ok()?;
            Some(&*page.cast::<AtomicU64>())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_on_every_thread() {
        let process = Process::current();
        let others: Vec<_> = (0..8).map(|_| std::thread::spawn(Process::current)).collect();
        for other in others {
            assert_eq!(other.join().unwrap(), process);
        }
        assert!(process.is_current());
    }
}
