//! Static pods: boards of 2x2 chips cabled to a fixed two-dimensional grid (seed 000 §2.1).
//!
//! They are built, checked, shown and compared; no job is placed on them yet.

pub mod hardware;

pub(crate) mod build;
