//! Which cube goes where (seed 000 §3.4.1, step 1).
//!
//! Any cube serves any coordinate, so the choice is free, and it is used to turn few mirrors:
//! cubes that are already joined as the shape wants keep their joints.  Finding the most such
//! joints is a subgraph isomorphism; this is a greedy walk.  At the first coordinate without a
//! cube it tries each cube in turn, lets the joints of that cube pull in further cubes, and
//! keeps the try that saves the most.  With 64 cubes that is at most 64·65/2 cubes placed.

use selvedge_model::fabric::{Fabric, Side};
use selvedge_model::id::PartId;
use selvedge_model::job::{Hold, Place};

use crate::torus::hardware::{CUBES_MAX, FACE, face_port};
use crate::torus::lattice::{Direction, Lattice};
use crate::torus::shape::Shape;
use crate::torus::wiring::mirror;

/// What a switch joins with one of its north ports: `(switch, north) -> south`.
pub type Current<'a> = &'a dyn Fn(PartId, u16) -> Option<u16>;

/// The faces of each dimension that are asked for what they are joined with.  The sixteen always
/// turn together; a second one is asked so that one dead switch does not hide the other fifteen.
const ASKED: [usize; 2] = [0, FACE - 1];

/// Gives each of `parts` a coordinate, so that few xconnects change against `current`.
///
/// The order of `parts` does not matter.
///
/// # Panics
/// If `shape` lies within a cube or takes another number of cubes, or if a part has no pool.
pub fn arrange(fabric: &Fabric, shape: &Shape, parts: &[PartId], current: Current) -> Place {
    assert_eq!(parts.len(), shape.n_cubes(), "cubes for {shape}");
    let seated = seat(fabric, shape, parts, current).expect("as many cubes as coordinates");
    whole(fabric, &seated)
}

/// Which of `free` to take for `shape`: those that are already joined as it wants, else the
/// lowest; ascending.  `None` where there are not enough, or where `shape` lies within a cube.
///
/// `free` are free, healthy cubes of one pool.
pub fn choose(
    fabric: &Fabric,
    free: &[PartId],
    shape: &Shape,
    current: Current,
) -> Option<Vec<PartId>> {
    let mut chosen = seat(fabric, shape, free, current)?;
    chosen.sort_unstable();
    Some(chosen)
}

fn whole(fabric: &Fabric, seated: &[PartId]) -> Place {
    let pool = fabric.part(seated[0]).pool.expect("a cube is in a pool");
    let hold = |&part| Hold { part, seats: fabric.template_of(part).all_seats() };
    Place::of(pool, seated.iter().map(hold).collect())
}

/// A cube for each coordinate in order, out of `free`.
fn seat(fabric: &Fabric, shape: &Shape, free: &[PartId], current: Current) -> Option<Vec<PartId>> {
    let lattice = shape.cube_lattice()?;
    let mut free = free.to_vec();
    free.sort_unstable();
    free.truncate(FREE_MAX);
    let n_coords = lattice.n_points();
    if free.len() < n_coords {
        return None;
    }
    let plan = Seating::new(fabric, lattice, &free, current);
    let mut taken = Taken { cube_at: [NOBODY; CUBES_MAX], used: 0 };
    while let Some(coord) = taken.cube_at[..n_coords].iter().position(|&it| it == NOBODY) {
        let mut best: Option<(usize, Taken)> = None;
        let mut has_tried_blank = false;
        for cube in (0..free.len()).filter(|&cube| !taken.uses(cube)) {
            // Cubes without joints are all alike; the lowest stands for them.
            let is_blank = plan.joined[cube] == [NOBODY; 6];
            if is_blank && std::mem::replace(&mut has_tried_blank, true) {
                continue;
            }
            let mut tried = taken.clone();
            let n_kept = plan.grow(&mut tried, coord, cube);
            if best.as_ref().is_none_or(|(most, _)| *most < n_kept) {
                best = Some((n_kept, tried));
            }
            // Nothing is better than to keep all joints of the whole slice.
            if n_kept == 3 * n_coords {
                break;
            }
        }
        (_, taken) = best?;
    }
    Some(taken.cube_at[..n_coords].iter().map(|&cube| free[usize::from(cube)]).collect())
}

const NOBODY: u16 = u16::MAX;

/// More cubes than the north ports of a switch, spares included, can be cabled to.
const FREE_MAX: usize = 128;

/// Who sits where so far; cubes by their place among the free ones.
#[derive(Clone)]
struct Taken {
    cube_at: [u16; CUBES_MAX],
    used: u128,
}

impl Taken {
    fn uses(&self, cube: usize) -> bool {
        self.used >> cube & 1 == 1
    }

    fn put(&mut self, coord: usize, cube: u16) {
        self.cube_at[coord] = cube;
        self.used |= 1 << cube;
    }
}

/// What seating reads.
struct Seating {
    /// The coordinate in each direction from each coordinate.
    beside: Vec<[u16; 6]>,
    /// The free cube that each free cube is joined with in each direction.
    joined: Vec<[u16; 6]>,
}

impl Seating {
    fn new(fabric: &Fabric, lattice: Lattice, free: &[PartId], current: Current) -> Self {
        let step = |coord, direction| {
            let next = lattice.step(lattice.point(coord), direction);
            lattice.idx(next.expect("cubes are joined all the way round")) as u16
        };
        let beside = (0..lattice.n_points())
            .map(|coord| Direction::ALL.map(|direction| step(coord, direction)))
            .collect();
        let mut joined = vec![[NOBODY; 6]; free.len()];
        for (cube, &part) in free.iter().enumerate() {
            for dim in 0..3 {
                let next = joined_with(fabric, part, dim, current);
                let Some(next) = next.and_then(|it| free.binary_search(&it).ok()) else { continue };
                joined[cube][Direction::new(dim, true).idx()] = next as u16;
                joined[next][Direction::new(dim, false).idx()] = cube as u16;
            }
        }
        Self { beside, joined }
    }

    /// Puts `cube` at `coord`, then whatever its joints pull in; returns how many joints are kept
    /// by those put down.
    fn grow(&self, taken: &mut Taken, coord: usize, cube: usize) -> usize {
        let mut n_kept = 0;
        taken.put(coord, cube as u16);
        let mut to_do = 1u64 << coord;
        while to_do != 0 {
            let coord = to_do.trailing_zeros() as usize;
            to_do &= to_do - 1;
            let cube = usize::from(taken.cube_at[coord]);
            for direction in Direction::ALL {
                let next = self.joined[cube][direction.idx()];
                if next == NOBODY {
                    continue;
                }
                let there = usize::from(self.beside[coord][direction.idx()]);
                if taken.cube_at[there] == NOBODY && !taken.uses(usize::from(next)) {
                    taken.put(there, next);
                    to_do |= 1 << there;
                }
                // A joint is met from both its ends and counts from one.  Both lie among those
                // put down here: whoever came earlier has pulled in all that fits.
                n_kept += usize::from(direction.out() && taken.cube_at[there] == next);
            }
        }
        n_kept
    }
}

/// The cube whose - face the + face of `cube` is joined with along `dim`.
fn joined_with(fabric: &Fabric, cube: PartId, dim: usize, current: Current) -> Option<PartId> {
    ASKED.iter().find_map(|&index| {
        let out_end = fabric.port_at(cube, face_port(dim, true, index));
        let (switch, north) = mirror(fabric, out_end, Side::North).ok()?;
        let south = usize::from(current(switch, north)?);
        // A device may answer with a port that it does not have.
        if fabric.template_of(switch).ports().len() <= south {
            return None;
        }
        let in_end = fabric.cable_at(fabric.port_at(switch, south))?;
        let (next, local) = [in_end.a, in_end.b]
            .map(|end| fabric.port_local(end))
            .into_iter()
            .find(|&(part, _)| part != switch)?;
        (local == face_port(dim, false, index)).then_some(next)
    })
}

#[cfg(test)]
mod tests;
