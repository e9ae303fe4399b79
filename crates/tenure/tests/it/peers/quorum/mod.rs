//! Reports about locks over several servers.

mod holding;
mod telling;
mod voting;
