//! Scripts against a whole core: what it is told, what it says, and what it remembers.
//!
//! Every script goes through [`world::check`]: after each input the state is held against its
//! invariants, and at the end all records are replayed, planned anew and as recorded, to the
//! same bytes.

mod world;

mod arrays;
mod breaker;
mod cables;
mod faults;
mod forecasts;
mod lives;
mod plans;
mod plants;
mod repairs;
mod replicas;
mod restarts;
mod silence;
mod strays;
mod tables;
mod topology;
mod wild;
