//! Which boot this is, and the clock that starts with it.

use tenure_core::NodeTime;

use crate::clock;

/// The boot, and what this process has to subtract from its clock to read the host's.
///
/// TTLs run on a clock that starts with the boot. A time namespace sets that clock off, so that two
/// containers on one host would take each other's leases for ended. All rows are therefore written
/// in the time of the host.
#[derive(Debug)]
pub(super) struct Boot {
    id: String,
    offset_ns: i64,
}

/// Why a lease in the store cannot be distinguished from one of an earlier boot.
#[derive(Debug, thiserror::Error)]
pub(super) enum BootUnknown {
    /// Such as an `nspawn` or `LXC` container does.
    #[error(
        "{0} is not the kernel's own, since something is mounted over it: a container's boot \
         cannot be compared with its host's; use a server, or a store outside of the container"
    )]
    Mounted(&'static str),
    #[error("{0} is {1:?}, which is no boot id; use a server")]
    NoId(&'static str, String),
    #[error("{0} is {1:?}, which says nothing about this process's clock; use a server")]
    NoOffset(&'static str, String),
    #[error(
        "the children of this process are to be in another time namespace than itself, so its \
         clock is not known; start it as one of them, as `unshare --fork` does"
    )]
    BetweenNamespaces,
    #[error("{0}: {1}")]
    Io(&'static str, #[source] std::io::Error),
    /// Where there is no such file.
    #[cfg(not(target_os = "linux"))]
    #[error("how to tell one boot of this system from another is not known here; use a server")]
    Unsupported,
}

impl Boot {
    /// The id, unlike any other boot's.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The host's clock since its boot, and the wall clock.
    pub(super) fn time(&self) -> NodeTime {
        let host = i128::from(clock::now().as_nanos()) - i128::from(self.offset_ns);
        let ttl_ms = u64::try_from(host / 1_000_000).unwrap_or(0);
        NodeTime { ttl_ms, ..clock::node_time() }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs::{self, File},
        io::{ErrorKind, Read as _},
    };

    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, fstatfs, statx};

    use super::{Boot, BootUnknown};

    impl Boot {
        /// Asks the kernel.
        pub(in crate::node::file) fn read() -> Result<Self, BootUnknown> {
            let id = of_kernel(BOOT_ID)?;
            // A file that is another at each reading, bound over it, is no id either.
            if !is_id(&id) || of_kernel(BOOT_ID)? != id {
                return Err(BootUnknown::NoId(BOOT_ID, id));
            }
            Ok(Self { id, offset_ns: offset()? })
        }
    }

    /// What the kernel writes: five groups of hex digits.
    fn is_id(text: &str) -> bool {
        let groups: Vec<_> = text.split('-').map(str::len).collect();
        groups == [8, 4, 4, 4, 12]
            && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
    }

    /// What this process's time namespace adds to the clock.
    fn offset() -> Result<i64, BootUnknown> {
        let offsets = match of_kernel(OFFSETS) {
            // A kernel without time namespaces.
            Err(BootUnknown::Io(_, error)) if error.kind() == ErrorKind::NotFound => return Ok(0),
            offsets => offsets?,
        };
        let namespace = |name| {
            let link = fs::read_link(format!("/proc/self/ns/{name}"));
            link.map_err(|error| BootUnknown::Io("/proc/self/ns", error))
        };
        // The offsets are those of the namespace that children get.
        if namespace("time")? != namespace("time_for_children")? {
            return Err(BootUnknown::BetweenNamespaces);
        }
        offset_in(&offsets).ok_or(BootUnknown::NoOffset(OFFSETS, offsets))
    }

    /// `boottime SECONDS NANOSECONDS` on one of the lines, in nanoseconds.
    pub(super) fn offset_in(offsets: &str) -> Option<i64> {
        let mut lines = offsets.lines().map(str::split_ascii_whitespace);
        // Some kernels name the clock by its number.
        let mut words = lines.find_map(|mut words| {
            matches!(words.next(), Some("boottime" | "7")).then_some(words)
        })?;
        let mut number = || words.next()?.parse::<i64>().ok();
        number()?.checked_mul(1_000_000_000)?.checked_add(number()?)
    }

    /// Reads a file of the kernel's, unless something is mounted over it.
    fn of_kernel(path: &'static str) -> Result<String, BootUnknown> {
        let io = |error| BootUnknown::Io(path, error);
        let mut file = File::open(path).map_err(io)?;
        let is_proc = fstatfs(&file).map_err(|error| io(error.into()))?.f_type == PROC;
        let stat = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
        // Linux before 5.8 does not say what is mounted where.
        let is_mounted =
            stat.is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
        if !is_proc || is_mounted {
            return Err(BootUnknown::Mounted(path));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(io)?;
        Ok(text.trim().to_owned())
    }

    const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
    const OFFSETS: &str = "/proc/self/timens_offsets";

    /// The magic number of linux/magic.h.
    const PROC: rustix::fs::FsWord = 0x9fa0;
}

#[cfg(not(target_os = "linux"))]
impl Boot {
    /// The ids of other systems are not read.
    pub(super) fn read() -> Result<Self, BootUnknown> {
        Err(BootUnknown::Unsupported)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::offset_in;

    #[test]
    fn an_offset_is_read_in_nanoseconds_or_not_at_all() {
        let offsets = |boottime: &str| format!("monotonic           5         0\n{boottime}\n");
        assert_eq!(offset_in(&offsets("boottime      100000  5")), Some(100_000_000_000_005));
        assert_eq!(offset_in(&offsets("boottime         -10  0")), Some(-10_000_000_000));
        for none in ["", "boottime 1", "boottime x 0", "boottime 9223372036854775807 0"] {
            assert_eq!(offset_in(&offsets(none)), None, "{none}");
        }
    }
}
