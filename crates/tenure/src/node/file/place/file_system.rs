//! Which file systems a store may be on.

use std::path::Path;

use super::Unfit;

/// Checks that the directory is on a file system that is known to be this host's own.
///
/// On one that several hosts share, or that a program or another kernel serves, file locks may
/// exclude nobody and a clock that starts with the boot is not everybody's. Those that exist cannot
/// be counted, so those that are known to be local are.
#[cfg(target_os = "linux")]
pub(super) fn check(directory: &Path) -> Result<(), Unfit> {
    let stat = rustix::fs::statfs(directory)
        .map_err(|error| Unfit::Io(directory.to_owned(), error.into()))?;
    let magic = u32::try_from(stat.f_type & 0xffff_ffff).unwrap_or(0);
    if LOCAL.contains(&magic) {
        return Ok(());
    }
    let name = KNOWN.iter().find(|(known, _)| *known == magic);
    let name = name.map_or_else(|| format!("type {magic:#x}"), |(_, name)| (*name).to_owned());
    Err(Unfit::FileSystem(directory.to_owned(), name))
}

/// Elsewhere none is known.
#[cfg(not(target_os = "linux"))]
pub(super) fn check(directory: &Path) -> Result<(), Unfit> {
    Err(Unfit::FileSystem(
        directory.to_owned(),
        "of a system that this version does not know".into(),
    ))
}

/// Whether something is mounted at this very path. Linux before 5.8 does not say.
#[cfg(target_os = "linux")]
pub(super) fn is_mount_point(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let stat = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    stat.is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_mount_point(_path: &Path) -> bool {
    false
}

/// By the magic numbers of linux/magic.h and of the file systems' own headers.
#[cfg(target_os = "linux")]
const LOCAL: [u32; 13] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xca45_1a4e, // bcachefs
    0x2fc1_2fc1, // zfs
    0xf2f5_2010, // f2fs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs, whose upper layer is local
    0x5265_4973, // reiserfs
    0x3153_464a, // jfs
    0x3434,      // nilfs2
    0x2405_1905, // ubifs
];

/// The names of some that are not local, for people.
#[cfg(target_os = "linux")]
const KNOWN: [(u32, &str); 18] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x0bd0_0bd0, "lustre"),
    (0x6573_5546, "fuse or virtiofs"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0x786f_4256, "vboxsf"),
    (0x7375_7245, "coda"),
    (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"),
    (0x7366_746e, "ntfs3"),
];
