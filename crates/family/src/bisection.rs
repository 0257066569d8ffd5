//! The fewest links between two halves of a pod's chips, also where parts and cables are missing.

use std::collections::BTreeMap;

use selvedge_model::fabric::Fabric;
use selvedge_model::id::{NodeId, PartId};
use selvedge_model::spec::Plant;
use selvedge_model::spec::plant::{Family, Pod};

use crate::build::pod_prefix;
use crate::graph::{ChipGraph, Graph, drawn, halves};
use crate::{board, build, hypersquare};

/// What is known of a bisection; exact where both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bisection {
    /// No two halves have fewer links between them, which is proved.
    pub at_least: u32,
    /// These halves were found.
    pub at_most: u32,
}

/// The bisection of pod number `pod`; `None` for pods whose chips optical switches or hosts join.
///
/// A machine with nothing missing has a formula.  Else it is counted, where that is short
/// ([`halves::exact`]); else the halves that are found bound it from above, and from below the
/// whole machine's: halves of what is left, with the missing chips shared out, are halves of the
/// whole, so they have as many links between them as the whole's bisection at least, but for those
/// that are missing.  Of the links between missing and present chips half need be taken off: if all
/// missing chips change sides, just those cross that did not before.
pub fn bisection(plant: &Plant, fabric: &Fabric, pod: usize) -> Option<Bisection> {
    let spec = plant.pods.get(pod)?;
    let formula = match &spec.family {
        Family::Grid { sides, wraps, .. } => drawn::bisection(*sides, *wraps),
        Family::HyperSquare(it) => hypersquare::bisection::bisection(it.groups),
        Family::Tpuv4 { .. } | Family::Hosts { .. } => return None,
    };
    let name = format!("pod{pod}");
    let is_in =
        |it: &PartId| fabric.part(*it).pool.is_some_and(|pool| fabric.pools()[pool] == name);
    let parts = fabric.parts().pairs().filter(|(_, it)| !it.retired).map(|it| it.0).filter(is_in);
    let chips = parts.flat_map(|part| {
        let seats = fabric.template_of(part).seats().iter();
        seats.map(move |it| fabric.node_at(part, *it as usize))
    });
    let own = ChipGraph::of_chips(fabric, chips);
    if own.graph.n_nodes() == 0 {
        // All boards are missing: nothing has no halves.
        return Some(Bisection { at_least: 0, at_most: 0 });
    }
    let missing = Missing::of(spec, fabric, &own, pod);
    if missing.as_ref().is_some_and(Missing::is_nothing) && !missing.as_ref()?.has_more {
        return Some(Bisection { at_least: formula, at_most: formula });
    }
    if let Some(exact) = halves::exact(&own.graph) {
        return Some(Bisection { at_least: exact, at_most: exact });
    }
    let at_most = halves::at_most(&own.graph, &orders(fabric, &own));
    let at_least = missing.map_or(0, |it| formula.saturating_sub(it.n_links()));
    let is_joined = !own.graph.distances(0).contains(&Graph::APART);
    Some(Bisection { at_least: at_least.max(u32::from(is_joined)), at_most })
}

/// The chips along their rows, and along their columns.
fn orders(fabric: &Fabric, own: &ChipGraph) -> Vec<Vec<u32>> {
    let place = |chip: &NodeId| {
        let (part, local) = fabric.node_local(*chip);
        let template = fabric.template_of(part);
        let seat = template.seats().iter().position(|it| *it as usize == local)?;
        let name = &fabric.part(part).name;
        match template.name.starts_with(hypersquare::hardware::TEMPLATE) {
            true => hypersquare::machine::chip_place(name, seat),
            false => board::build::chip_place(name, seat),
        }
    };
    // A board by itself stands first.
    let places: Vec<[u16; 4]> = own.chips.iter().map(|it| place(it).unwrap_or_default()).collect();
    let order = |key: fn([u16; 4]) -> [u16; 4]| {
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        order.sort_by_key(|it| key(places[*it as usize]));
        order
    };
    vec![order(|[x, y, east, south]| [x, east, y, south]), order(|[x, y, e, s]| [y, s, x, e])]
}

/// What a pod lacks of its whole.
struct Missing {
    /// Links between chips that are there.
    n_between: u32,
    /// Links between a chip that is there and one that is not.
    n_beside: u32,
    /// Links between missing chips that cross if those are shared out in their order.
    n_inside: u32,
    /// Whether the missing chips are an odd number.
    is_odd: bool,
    /// Chips or links that the whole has not.
    has_more: bool,
}

impl Missing {
    /// `None` where the pod has chips that the whole has not, which its formula says nothing of.
    fn of(spec: &Pod, fabric: &Fabric, own: &ChipGraph, pod: usize) -> Option<Self> {
        let plain = Plant::of_pods("whole", [spec.family.clone()]);
        let fabric_of_whole = build::build(&plain).ok()?;
        let whole = ChipGraph::of(&fabric_of_whole);
        let prefix = pod_prefix(pod);
        // Where each chip of the whole is among those that are there.
        let place = |chip: &NodeId| {
            let (part, local) = fabric_of_whole.node_local(*chip);
            let name = format!("{prefix}{}", fabric_of_whole.part(part).name);
            let part = fabric.part_named(&name).filter(|it| !fabric.part(*it).retired)?;
            own.node_of(fabric.node_at(part, local)).map(|it| it as u32)
        };
        let places: Vec<Option<u32>> = whole.chips.iter().map(place).collect();
        if places.iter().flatten().count() < own.chips.len() {
            return None;
        }
        let mut live: BTreeMap<[u32; 2], u32> = BTreeMap::new();
        let ordered = |[a, b]: [u32; 2]| [a.min(b), a.max(b)];
        own.graph.links().iter().for_each(|it| *live.entry(ordered(*it)).or_default() += 1);
        let gone: Vec<usize> = (0..places.len()).filter(|it| places[*it].is_none()).collect();
        let nth = |node: u32| gone.binary_search(&(node as usize)).ok();
        let is_first = |node: u32| nth(node).is_some_and(|it| it < gone.len() / 2);
        let mut missing = Self {
            n_between: 0,
            n_beside: 0,
            n_inside: 0,
            is_odd: !gone.len().is_multiple_of(2),
            has_more: false,
        };
        for &[a, b] in whole.graph.links() {
            match [a, b].map(|it| places[it as usize]) {
                [Some(a), Some(b)] => match live.get_mut(&ordered([a, b])).filter(|it| 0 < **it) {
                    Some(n) => *n -= 1,
                    None => missing.n_between += 1,
                },
                [None, None] => missing.n_inside += u32::from(is_first(a) != is_first(b)),
                [Some(_), None] | [None, Some(_)] => missing.n_beside += 1,
            }
        }
        missing.has_more = live.values().any(|it| 0 < *it);
        Some(missing)
    }

    fn is_nothing(&self) -> bool {
        (self.n_between, self.n_beside, self.n_inside) == (0, 0, 0)
    }

    /// How many links fewer than the whole's halves those of what is left may have.
    fn n_links(&self) -> u32 {
        // An odd number is not shared out evenly, so they cannot all change sides.
        let n_beside = if self.is_odd { self.n_beside } else { self.n_beside / 2 };
        self.n_between + self.n_inside + n_beside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bisection of a machine of `groups` without these boards and cables.
    fn of(family: &str, missing: &[&str]) -> Bisection {
        let missing: String = missing.iter().map(|it| format!("[[missing]]\n{it}\n")).collect();
        let text = format!("format = 1\nname = \"demo\"\n[[pod]]\n{family}\n{missing}");
        let plant = Plant::parse("demo.toml", &text).unwrap();
        let fabric = crate::build(&plant).unwrap();
        bisection(&plant, &fabric, 0).unwrap()
    }

    fn square(groups: &str, missing: &[&str]) -> Bisection {
        of(&format!("family = \"hypersquare\"\ngroups = \"{groups}\""), missing)
    }

    fn exactly(n: u32) -> Bisection {
        Bisection { at_least: n, at_most: n }
    }

    #[test]
    fn a_small_damaged_machine_is_halved_exactly() {
        assert_eq!(square("4x4", &[]), exactly(16));
        assert_eq!(square("4x4", &["cable = \"board0.1/A/east\""]), exactly(15));
        // No cable between the middle columns is gone, and there are two cuts of 16.
        let far = ["cable = \"board0.0/A/east\"", "cable = \"board0.0/A/south\""];
        assert_eq!(square("4x4", &far), exactly(16));
        assert_eq!(square("3x3", &["part = \"board1.1\""]), exactly(8));
        // A board and two that hang together: what hangs together by nothing has halves too.
        assert_eq!(square("1x4", &["part = \"board0.1\""]), exactly(4));
        assert_eq!(square("1x1", &["part = \"board0.0\""]), exactly(0));
    }

    #[test]
    fn a_large_damaged_machine_is_halved_between_two_bounds() {
        assert_eq!(square("16x16", &[]), exactly(64));
        let middle = square("16x16", &["cable = \"board3.7/A/east\""]);
        assert_eq!(middle, exactly(63));
        let one = square("16x16", &["part = \"board7.7\""]);
        assert_eq!(one, Bisection { at_least: 54, at_most: 64 });
        let grid = "family = \"tpuv2\"\n";
        assert_eq!(of(grid, &[]), exactly(32));
        let damaged = of(grid, &["part = \"board0.0\""]);
        assert!(damaged.at_least <= damaged.at_most && damaged.at_most <= 32, "{damaged:?}");
    }

    /// Method: the bounds of machines small enough to be counted hold the count between them.
    #[test]
    fn the_bounds_hold_the_exact_bisection_between_them() {
        let boards = |n: u32| (0..n).flat_map(move |r| (0..n).map(move |c| (r, c)));
        for (nth, (row, column)) in boards(4).enumerate() {
            let other = boards(4).nth(nth * 7 % 16).unwrap();
            let mut lost = vec![format!("part = \"board{row}.{column}\"")];
            if other != (row, column) {
                lost.push(format!("part = \"board{}.{}\"", other.0, other.1));
            }
            let lost: Vec<&str> = lost.iter().map(String::as_str).collect();
            let missing: String = lost.iter().map(|it| format!("[[missing]]\n{it}\n")).collect();
            let text = format!(
                "format = 1\nname = \"demo\"\n[[pod]]\nfamily = \"hypersquare\"\n\
                 groups = \"4x4\"\n{missing}"
            );
            let plant = Plant::parse("demo.toml", &text).unwrap();
            let fabric = crate::build(&plant).unwrap();
            let own = ChipGraph::of(&fabric);
            let exact = halves::exact(&own.graph).unwrap();
            let missing = Missing::of(&plant.pods[0], &fabric, &own, 0).unwrap();
            let at_least = 16u32.saturating_sub(missing.n_links());
            let at_most = halves::at_most(&own.graph, &orders(&fabric, &own));
            assert!(
                at_least <= exact && exact <= at_most,
                "{lost:?}: {at_least} {exact} {at_most}"
            );
            assert!(at_most <= exact + 2, "{lost:?}: {exact} {at_most}");
        }
    }
}
