//! What tutorials of a Redis lock do, and the trap in each. `docs/origins.md` names the sources.

mod acquiring;
mod quorum;
mod releasing;
mod renewing;
mod server;
mod waiting;
