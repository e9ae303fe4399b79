//! What the write-ups that this project starts from do, and the trap in each: one test per row of
//! the list of seeds.

mod acquiring;
mod quorum;
mod releasing;
mod renewing;
mod servers_side;
mod waiting;
