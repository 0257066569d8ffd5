//! The one way from a plant to a fabric.
//!
//! A [`Layout`] is the list of everything that ought to be there: the families fill it from their
//! generators, then the plant's overrides, missing things and explicit entities are worked in.
//! [`Layout::apply`] brings a fabric, empty or not, to it: what is there already keeps its ids,
//! what is not wanted is retired, what is new gets the next ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_model::fabric::{DomainKind, Fabric, FabricError, FileFault, LinkAttrs, Template};
use selvedge_model::hardware::Thresholds;
use selvedge_model::id::{DomainId, PartId, PoolId, PortId, TemplateId};
use selvedge_model::limits;
use selvedge_model::spec::At;
use selvedge_model::unit::CentiDb;

/// Everything that ought to be there.
#[derive(Default)]
pub(crate) struct Layout {
    pub(crate) thresholds: Thresholds,
    pub(crate) templates: Vec<Arc<Template>>,
    template_places: BTreeMap<String, usize>,
    pools: Vec<String>,
    pool_places: BTreeMap<String, usize>,
    pub(crate) domains: Vec<(String, DomainKind)>,
    pub(crate) parts: Vec<PartPlan>,
    pub(crate) cables: Vec<CablePlan>,
    names: BTreeMap<String, usize>,
    /// What is wrong with the file of a template, by the template's place.
    pub(crate) file_faults: BTreeMap<usize, Vec<FileFault>>,
}

/// A part that ought to be there.
pub(crate) struct PartPlan {
    pub(crate) name: String,
    pub(crate) template: usize,
    pub(crate) pool: Option<usize>,
    pub(crate) domains: Vec<usize>,
    /// Whether the plant says that it is missing.
    pub(crate) missing: bool,
    first_port: usize,
}

/// A port of a layout: all ports of all parts in one row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortPlan(pub(crate) usize);

/// A cable that ought to be there.
pub(crate) struct CablePlan {
    pub(crate) a: PortPlan,
    pub(crate) b: PortPlan,
    pub(crate) attrs: LinkAttrs,
    pub(crate) loss: CentiDb,
    /// Whether the plant says that it is missing.
    pub(crate) missing: bool,
    /// Where the plant file speaks of it; nowhere for a cable as generated.
    pub(crate) at: At,
}

/// What a family says of one part.
pub(crate) struct PartDraft {
    pub(crate) name: String,
    pub(crate) template: usize,
    pub(crate) pool: Option<usize>,
    pub(crate) domains: Vec<usize>,
}

impl Layout {
    /// The place of a template called `name`, added by `make` where it is not there yet.
    pub(crate) fn template(&mut self, name: &str, make: impl FnOnce() -> Template) -> usize {
        if let Some(&place) = self.template_places.get(name) {
            return place;
        }
        self.templates.push(Arc::new(make()));
        self.template_places.insert(name.to_owned(), self.templates.len() - 1);
        self.templates.len() - 1
    }

    /// The place of a pool, added where it is not there yet.
    pub(crate) fn pool(&mut self, name: &str) -> usize {
        if let Some(&place) = self.pool_places.get(name) {
            return place;
        }
        self.pools.push(name.to_owned());
        self.pool_places.insert(name.to_owned(), self.pools.len() - 1);
        self.pools.len() - 1
    }

    /// Adds a failure domain of its own.
    pub(crate) fn domain(&mut self, name: String, kind: DomainKind) -> usize {
        self.domains.push((name, kind));
        self.domains.len() - 1
    }

    /// Adds a part; its place, or the place of the one that has its name.
    pub(crate) fn add_part(&mut self, draft: PartDraft) -> Result<usize, usize> {
        if let Some(&taken) = self.names.get(&draft.name) {
            return Err(taken);
        }
        let place = self.parts.len();
        let first_port = self.n_ports();
        self.names.insert(draft.name.clone(), place);
        let PartDraft { name, template, pool, domains } = draft;
        let missing = false;
        self.parts.push(PartPlan { name, template, pool, domains, missing, first_port });
        Ok(place)
    }

    /// How many ports all parts have together.
    pub(crate) fn n_ports(&self) -> usize {
        let end = |it: &PartPlan| it.first_port + self.templates[it.template].ports().len();
        self.parts.last().map_or(0, end)
    }

    /// The part called `name`.
    pub(crate) fn part_named(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Whether a part called `name` ought to be there.
    pub(crate) fn has_part(&self, name: &str) -> bool {
        self.part_named(name).is_some_and(|it| !self.parts[it].missing)
    }

    /// All names of parts.
    pub(crate) fn part_names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The port at place `local` of `part`'s template.
    pub(crate) fn port(&self, part: usize, local: usize) -> PortPlan {
        PortPlan(self.parts[part].first_port + local)
    }

    /// The part of a port and its place there.
    pub(crate) fn port_local(&self, port: PortPlan) -> (usize, usize) {
        let part = self.parts.partition_point(|it| it.first_port <= port.0) - 1;
        (part, port.0 - self.parts[part].first_port)
    }

    /// What people call a port.
    pub(crate) fn port_path(&self, port: PortPlan) -> String {
        let (part, local) = self.port_local(port);
        let plan = &self.parts[part];
        format!("{}/{}", plan.name, self.templates[plan.template].ports()[local].name)
    }

    /// The port that `path` names; where there is none, the part of the longest name that
    /// begins it.
    pub(crate) fn find_port(&self, path: &str) -> Result<PortPlan, Option<usize>> {
        let mut end = path.len();
        let mut part_found = None;
        loop {
            if let Some(part) = self.part_named(&path[..end]) {
                part_found.get_or_insert(part);
                let rest = path[end..].trim_start_matches('/');
                let template = &self.templates[self.parts[part].template];
                if let Some(local) = template.port_named(rest) {
                    return Ok(self.port(part, local));
                }
            }
            match path[..end].rfind('/') {
                Some(slash) => end = slash,
                None => return Err(part_found),
            }
        }
    }

    /// Brings `fabric` to this layout.
    ///
    /// Every part and every cable that is in both keeps its ids.  Linear but for the names.
    pub(crate) fn apply(&self, mut fabric: Fabric) -> Result<Fabric, FabricError> {
        fabric.thresholds = self.thresholds;
        let part_ids = self.apply_parts(&mut fabric)?;
        let port_of = |port: PortPlan| -> Option<PortId> {
            let (part, local) = self.port_local(port);
            Some(fabric.port_at(part_ids[part]?, local))
        };
        let wanted: Vec<(&CablePlan, PortId, PortId)> = self
            .cables
            .iter()
            .filter(|it| !it.missing)
            .filter_map(|it| Some((it, port_of(it.a)?, port_of(it.b)?)))
            .collect();
        let is_kept = |fabric: &Fabric, (cable, a, b): &(&CablePlan, PortId, PortId)| {
            let same = |it: &selvedge_model::fabric::Cable| {
                (it.a, it.b, it.attrs) == (*a, *b, cable.attrs)
            };
            fabric.cable_at(*a).is_some_and(same)
        };
        let mut stays = vec![false; fabric.n_ports()];
        for cable in &wanted {
            if is_kept(&fabric, cable) {
                stays[cable.1.idx()] = true;
                fabric.note_loss(cable.1, cable.0.loss);
            }
        }
        let gone: Vec<PortId> = fabric
            .cables()
            .iter()
            .filter(|it| !it.retired && !stays[it.a.idx()])
            .map(|it| it.a)
            .collect();
        gone.into_iter().for_each(|port| fabric.retire_cable_at(port));
        let n_new = wanted.iter().filter(|it| !stays[it.1.idx()]).count();
        fabric.reserve_cables(n_new);
        for (cable, a, b) in wanted {
            if !stays[a.idx()] {
                fabric.add_cable(a, b, cable.attrs, cable.loss)?;
            }
        }
        Ok(fabric)
    }

    fn apply_parts(&self, fabric: &mut Fabric) -> Result<Vec<Option<PartId>>, FabricError> {
        let templates = self.apply_templates(fabric);
        for (place, template) in templates.iter().enumerate() {
            let faults = self.file_faults.get(&place).cloned().unwrap_or_default();
            fabric.set_file_faults(*template, faults);
        }
        let pools = self.apply_pools(fabric);
        let domains = self.apply_domains(fabric);
        let pool_of = |plan: &PartPlan| plan.pool.map(|it| pools[it]);
        let is_wanted = |part: &selvedge_model::fabric::Part| {
            self.part_named(&part.name).map(|it| &self.parts[it]).is_some_and(|plan| {
                let template = templates[plan.template];
                !plan.missing && (part.template, part.pool) == (template, pool_of(plan))
            })
        };
        let gone = fabric.parts().pairs().filter(|(_, it)| !it.retired && !is_wanted(it));
        let gone: Vec<PartId> = gone.map(|it| it.0).collect();
        gone.into_iter().for_each(|part| fabric.retire_part(part));
        let mut part_ids = Vec::with_capacity(self.parts.len());
        for plan in &self.parts {
            if plan.missing {
                part_ids.push(None);
                continue;
            }
            let own: Vec<_> = plan.domains.iter().map(|&it| domains[it]).collect();
            let id = match fabric.part_named(&plan.name) {
                Some(id) => {
                    fabric.move_part(id, &own);
                    id
                }
                None => {
                    let (name, template) = (plan.name.as_str(), templates[plan.template]);
                    fabric.add_part(name, template, pool_of(plan), &own)?
                }
            };
            part_ids.push(Some(id));
        }
        Ok(part_ids)
    }

    fn apply_templates(&self, fabric: &mut Fabric) -> Vec<TemplateId> {
        let templates = fabric.templates().clone();
        let mut known: BTreeMap<&str, Vec<TemplateId>> = BTreeMap::new();
        for (id, template) in templates.pairs() {
            known.entry(&template.name).or_default().push(id);
        }
        let own = self.templates.iter().map(|own| {
            let namesakes = known.get(own.name.as_str()).into_iter().flatten();
            let known = namesakes.copied().find(|it| templates[*it] == *own);
            known.unwrap_or_else(|| fabric.add_template(Template::clone(own)))
        });
        own.collect()
    }

    fn apply_pools(&self, fabric: &mut Fabric) -> Vec<PoolId> {
        let pools = fabric.pools().clone();
        let known: BTreeMap<&String, PoolId> = pools.pairs().map(|(id, it)| (it, id)).collect();
        let own = self
            .pools
            .iter()
            .map(|own| known.get(own).copied().unwrap_or_else(|| fabric.add_pool(own.as_str())));
        own.collect()
    }

    fn apply_domains(&self, fabric: &mut Fabric) -> Vec<DomainId> {
        let known = fabric.domains().pairs().map(|(id, it)| ((it.name.clone(), it.kind), id));
        let known: BTreeMap<(String, DomainKind), DomainId> = known.collect();
        let own = self.domains.iter().map(|own| {
            let known = known.get(own).copied();
            known.unwrap_or_else(|| fabric.add_domain(own.0.as_str(), own.1))
        });
        own.collect()
    }

    /// How many nodes, ports or links there are, if any of them are too many.
    pub(crate) fn excess(&self) -> Option<u64> {
        let mut counts = [0u64; 3];
        for part in &self.parts {
            let template = &self.templates[part.template];
            counts[0] += template.nodes().len() as u64;
            counts[1] += template.ports().len() as u64;
            counts[2] += template.n_links() as u64;
        }
        let most = counts.into_iter().max().unwrap_or(0);
        ((limits::PLANT_PORTS_MAX as u64) < most).then_some(most)
    }
}
