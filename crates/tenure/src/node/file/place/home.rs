//! This user's own directory for the store.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Unfit, directory::make_private};

/// `~/.local/state/tenure` under the home of the user's account, made if it is not there.
///
/// Not a run-time directory, which cron jobs do not have; and not `$HOME` first, which `sudo` may
/// leave pointing at another's.
pub(super) fn own_directory() -> Result<PathBuf, Unfit> {
    let user = rustix::process::geteuid().as_raw();
    let home = home_in_passwd(user).or_else(std::env::home_dir);
    let home = home.filter(|home| !home.as_os_str().is_empty()).ok_or(Unfit::NoHome(user))?;
    if !home.is_absolute() {
        return Err(Unfit::RelativeHome(home));
    }
    let directory = home.join(".local/state/tenure");
    make(&directory)?;
    Ok(directory)
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

/// Makes each directory that is missing, this user's own.
fn make(directory: &Path) -> Result<(), Unfit> {
    let missing: Vec<_> = directory.ancestors().skip(1).take_while(|one| !one.exists()).collect();
    missing.into_iter().rev().try_for_each(make_private)?;
    make_private(directory)
}
