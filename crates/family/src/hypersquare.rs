//! Hyper-square machines: boards of four chips in a mesh, every row and column closed to rings
//! (seed 004).
//!
//! HS(R,C) has a group of four chips A, B, C, D at each place (i,j), one board each.  On a board
//! A-B, C-D, A-C and B-D are linked; chips of the same letter on neighbouring boards are cabled.
//! So HS(R,C) is the product of a path of R, a path of C and a ring of four; see
//! docs/hypersquare.md.

pub mod group;

pub mod hardware;

pub(crate) mod build;
pub mod machine;

pub mod bisection;

pub mod ring;

mod rounds;

mod tree;

mod damaged;

#[cfg(test)]
mod tests;
