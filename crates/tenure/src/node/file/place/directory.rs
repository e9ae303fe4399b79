//! Who may put another file in the store's place.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Component, Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use super::{OWN_DIRECTORY, Unfit, give_owner, metadata};

/// The directory without symbolic links, once nobody but this user and root can put another in its
/// place.
pub(super) fn real(directory: &Path) -> Result<PathBuf, Unfit> {
    let mut rest: VecDeque<OsString> = names(directory).collect();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    check(&at)?;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(name);
        let metadata = metadata(&next)?;
        if !metadata.is_symlink() {
            check(&next)?;
            at = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Unfit::Loop(directory.to_owned()));
        }
        if !is_trusted(metadata.uid()) {
            return Err(Unfit::OthersLink(next, metadata.uid()));
        }
        let target = fs::read_link(&next).map_err(|error| Unfit::Io(next, error))?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(name);
        }
    }
    Ok(at)
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Checks one directory: nobody but this user and root may rename what is in it. The sticky bit
/// sees to that where others may write, as in /tmp.
fn check(directory: &Path) -> Result<(), Unfit> {
    let metadata = metadata(directory)?;
    if !is_trusted(metadata.uid()) {
        return Err(Unfit::Owner(directory.to_owned(), metadata.uid()));
    }
    let mode = metadata.mode() & 0o7777;
    let others = if is_private_group(&metadata) { 0o002 } else { 0o022 };
    if mode & others != 0 && mode & 0o1000 == 0 {
        return Err(Unfit::Writable(directory.to_owned(), mode));
    }
    Ok(())
}

/// Checks a directory that is to be this user's alone.
pub(in crate::node::file) fn check_private(directory: &Path) -> Result<(), Unfit> {
    let metadata = metadata(directory)?;
    if metadata.is_symlink() {
        return Err(Unfit::Link(directory.to_owned()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(Unfit::Owner(directory.to_owned(), metadata.uid()));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(Unfit::Writable(directory.to_owned(), mode));
    }
    Ok(())
}

/// Makes a directory of this user's alone, unless it is there, whatever the umask takes away.
pub(in crate::node::file) fn make_private(directory: &Path) -> Result<(), Unfit> {
    match fs::DirBuilder::new().mode(OWN_DIRECTORY).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Unfit::Io(directory.to_owned(), error)),
    }
    give_owner(directory, OWN_DIRECTORY)?;
    check_private(directory)
}

/// A directory that stays the same one, whatever becomes of its path.
#[derive(Debug)]
pub(in crate::node::file) struct Directory {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Directory {
    pub(in crate::node::file) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        let flags = flags | OFlags::PATH;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { path: path.to_owned(), descriptor })
    }

    /// A path to what is in it: a socket's path has room for a hundred bytes.
    pub(in crate::node::file) fn short_path(&self, name: &Path) -> PathBuf {
        if cfg!(target_os = "linux") {
            Path::new(&format!("/proc/self/fd/{}", self.descriptor.as_raw_fd())).join(name)
        } else {
            self.path.join(name)
        }
    }
}

fn is_trusted(user: u32) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&user)
}

/// Whether the group has no member but this user. Many systems give each user such a group, and a
/// umask that lets it write.
fn is_private_group(metadata: &fs::Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    metadata.mode() & 0o020 != 0
        && metadata.uid() == user
        && private_group(user, metadata.gid(), &read("/etc/passwd"), &read("/etc/group"))
}

/// As `/etc/passwd` and `/etc/group` have it. Never root's: other accounts are often put into it.
fn private_group(user: u32, group: u32, accounts: &str, groups: &str) -> bool {
    let field = |line: &str, number| line.split(':').nth(number).unwrap_or_default().to_owned();
    let is_number = |text: &str, number: u32| text.parse() == Ok(number);
    let mut in_it = accounts.lines().filter(|line| is_number(&field(line, 3), group));
    let (Some(own), None) = (in_it.next(), in_it.next()) else { return false };
    let name = field(own, 0);
    let mut named = groups.lines().filter(|line| is_number(&field(line, 2), group));
    let (Some(named), None) = (named.next(), named.next()) else { return false };
    let members = field(named, 3);
    user != 0
        && is_number(&field(own, 2), user)
        && field(named, 0) == name
        && (members.is_empty() || members == name)
}

/// As many as Linux follows.
const MAX_LINKS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_private_only_when_nobody_else_is_in_it() {
        let accounts = "root:x:0:0::/root:/bin/sh\nme:x:7:7::/:/bin/sh\nyou:x:8:8::/:/bin/sh\n";
        let groups = "root:x:0:\nme:x:7:\nyou:x:8:me\nstaff:x:9:me\n";
        let is_private = |user, group| private_group(user, group, accounts, groups);
        assert!(is_private(7, 7));
        assert!(!is_private(8, 8), "me is in it, too");
        assert!(!is_private(7, 8) && !is_private(7, 9) && !is_private(7, 10));
        assert!(!is_private(0, 0), "root's is shared");
        let shared = format!("{accounts}other:x:10:7::/:/bin/sh\n");
        assert!(!private_group(7, 7, &shared, groups), "the other's first group");
    }
}
