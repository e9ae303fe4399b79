//! Reports about locks over several servers.

mod errors;
mod holding;
mod voting;
