//! The moment at which an outer `tenure run` kills its descendants, as it passes it to inner ones.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::Path,
    time::Duration,
};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::system::Moment;

/// Where a tool publishes the moment at which it kills its descendants.
///
/// An environment variable cannot carry the moment itself, which is unknown until the lease is
/// lost. So it names a file in memory, through `/proc`, and with it those of all outer tools.
#[derive(Debug)]
pub(crate) struct Deadline(Option<File>);

impl Deadline {
    /// The variable that names the files, with colons between them.
    pub(crate) const VARIABLE: &str = "TENURE_DEADLINES";

    /// A place for a moment that is not known yet. Without a descriptor left, there is none.
    pub(crate) fn new() -> Self {
        Self(memfd_create("tenure-deadline", MemfdFlags::CLOEXEC).ok().map(File::from))
    }

    /// What the variable is to be for the command.
    pub(crate) fn variable(&self) -> OsString {
        let own = self
            .0
            .as_ref()
            .map(|file| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into());
        let outer = env::var_os(Self::VARIABLE).filter(|names| !names.is_empty());
        let names: Vec<OsString> = outer.into_iter().chain(own).collect();
        names.join(":".as_ref())
    }

    /// Publishes the moment.
    pub(crate) fn publish(&self, at: Moment) {
        if let Some(file) = &self.0 {
            // Memory for a line is all it needs; inner tools are killed at the moment in any case.
            _ = file
                .write_all_at(format!("{MARK}{:020}\n", at.of_start().as_nanos()).as_bytes(), 0);
        }
    }

    /// The moments that outer tools have published, each with how many levels up that tool is.
    pub(crate) fn of_outer() -> Vec<(u32, Moment)> {
        let names = env::var_os(Self::VARIABLE).unwrap_or_default();
        let names: Vec<_> = env::split_paths(&names).collect();
        let published = (1..).zip(names.iter().rev());
        published.filter_map(|(levels, name)| Some((levels, Self::read(name)?))).collect()
    }

    fn read(name: &Path) -> Option<Moment> {
        // Whatever another process has open at that number now is not read to its end, if any.
        if !fs::metadata(name).ok()?.is_file() {
            return None;
        }
        let mut text = [0; LENGTH];
        File::open(name).ok()?.read_exact_at(&mut text, 0).ok()?;
        let nanos = std::str::from_utf8(&text).ok()?.strip_prefix(MARK)?.trim_end().parse().ok()?;
        Some(Moment::since_start(Duration::from_nanos(nanos)))
    }
}

/// What the line begins with: the number may belong to another file by now.
const MARK: &str = "tenure kills at ";

/// The line's length: the mark, 20 digits and its end.
const LENGTH: usize = MARK.len() + 21;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_passed_through_the_file_system() {
        let deadline = Deadline::new();
        let name = deadline.variable();
        assert_eq!(Deadline::read(name.as_ref()), None, "not known yet");
        let at = Moment::now();
        deadline.publish(at);
        assert_eq!(Deadline::read(name.as_ref()), Some(at));
        for other in ["/proc/self/exe", "/dev/zero", "/nonexistent", "/"] {
            assert_eq!(Deadline::read(other.as_ref()), None, "{other}");
        }
    }
}
