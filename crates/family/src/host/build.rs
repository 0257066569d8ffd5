//! From a count to hosts.

use selvedge_model::spec::plant::Power;

use crate::build::{Racks, add_generated};
use crate::host::hardware;
use crate::layout::{Layout, PartDraft};

/// Adds `hosts` hosts from number `first` on.
pub(crate) fn add(layout: &mut Layout, pod: usize, hosts: u32, first: u32, power: &Power) {
    let template = layout.template("host", hardware::host);
    let pool = layout.pool(&format!("pod{pod}"));
    let mut racks = Racks::of(pod, power.hosts_per_rack, power.racks_per_feed);
    for idx in 0..hosts {
        let domains = racks.domains(layout, idx as usize);
        let name = format!("host{}", first + idx);
        add_generated(layout, PartDraft { name, template, pool: Some(pool), domains });
    }
}
