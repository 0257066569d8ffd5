//! Static pods: boards of 2x2 chips cabled to a fixed two-dimensional grid (seed 000 §2.1).
//!
//! Jobs take boxes or connected sets of boards, chosen by [`crate::grid`].

pub mod hardware;

pub(crate) mod build;
