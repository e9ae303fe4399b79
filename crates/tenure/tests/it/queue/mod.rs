//! Waiting in the queue, as servers and callers see it.

mod deleted;
mod parked;
