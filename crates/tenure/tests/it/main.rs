//! The library's tests against real servers, a network that misbehaves, and the table in memory.

mod faults;
