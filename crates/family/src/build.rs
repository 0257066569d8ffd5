//! From a plant to a fabric: the one place where the family is matched.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::fabric::{DomainKind, Fabric, Role};
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::spec::plant::{
    DomainSpec, Family, GridChip, MachineSpec, Missing, Named, Patch,
};
use selvedge_model::spec::{At, Plant, nearest_of};

use crate::layout::{CablePlan, Layout, PartDraft, PortPlan};
use crate::{board, host, hypersquare, torus};

pub use error::BuildError;

pub(crate) mod error;

/// Templates that every plant may use by name.
const BUILT_IN: [&str; 6] =
    ["cube", "ocs", "host", "tpuv2-board", "tpuv3-board", hypersquare::hardware::TEMPLATE];

/// The fabric of a plant.  Equal plants give equal fabrics, ids included.
///
/// # Errors
/// [`BuildError`], at its place in the file.
pub fn build(plant: &Plant) -> Result<Fabric, BuildError> {
    Ok(layout(plant)?.apply(Fabric::new())?)
}

/// `fabric`, which is of the plant `old`, brought to the plant `new`.  Ids already given never
/// change: what is in both keeps its ids and names, what is new gets the next ids, what is gone
/// leaves holes.
///
/// # Errors
/// [`BuildError`]; [`BuildError::Renumbers`] where pods before the last change their size.
pub fn extend(fabric: &Fabric, old: &Plant, new: &Plant) -> Result<Fabric, BuildError> {
    let layout_old = layout(old)?;
    let live = fabric.parts().iter().filter(|it| !it.retired);
    if let Some(part) = live.map(|it| &it.name).find(|it| !layout_old.has_part(it)) {
        return Err(BuildError::NotOld { part: part.to_string() });
    }
    let mut wanted = layout_old.parts.iter().filter(|it| !it.missing);
    if let Some(part) = wanted.find(|it| fabric.part_named(&it.name).is_none()) {
        return Err(BuildError::NotOld { part: part.name.clone() });
    }
    for (of_old, of_new) in
        [(old.first_cubes(), new.first_cubes()), (old.first_hosts(), new.first_hosts())]
    {
        for (pod, (&old_first, &new_first)) in of_old.iter().zip(&of_new).enumerate() {
            if old_first != new_first {
                let at = new.pods[pod].at;
                return Err(BuildError::Renumbers { pod, old: old_first, new: new_first, at });
            }
        }
    }
    Ok(layout(new)?.apply(fabric.clone())?)
}

fn layout(plant: &Plant) -> Result<Layout, BuildError> {
    let mut layout = Layout::default();
    layout.thresholds = plant.thresholds;
    let topologies = Topologies::of(plant, &mut layout)?;
    let firsts = plant.first_cubes().into_iter().zip(plant.first_hosts());
    for ((idx, pod), (first_cube, first_host)) in plant.pods.iter().enumerate().zip(firsts) {
        match &pod.family {
            Family::Tpuv4 { cubes: _, deployed } => {
                let loss = plant.optics.loss;
                let slots = torus::build::Slots { pod: idx, first: first_cube, deployed, loss };
                torus::build::add(&mut layout, &slots, &plant.power);
            }
            Family::Grid { chip, sides, wraps } => {
                let grid = board::build::Grid { chip: *chip, sides: *sides, wraps: *wraps };
                board::build::add(&mut layout, idx, &grid, &plant.power);
            }
            Family::HyperSquare(machine) => {
                hypersquare::build::add(&mut layout, idx, machine, plant.optics.loss, &plant.power);
            }
            Family::Hosts { hosts } => {
                let numbers = first_host..first_host + hosts;
                host::build::add(&mut layout, idx, numbers, &plant.power, |layout, name| {
                    topologies.template_of(layout, name, pod.topology.as_ref())
                });
            }
        }
    }
    let n_generated = layout.parts.len();
    add_parts(&mut layout, plant, &topologies)?;
    topologies.hold_machines(&layout)?;
    // Before any table of ports: no plant takes more memory than it says.
    if let Some(n) = layout.excess() {
        return Err(BuildError::TooLarge { n });
    }
    join_domains(&mut layout, plant)?;
    let mut cabled = Cabled::of(&layout);
    for missing in &plant.missing {
        match missing {
            Missing::Part(name) => miss_part(&mut layout, plant, name, n_generated)?,
            Missing::Cable(end) => {
                let port = find_port(&layout, plant, end)?;
                let cable = cabled.generated_at(&layout, port, end)?;
                layout.cables[cable].missing = true;
            }
        }
    }
    drop_loose_cables(&mut layout);
    for patch in &plant.patches {
        apply_patch(&mut layout, plant, &cabled, patch)?;
    }
    cabled = Cabled::new(&layout);
    for (idx, cable) in layout.cables.iter().enumerate() {
        cabled.take(&layout, idx, cable)?;
    }
    for cable in &plant.cables {
        let (a, b) = (find_port(&layout, plant, &cable.a)?, find_port(&layout, plant, &cable.b)?);
        let plan = |at| {
            let (attrs, loss, missing) = (cable.attrs, cable.loss, false);
            CablePlan { a, b, attrs, loss, missing, at }
        };
        hypersquare::build::check_reach(&layout, plant, cable, [a, b])?;
        let idx = layout.cables.len();
        layout.cables.push(plan(cable.a.at));
        for (port, named) in [(a, &cable.a), (b, &cable.b)] {
            cabled.take_port(&layout, idx, port, named.at)?;
        }
    }
    Ok(layout)
}

/// The inner structures of hosts from topology files: each file is read once, whoever uses it.
struct Topologies<'p> {
    /// Templates by the file's name.
    templates: BTreeMap<&'p str, usize>,
    /// What a host has in place of its pod's, by the host's name.
    machines: BTreeMap<&'p str, &'p MachineSpec>,
}

impl<'p> Topologies<'p> {
    fn of(plant: &'p Plant, layout: &mut Layout) -> Result<Self, BuildError> {
        let mut templates = BTreeMap::new();
        for named in plant.topologies_wanted() {
            let (name, at) = (named.name.clone(), named.at);
            let Some(file) = plant.topologies.iter().find(|it| it.name == name) else {
                let known = plant.topologies.iter().map(|it| it.name.as_str());
                let near = nearest_of(&name, known).map(str::to_owned);
                return Err(BuildError::NoTopology { name, near, at });
            };
            let inside = host::inside::inside(&name, &file.xml).map_err(|error| {
                let wrong = error.to_string();
                let drawn = host::inside::draw(&name, &file.xml, &error);
                BuildError::BadTopology { name, wrong, drawn, at }
            })?;
            let template = layout.template(&inside.template.name.clone(), || inside.template);
            layout.file_faults.insert(template, inside.faults);
            templates.insert(named.name.as_str(), template);
        }
        let machines = plant.machines.iter().map(|it| (it.name.name.as_str(), it)).collect();
        Ok(Self { templates, machines })
    }

    /// The template of the host called `name`, whose pod has `topology`.
    fn template_of(&self, layout: &mut Layout, name: &str, topology: Option<&Named>) -> usize {
        let own = self.machines.get(name).map(|it| &it.topology).or(topology);
        match own {
            Some(own) => self.templates[own.name.as_str()],
            None => layout.template("host", host::hardware::host),
        }
    }

    /// Refuses a `[[machine]]` that is none.
    fn hold_machines(&self, layout: &Layout) -> Result<(), BuildError> {
        for machine in self.machines.values() {
            let (name, at) = (machine.name.name.clone(), machine.name.at);
            let Some(part) = layout.part_named(&name) else {
                let near = nearest_of(&name, layout.part_names()).map(str::to_owned);
                return Err(BuildError::NoPart { name, near, at });
            };
            if self.templates[machine.topology.name.as_str()] != layout.parts[part].template {
                return Err(BuildError::NoHost { part: name, at });
            }
        }
        Ok(())
    }
}

/// What stands before the names of a pod's own parts.
pub(crate) fn pod_prefix(pod: usize) -> String {
    if pod == 0 { String::new() } else { format!("pod{pod}/") }
}

/// The two numbers of a name such as `board3.4` or `pod1/board3.4`.
pub(crate) fn numbers_behind(name: &str, word: &str) -> Option<[usize; 2]> {
    let own = name.rsplit_once('/').map_or(name, |it| it.1);
    let (a, b) = own.strip_prefix(word)?.split_once('.')?;
    Some([a.parse().ok()?, b.parse().ok()?])
}

/// Adds a part whose name no other generator gives.
pub(crate) fn add_generated(layout: &mut Layout, draft: PartDraft) -> usize {
    layout.add_part(draft).expect("generators number their parts apart")
}

/// The racks and power feeds of one pod, each added with its first part.
pub(crate) struct Racks {
    pod: usize,
    n_per_rack: usize,
    n_per_feed: usize,
    racks: BTreeMap<usize, usize>,
    feeds: BTreeMap<usize, usize>,
}

impl Racks {
    pub(crate) fn of(pod: usize, per_rack: u16, per_feed: u16) -> Self {
        let (n_per_rack, n_per_feed) = (usize::from(per_rack), usize::from(per_feed));
        Self { pod, n_per_rack, n_per_feed, racks: BTreeMap::new(), feeds: BTreeMap::new() }
    }

    /// The rack and the feed of the part at place `idx` of the pod.
    pub(crate) fn domains(&mut self, layout: &mut Layout, idx: usize) -> Vec<usize> {
        let (pod, rack) = (self.pod, idx / self.n_per_rack);
        let feed = rack / self.n_per_feed;
        let rack = *self
            .racks
            .entry(rack)
            .or_insert_with(|| layout.domain(format!("pod{pod}/rack{rack}"), DomainKind::Rack));
        let feed = *self
            .feeds
            .entry(feed)
            .or_insert_with(|| layout.domain(format!("pod{pod}/feed{feed}"), DomainKind::Power));
        vec![rack, feed]
    }
}

fn add_parts(
    layout: &mut Layout,
    plant: &Plant,
    topologies: &Topologies<'_>,
) -> Result<(), BuildError> {
    let mut own = BTreeMap::new();
    for spec in &plant.templates {
        let name = &spec.template.name;
        // Boards with other links than usual have names of their own behind this one.
        let is_board = name.starts_with(hypersquare::hardware::TEMPLATE);
        if is_board || BUILT_IN.contains(&name.as_str()) {
            return Err(BuildError::TemplateTaken { name: name.clone(), at: spec.at });
        }
        own.insert(name.as_str(), &spec.template);
    }
    for part in &plant.parts {
        let name = part.template.name.as_str();
        let template = match (own.get(name), name) {
            (Some(template), _) => layout.template(name, || (*template).clone()),
            (None, "cube") => layout.template(name, torus::hardware::cube),
            (None, "ocs") => layout.template(name, torus::hardware::switch),
            (None, "host") => topologies.template_of(layout, &part.name, None),
            (None, "tpuv2-board") => board::build::template(layout, GridChip::Tpuv2),
            (None, hypersquare::hardware::TEMPLATE) => {
                hypersquare::build::template(layout, &HyperSquare::of_groups([1, 1]))
            }
            (None, "tpuv3-board") => board::build::template(layout, GridChip::Tpuv3),
            (None, _) => {
                let known = own.keys().copied().chain(BUILT_IN);
                let near = nearest_of(name, known).map(str::to_owned);
                let (name, at) = (name.to_owned(), part.template.at);
                return Err(BuildError::NoTemplate { name, near, at });
            }
        };
        let pool = part.pool.as_deref().map(|it| layout.pool(it));
        let (name, domains, at) = (part.name.clone(), Vec::new(), part.at);
        layout
            .add_part(PartDraft { name: name.clone(), template, pool, domains })
            .map_err(|_| BuildError::PartTaken { name, at })?;
    }
    Ok(())
}

fn join_domains(layout: &mut Layout, plant: &Plant) -> Result<(), BuildError> {
    let first_own = layout.domains.len();
    let generated: BTreeSet<String> = layout.domains.iter().map(|it| it.0.clone()).collect();
    for spec in &plant.domains {
        if generated.contains(&spec.name) {
            return Err(BuildError::DomainTaken { name: spec.name.clone(), at: spec.at });
        }
        join_domain(layout, plant, spec, first_own)?;
    }
    Ok(())
}

/// Adds a domain of the file; those from `first_own` on are the file's, those before generated.
fn join_domain(
    layout: &mut Layout,
    plant: &Plant,
    spec: &DomainSpec,
    first_own: usize,
) -> Result<(), BuildError> {
    let own = layout.domain(spec.name.clone(), spec.kind);
    for named in &spec.parts {
        let part = find_part(layout, plant, named)?;
        let mut domains = std::mem::take(&mut layout.parts[part].domains);
        // A part in a domain of the file leaves the generated one of that kind.
        domains.retain(|&it| first_own <= it || layout.domains[it].1 != spec.kind);
        domains.push(own);
        layout.parts[part].domains = domains;
    }
    Ok(())
}

fn miss_part(
    layout: &mut Layout,
    plant: &Plant,
    named: &Named,
    n_generated: usize,
) -> Result<(), BuildError> {
    let part = find_part(layout, plant, named)?;
    let is_cube = layout.templates[layout.parts[part].template].name == "cube";
    let key = match (part < n_generated, is_cube) {
        (false, _) => Some("[[part]]"),
        (true, true) => Some("deployed"),
        (true, false) => None,
    };
    if let Some(key) = key {
        return Err(BuildError::MissingThere { name: named.name.clone(), key, at: named.at });
    }
    layout.parts[part].missing = true;
    Ok(())
}

/// Marks the cables of missing parts as missing too.
fn drop_loose_cables(layout: &mut Layout) {
    if layout.parts.iter().all(|it| !it.missing) {
        return;
    }
    for idx in 0..layout.cables.len() {
        let ends = [layout.cables[idx].a, layout.cables[idx].b];
        let is_loose = ends.iter().any(|&it| layout.parts[layout.port_local(it).0].missing);
        layout.cables[idx].missing |= is_loose;
    }
}

fn apply_patch(
    layout: &mut Layout,
    plant: &Plant,
    cabled: &Cabled,
    patch: &Patch,
) -> Result<(), BuildError> {
    let end = find_port(layout, plant, &patch.end)?;
    let idx = cabled.generated_at(layout, end, &patch.end)?;
    if let Some(loss) = patch.loss {
        layout.cables[idx].loss = loss;
    }
    let Some(named) = &patch.port else { return Ok(()) };
    let old = layout.cables[idx].b;
    let (switch, old_local) = layout.port_local(old);
    let template = &layout.templates[layout.parts[switch].template];
    let (end_name, at) = (patch.end.name.clone(), named.at);
    if template.role != Role::CircuitSwitch || layout.cables[idx].a != end {
        return Err(BuildError::NoSwitch { end: end_name, at: patch.end.at });
    }
    let new = find_port(layout, plant, named)?;
    let (new_part, new_local) = layout.port_local(new);
    let switch_name = layout.parts[switch].name.clone();
    let port = named.name.clone();
    if new_part != switch {
        return Err(BuildError::OtherSwitch { port, switch: switch_name, end: end_name, at });
    }
    if template.ports()[new_local].side != template.ports()[old_local].side {
        return Err(BuildError::OtherSide { port, switch: switch_name, end: end_name, at });
    }
    layout.cables[idx].b = new;
    layout.cables[idx].at = at;
    Ok(())
}

fn find_part(layout: &Layout, plant: &Plant, named: &Named) -> Result<usize, BuildError> {
    let (name, at) = (named.name.clone(), named.at);
    layout.part_named(&name).ok_or_else(|| {
        if is_reserved(plant, &name) {
            return BuildError::NotDeployed { cube: name, at };
        }
        let near = nearest_of(&name, layout.part_names()).map(str::to_owned);
        BuildError::NoPart { name, near, at }
    })
}

fn find_port(layout: &Layout, plant: &Plant, named: &Named) -> Result<PortPlan, BuildError> {
    let (path, at) = (named.name.clone(), named.at);
    let found = layout.find_port(&path).map_err(|part| {
        let first = named.name.split('/').next().unwrap_or_default();
        let Some(part) = part else {
            if is_reserved(plant, first) {
                return BuildError::NotDeployed { cube: first.to_owned(), at };
            }
            let near = nearest_of(first, layout.part_names());
            let near = near.map(|it| format!("{it}{}", &path[first.len()..]));
            return BuildError::NoPort { path, near, at };
        };
        let plan = &layout.parts[part];
        let ports = layout.templates[plan.template].ports().iter().map(|it| it.name.as_str());
        let rest = path[plan.name.len()..].trim_start_matches('/');
        let near = nearest_of(rest, ports).map(|it| format!("{}/{it}", plan.name));
        BuildError::NoPort { path, near, at }
    })?;
    let part = &layout.parts[layout.port_local(found).0];
    match part.missing {
        true => Err(BuildError::PartMissing { part: part.name.clone(), at }),
        false => Ok(found),
    }
}

/// Whether `name` is that of a cube in a slot of the plant, deployed or not.
fn is_reserved(plant: &Plant, name: &str) -> bool {
    let number = name.strip_prefix("cube").and_then(|it| it.parse::<u32>().ok());
    number.is_some_and(|number| {
        plant.first_cubes().into_iter().zip(&plant.pods).any(|(first, pod)| match &pod.family {
            Family::Tpuv4 { cubes, .. } => first <= number && number < first + u32::from(*cubes),
            Family::Grid { .. } | Family::HyperSquare(_) | Family::Hosts { .. } => false,
        })
    })
}

/// The cable at each port of a layout.
struct Cabled {
    at: Vec<u32>,
}

const FREE: u32 = u32::MAX;

impl Cabled {
    /// Without any cable.
    fn new(layout: &Layout) -> Self {
        Self { at: vec![FREE; layout.n_ports()] }
    }

    /// With the generated cables, which generators keep apart.
    fn of(layout: &Layout) -> Self {
        let mut cabled = Self::new(layout);
        for (idx, cable) in (0..).zip(&layout.cables) {
            cabled.at[cable.a.0] = idx;
            cabled.at[cable.b.0] = idx;
        }
        cabled
    }

    fn generated_at(
        &self,
        layout: &Layout,
        port: PortPlan,
        named: &Named,
    ) -> Result<usize, BuildError> {
        let idx = self.at[port.0] as usize;
        match layout.cables.get(idx) {
            Some(cable) if !cable.missing => Ok(idx),
            Some(_) | None => Err(BuildError::NoCable { port: named.name.clone(), at: named.at }),
        }
    }

    fn take(&mut self, layout: &Layout, idx: usize, cable: &CablePlan) -> Result<(), BuildError> {
        if cable.missing {
            return Ok(());
        }
        self.take_port(layout, idx, cable.a, cable.at)?;
        self.take_port(layout, idx, cable.b, cable.at)
    }

    fn take_port(
        &mut self,
        layout: &Layout,
        idx: usize,
        port: PortPlan,
        at: At,
    ) -> Result<(), BuildError> {
        let (part, local) = layout.port_local(port);
        let plan = &layout.parts[part];
        if layout.templates[plan.template].link_from(local).is_some() {
            return Err(BuildError::PortLinked { port: layout.port_path(port), at });
        }
        if let Some(first) = layout.cables.get(self.at[port.0] as usize) {
            // A generated cable has no line of its own: then the other one is to blame.
            let (kept, at) = match at.is_nowhere() {
                true => (&layout.cables[idx], first.at),
                false => (first, at),
            };
            let far = if kept.a == port { kept.b } else { kept.a };
            let (port, other) = (layout.port_path(port), layout.port_path(far));
            return Err(BuildError::PortTaken { port, other, at });
        }
        self.at[port.0] = u32::try_from(idx).expect("fewer cables than ports");
        Ok(())
    }
}

pub(crate) mod warning;

#[cfg(test)]
mod tests;
