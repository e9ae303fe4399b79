//! What the operating system offers: the whole of the unsafe code of the command, and all that is
//! Linux's own.

mod clock;
mod descriptors;
mod found;
#[cfg_attr(target_os = "linux", path = "linux/mod.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod platform;
mod signals;
mod spawn;

pub(crate) use self::{
    clock::{Moment, SystemTimer},
    descriptors::{Standard, inherited},
    found::is_ignored,
    platform::{Deadline, ProcessInfo, adopt_orphans, descendants},
    signals::{
        block_terminal_stops, interrupt_this_group, outlive_file_limits, receive, stop_this_group,
    },
    spawn::{prepare, take_terminal},
};
