//! From a count to hosts.

use std::ops::Range;

use selvedge_model::spec::plant::Power;

use crate::build::{Racks, add_generated};
use crate::layout::{Layout, PartDraft};

/// Adds hosts by their numbers, each of the template that `template` gives for its name.
pub(crate) fn add(
    layout: &mut Layout,
    pod: usize,
    numbers: Range<u32>,
    power: &Power,
    template: impl Fn(&mut Layout, &str) -> usize,
) {
    let pool = layout.pool(&format!("pod{pod}"));
    let mut racks = Racks::of(pod, power.hosts_per_rack, power.racks_per_feed);
    for (idx, number) in numbers.enumerate() {
        let domains = racks.domains(layout, idx);
        let name = format!("host{number}");
        let template = template(layout, &name);
        add_generated(layout, PartDraft { name, template, pool: Some(pool), domains });
    }
}
