//! The reports about locks over several servers: P1 to P7, P9, P17, P19 to P22 and P25.

mod holding;
mod telling;
mod voting;
