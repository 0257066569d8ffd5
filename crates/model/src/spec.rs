//! Plant files: the text form of the modelled hardware.
//!
//! A file is read once ([`Plant::parse`]) into plain data ([`plant`]); what it names beside itself
//! is first put into it ([`Plant::with_topologies`]).  Everything that is wrong
//! with it is reported at its place ([`error`]).  Written out again ([`Plant::render`]) it has one
//! canonical form that reads back equal.  [`diff()`] says in words and as data what is different
//! between two plants.  A family turns a plant into a [`crate::fabric::Fabric`].
//!
//! The format is described in docs/plant-files.md.

pub mod error;

pub mod plant;

pub mod hypersquare;

mod reader;

mod template;

mod topology;

mod parse;

mod render;

pub mod diff;

pub use diff::{Change, diff};
pub use error::{At, PlantError, Wrong, point};
pub use plant::Plant;
pub use reader::nearest_of;
pub use render::threshold_values;

#[cfg(test)]
mod tests;
