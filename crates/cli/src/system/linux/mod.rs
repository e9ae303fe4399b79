//! What only Linux has. `elsewhere.rs` says what other systems do without it.

mod alarm;
mod deadline;
mod processes;
mod reserved;

pub(crate) use self::{
    alarm::{Alarm, since_start},
    deadline::Deadline,
    processes::{Process, adopt_orphans, descendants, die_with_parent},
    reserved::{RESERVED, ignore_reserved, is_reserved_ignored},
};
