//! Kinds of machines.  Each family builds a fabric, proposes places in it, and computes paths
//! and tables in it.  Families do not know each other; they meet in [`selvedge_model::fabric`].
//! What they share is [`grid`], [`graph`] and [`cluster`], which know none of them.
#![warn(missing_docs)]

pub mod grid;

pub mod graph;

pub mod cluster;

mod layout;

pub mod torus;

pub mod board;

pub mod host;

pub mod hypersquare;

mod build;

mod bisection;

pub mod uses;

use selvedge_model::fabric::Fabric;
use selvedge_model::id::{NodeId, PartId, PortId};

use crate::graph::ChipGraph;
use crate::graph::forward::Tables;
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

/// The chips of boards of one pool, and how they forward to one another without the cables at the
/// ports `without`: in dimension order where they are a full box, else up and down.  `None` where
/// they are not all joined.
pub fn forwarding(
    fabric: &Fabric,
    parts: &[PartId],
    without: &[PortId],
) -> Option<(Vec<NodeId>, Tables)> {
    let chips = parts.iter().flat_map(|&part| {
        let seats = fabric.template_of(part).seats().iter();
        seats.map(move |&it| fabric.node_at(part, it as usize))
    });
    let graph = ChipGraph::without(fabric, chips, without);
    let place = |chip: &NodeId| {
        let (part, local) = fabric.node_local(*chip);
        let template = fabric.template_of(part);
        let seat = template.seats().iter().position(|it| *it as usize == local)?;
        let name = &fabric.part(part).name;
        if template.name.starts_with(hypersquare::hardware::TEMPLATE) {
            return hypersquare::machine::chip_place(name, seat);
        }
        board::build::chip_place(name, seat)
    };
    let places: Option<Vec<[u16; 4]>> = graph.chips.iter().map(place).collect();
    let in_order = places.and_then(|it| Tables::in_order(&graph.graph, &it));
    let tables = in_order.or_else(|| Tables::up_and_down(&graph.graph))?;
    Some((graph.chips, tables))
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

pub use bisection::{Bisection, bisection};
pub use build::warning::{Warning, warnings};
pub use build::{BuildError, build, extend};
