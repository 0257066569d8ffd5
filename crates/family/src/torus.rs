//! Pods of 4x4x4 cubes joined by optical circuit switches (seed 000).

pub mod hardware;

pub mod build;
