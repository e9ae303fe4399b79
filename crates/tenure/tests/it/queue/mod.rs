//! The wait queue: its order, its dead, what is cancelled, and what is left of it.
//!
//! Order and counts are what is asserted: who is granted the lock, how often, and after whom. How
//! fast it was is printed, and held to a figure only in the soak.

mod cancel;
mod channels;
mod chaos;
mod dead_waiters;
mod deleted;
pub(crate) mod foreign;
mod late_commands;
mod leaks;
pub(crate) mod line;
mod order;
mod parked;

/// What the tests here start, by name.
pub(crate) const PROGRAMS: [(&str, fn()); 3] = [
    ("wait in the queue", line::wait_in_queue),
    ("come and go in chaos", chaos::come_and_go),
    ("wait for many names", leaks::wait_for_many_names),
];
