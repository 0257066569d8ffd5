//! What `sim --svg` draws: a simulated pod at one moment.

use std::collections::BTreeMap;

use selvedge_model::fabric::{NodeKind, Role, Template};
use selvedge_model::id::PartId;
use selvedge_sim::world::World;

use crate::render::number;
use crate::render::pod_map::{MapJob, PodMap, Seat, Tile, svg};

/// The first pod of `world` as it stands.
pub(super) fn draw(title: &str, world: &World) -> String {
    let core = world.core();
    let (fabric, state) = (core.fabric(), core.state());
    let is_drawn = |part: &PartId| {
        let it = fabric.part(*part);
        let role = fabric.template_of(*part).role;
        !it.retired && role == Role::Compute && it.pool.is_none_or(|pool| pool.idx() == 0)
    };
    let mut tiles: BTreeMap<PartId, Tile> = BTreeMap::new();
    for part in fabric.parts().ids().filter(is_drawn) {
        let out = state.parts.get(part).map_or(0, |it| it.out);
        let n_seats = fabric.template_of(part).seats().len();
        let seat = |seat: usize| Seat { job: None, is_out: out >> seat & 1 == 1 };
        let name = fabric.part(part).name.to_string();
        tiles.insert(part, Tile { name, chips: (0..n_seats).map(seat).collect() });
    }
    let mut jobs = BTreeMap::new();
    for &id in &state.active {
        let job = &state.jobs[id];
        let Some(place) = &job.place else { continue };
        for hold in &place.holds {
            let Some(tile) = tiles.get_mut(&hold.part) else { continue };
            for (seat, chip) in tile.chips.iter_mut().enumerate() {
                if hold.seats >> seat & 1 == 1 {
                    chip.job = Some(id.number());
                }
            }
            let (name, shape) = (job.spec.name.clone(), job.spec.demand.to_string());
            jobs.insert(id.number(), MapJob { name, shape, chips: place.n_seats() });
        }
    }
    let by_machine = |(part, tile): (PartId, Tile)| {
        let chips = by_machine(fabric.template_of(part), &tile.chips);
        Tile { chips, ..tile }
    };
    let cubes: Vec<Tile> = tiles.into_iter().map(by_machine).collect();
    let n_queued = state.queue.len() as u64;
    let subtitle = format!(
        "{}; {} waiting; {} of plant time",
        use_of(&cubes),
        number::counted(n_queued, "job"),
        number::seconds(world.now().as_secs_f64())
    );
    svg(&PodMap { title: title.to_owned(), subtitle, cubes, jobs })
}

/// Chips in the order of their machines.
fn by_machine(template: &Template, chips: &[Seat]) -> Vec<Seat> {
    let nodes = template.nodes().iter().enumerate();
    let machines = nodes.filter(|(_, it)| it.kind == NodeKind::Machine);
    let under = machines.map(|(node, _)| template.seats_under(node));
    let seats = under.flat_map(|mask| (0..chips.len()).filter(move |seat| mask >> seat & 1 == 1));
    seats.map(|seat| chips[seat]).collect()
}

/// `3,584 of 4,096 chips in use (87.5 %), 4 out of use`.
fn use_of(cubes: &[Tile]) -> String {
    let seats = || cubes.iter().flat_map(|it| &it.chips);
    let n_all = seats().count() as u64;
    let n_used = seats().filter(|it| it.job.is_some()).count() as u64;
    let n_out = seats().filter(|it| it.is_out).count() as u64;
    format!(
        "{} of {} chips in use ({}), {} out of use",
        number::grouped(n_used),
        number::grouped(n_all),
        number::share(n_used as f64 / n_all as f64),
        number::grouped(n_out)
    )
}
