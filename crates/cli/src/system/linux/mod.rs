//! What only Linux has. `elsewhere.rs` says what other systems do without it.

mod deadline;
mod processes;
mod reserved;
mod timer;

pub(crate) use self::{
    deadline::Deadline,
    processes::{ProcessInfo, adopt_orphans, descendants, die_with_parent},
    reserved::{RESERVED, ignore_reserved, is_reserved_ignored},
    timer::{SystemTimer, since_start},
};
