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

use selvedge_model::fabric::Fabric;
use selvedge_model::id::PartId;

use crate::grid::site::Site;

/// How `parts`, which are those of one pool, stand on a grid; `None` where they do not.
pub fn site_of(fabric: &Fabric, parts: &[PartId]) -> Option<Site> {
    let first = *parts.first()?;
    let template = &fabric.template_of(first).name;
    if template.starts_with(hypersquare::hardware::TEMPLATE) {
        return hypersquare::machine::site_of(fabric, parts);
    }
    board::hardware::GRID_CHIPS
        .iter()
        .any(|it| board::hardware::template_name(*it) == template)
        .then(|| board::build::site_of(fabric, parts))
        .flatten()
}

/// The memory of a chip of `part` in GiB, where its family says so.
pub fn chip_memory_gib(fabric: &Fabric, part: PartId) -> Option<u32> {
    let template = &fabric.template_of(part).name;
    if template.starts_with(hypersquare::hardware::TEMPLATE) {
        return Some(hypersquare::hardware::MEMORY_GIB);
    }
    let chip = board::hardware::GRID_CHIPS
        .into_iter()
        .find(|it| board::hardware::template_name(*it) == template)?;
    Some(board::hardware::memory_gib(chip))
}

pub use build::warning::{Warning, warnings};
pub use build::{BuildError, build, extend};
