//! Kinds of machines.  Each family builds a fabric, proposes places in it, and computes paths
//! and tables in it.  Families do not know each other; they meet in [`selvedge_model::fabric`].
//! What they share is [`grid`] and [`graph`], which know none of them.
#![warn(missing_docs)]

pub mod grid;

pub mod graph;

mod layout;

pub mod torus;

pub mod board;

pub mod host;

pub mod hypersquare;

mod build;

pub use build::warning::{Warning, warnings};
pub use build::{BuildError, build, extend};
