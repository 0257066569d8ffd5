//! `selvedge wire plan`: which mirrors make a slice on an empty pod, without a server.

use std::collections::{BTreeMap, BTreeSet};

use clap::Subcommand;
use selvedge_family::torus::hardware::CUBES_MAX;
use selvedge_family::torus::shape::Shape;
use selvedge_family::torus::{build, place, wiring};
use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::id::PartId;
use selvedge_model::job::{Hold, Place};
use serde::Serialize;

use crate::Globals;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::table::Table;
use crate::render::{self, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Wire {
    #[command(subcommand)]
    verb: WireVerb,
}

#[derive(Debug, Subcommand)]
enum WireVerb {
    /// The cubes and the xconnects of a slice on an empty pod.
    Plan(Plan),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Light leaves the + face of cube `from` and enters the - face of `to`; \
                        an ocs is its dimension and the index 4a + b of the fibre on the face, \
                        a and b being the chip's other two coordinates in the order x, y, z.\n\
                        Exit status: 0 planned, 1 the pod is too small, 2 no such shape.")]
struct Plan {
    /// Chips along x, y and z, such as 8x8x16 or 8x8x16_twisted.
    #[arg(long, value_name = "SHAPE")]
    shape: String,
    /// How many cubes the pod has, 1 to 64.
    #[arg(long, value_name = "K", default_value_t = CUBES_MAX as u64,
          value_parser = clap::value_parser!(u64).range(1..=CUBES_MAX as u64))]
    cubes: u64,
}

/// The fixed form of the answer.
#[derive(Debug, Serialize)]
struct Planned {
    shape: String,
    chips: u32,
    cubes: Vec<PlannedCube>,
    xconnects: Vec<PlannedXconnect>,
}

#[derive(Debug, Serialize)]
struct PlannedCube {
    cube: String,
    /// Its coordinate in the slice, counted in cubes.
    at: [u16; 3],
}

#[derive(Debug, Serialize)]
struct PlannedXconnect {
    ocs: String,
    from: String,
    to: String,
}

pub(crate) fn run(args: &Wire, globals: &Globals) -> Outcome {
    let WireVerb::Plan(args) = &args.verb;
    let (shape, notes) = Shape::parse(&args.shape)?;
    for note in notes {
        anstream::eprintln!("note: {note}");
    }
    let fabric = build::pods(1, args.cubes as usize).within(|| "cannot build the pod")?;
    let Some(planned) = plan(&fabric, &shape)? else {
        let (n_needed, n_cubes) = (shape.n_cubes(), args.cubes);
        let why = format!("{shape} takes {n_needed} cubes and the pod has {n_cubes}");
        return Err(Failure::refusal(why).hint("take a smaller shape, or more --cubes"));
    };
    if globals.json {
        render::print_json(&planned)?;
    } else {
        render::print(&page(&planned))?;
    }
    Ok(Answer::Yes)
}

/// `None` where the pod does not have enough cubes.
fn plan(fabric: &Fabric, shape: &Shape) -> Outcome<Option<Planned>> {
    let is_cube = |part: &PartId| fabric.template_of(*part).role == Role::Compute;
    let free: Vec<PartId> = fabric.parts().ids().filter(is_cube).collect();
    let Some(place) = choose(fabric, &free, shape) else { return Ok(None) };
    let name = |part: PartId| fabric.part(part).name.to_string();
    let at = |idx: usize| shape.cube_lattice().map_or([0; 3], |it| it.point(idx));
    let cubes = place.holds.iter().enumerate();
    let cubes = cubes.map(|(idx, hold)| PlannedCube { cube: name(hold.part), at: at(idx) });
    let joined = wiring::xconnects(fabric, shape, &place)
        .within(|| format!("cannot wire {shape} on an empty pod"))?;
    let xconnects = joined.iter().map(|&(ocs, xconnect)| {
        let cube_at = |port: u16| {
            let end = fabric.peer_of(fabric.port_at(ocs, usize::from(port)));
            name(fabric.part_of_port(end.expect("the wiring was read from this cable")))
        };
        let (from, to) = (cube_at(xconnect.north), cube_at(xconnect.south));
        PlannedXconnect { ocs: name(ocs), from, to }
    });
    Ok(Some(Planned {
        shape: shape.to_string(),
        chips: shape.n_chips(),
        cubes: cubes.collect(),
        xconnects: xconnects.collect(),
    }))
}

fn choose(fabric: &Fabric, free: &[PartId], shape: &Shape) -> Option<Place> {
    let nothing_joined = &|_, _| None;
    if shape.cube_lattice().is_some() {
        let parts = place::choose(fabric, free, shape, nothing_joined)?;
        return Some(place::arrange(fabric, shape, &parts, nothing_joined));
    }
    let part = *free.first()?;
    let selvedge_model::job::Need::Within { masks } = shape.need() else { return None };
    let pool = fabric.part(part).pool?;
    Some(Place::of(pool, vec![Hold { part, seats: *masks.first()? }]))
}

/// The same for people: each cube with the cubes that its three + faces lead to.
fn page(planned: &Planned) -> String {
    let mut faces: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for it in &planned.xconnects {
        faces.entry((&it.from, &it.ocs[..1])).or_default().insert(&it.to);
    }
    let mut table = Table::new(&["cube", "at", "+x to", "+y to", "+z to"]);
    for PlannedCube { cube, at: [x, y, z] } in &planned.cubes {
        let to = |dim| match faces.get(&(cube.as_str(), dim)) {
            Some(to) => to.iter().copied().collect::<Vec<_>>().join(" "),
            None => "-".to_owned(),
        };
        let at = format!("{x},{y},{z}");
        table.row([cube.into(), at.into(), to("x").into(), to("y").into(), to("z").into()]);
    }
    let n_switches = planned.xconnects.iter().map(|it| &it.ocs).collect::<BTreeSet<_>>().len();
    let title = style::TITLE;
    let head = format!(
        "{title}{}{title:#}: {}, {}",
        planned.shape,
        number::counted(u64::from(planned.chips), "chip"),
        number::counted(planned.cubes.len() as u64, "cube"),
    );
    let wires = match planned.xconnects.len() {
        0 => "no xconnects: it lies within one cube".to_owned(),
        n => format!(
            "{} on {n_switches} switches, {} each; the 16 fibres of a face lead to one cube",
            number::counted(n as u64, "xconnect"),
            n / n_switches,
        ),
    };
    format!("{head}\n{wires}\n\n{table}")
}
