//! What one could do first on this plant: a demand that it can hold, and a machine to lose.

use selvedge_control::capacity::Layout;
use selvedge_control::family;
use selvedge_model::fabric::{Fabric, NodeKind};
use selvedge_model::fault::Target;
use selvedge_model::job::Demand;

use crate::words;

/// Something to begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// The options of `job submit` that ask for hardware which this plant has.
    pub demand: Option<String>,
    /// A machine of this plant.
    pub machine: Option<String>,
}

/// Shapes from the best known to the smallest.
const SHAPES: [&str; 9] = ["8x8x8", "4x4x8", "4x4x4", "4x6", "2x3", "2x2", "1x2", "2x1", "1x1"];

impl Example {
    /// Of the plant of `fabric`.
    pub(crate) fn of(fabric: &Fabric, layout: &Layout) -> Self {
        let shapes = SHAPES.map(|it| (format!("--shape {it}"), Demand::Shape(it.to_owned())));
        let hosts = [2, 1].map(|it| (format!("--hosts {it}"), Demand::Parts(it)));
        let is_held = |demand: &Demand| {
            family::need(demand)
                .is_ok_and(|(demand, need)| family::could_hold(fabric, layout, &demand, &need))
        };
        let mut demands = shapes.into_iter().chain(hosts);
        let demand = demands.find(|it| is_held(&it.1)).map(|it| it.0);
        let part = layout.pools.iter().flatten().next();
        let machines = part.into_iter().flat_map(|part| fabric.nodes_of(*part));
        let is_machine = |it: &_| fabric.node(*it).kind == NodeKind::Machine;
        // The fourth of a cube, the one of a board.
        let machine = machines.filter(is_machine).take(4).last();
        Self { demand, machine: machine.map(|it| words::path(fabric, Target::Node(it))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(pods: &str) -> [Option<String>; 2] {
        let text = format!("format = 1\nname = \"demo\"\n{pods}");
        let plant = selvedge_model::spec::Plant::parse("demo.toml", &text).unwrap();
        let fabric = selvedge_family::build(&plant).unwrap();
        let found = Example::of(&fabric, &Layout::of(&fabric));
        [found.demand, found.machine]
    }

    #[test]
    fn what_is_proposed_is_of_this_plant() {
        let some = |demand: &str, machine: &str| [demand, machine].map(|it| Some(it.to_owned()));
        let grid = |groups| format!("[[pod]]\nfamily = \"hypersquare\"\ngroups = {groups:?}\n");
        assert_eq!(example(&grid("16x16")), some("--shape 4x6", "board0.0/m0"));
        assert_eq!(example(&grid("1x5")), some("--shape 1x2", "board0.0/m0"));
        let cubes = |n| format!("[[pod]]\nfamily = \"tpuv4\"\ncubes = {n}\n");
        assert_eq!(example(&cubes(64)), some("--shape 8x8x8", "cube0/m03"));
        assert_eq!(example(&cubes(1)), some("--shape 4x4x4", "cube0/m03"));
        let hosts = "[[pod]]\nfamily = \"hosts\"\nhosts = 4\n";
        assert_eq!(example(hosts), some("--hosts 2", "host0/m0"));
    }
}
