//! The shapes of slices: what a person asks for and what it takes.
//!
//! Seed 000 §3.1: a slice is asked for as (4x,4y,4z); any cubes serve any coordinates (§3.4.1).
//! §3.2: shapes below a cube are meshes of neighbouring machines of 2x2x1.  §3.4.2: two
//! families can be twisted, (4k,4k,8k) and (4k,8k,8k).  The seed's second "(4k,4k,8k)" is read
//! as (4k,8k,8k), which is the shape that its text and its figure 8b describe.

use std::fmt;

use selvedge_model::job::Need;
use serde::{Deserialize, Serialize};

use crate::grid::{Grid, orientations};
use crate::torus::hardware::{CHIPS, CUBES_MAX, SIDE};
use crate::torus::lattice::{Lattice, Point};

/// The chips of a slice and how their ends are joined.  Stored and sent as its text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shape {
    /// Ascending, but for `2x2x1`, which is a machine as it stands in its cube.  One of
    /// [`WITHIN`], or multiples of four that take at most 64 cubes.
    dims: Point,
    /// Only where [`can_twist`] says so.
    twisted: bool,
}

/// The shapes within a cube; every one but the first is whole machines (seed 000 §3.2).
const WITHIN: [Point; 5] = [[1, 1, 1], [2, 2, 1], [2, 2, 2], [2, 2, 4], [2, 4, 4]];

const MACHINE: Shape = Shape { dims: WITHIN[1], twisted: false };

/// What was understood from a shape that is not written as it prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapeNote {
    /// Sides may come in any order.
    Reordered {
        /// As written.
        written: String,
        /// As understood.
        shape: Shape,
    },
    /// Two chips of a machine are not let without the other two.
    WholeMachine {
        /// As written.
        written: String,
    },
}

impl fmt::Display for ShapeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapeNote::Reordered { written, shape } => write!(f, "{written} is {shape}"),
            ShapeNote::WholeMachine { written } => {
                write!(f, "{written} takes a whole machine, {MACHINE}")
            }
        }
    }
}

/// Why a text is no shape.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapeError {
    /// Not three sides.
    #[error("{text:?} is no shape; write three sides, such as 4x4x8 or 4x4x8_twisted")]
    Form {
        /// As written, cut short.
        text: String,
    },
    /// A side that is no count of chips.
    #[error("side {side:?} of shape {text:?} must be a whole number from 1 to {max}")]
    Side {
        /// As written, cut short.
        text: String,
        /// The side.
        side: String,
        /// The longest side that a pod has.
        max: usize,
    },
    /// Something else behind the sides.
    #[error("{suffix:?} behind shape {text:?} must be \"_twisted\" or \"_untwisted\"")]
    Suffix {
        /// As written, cut short.
        text: String,
        /// What stands behind the sides, cut short.
        suffix: String,
    },
    /// Neither a box of machines in a cube nor whole cubes.
    #[error(
        "{written} is neither whole cubes (each side a multiple of 4) nor one of {}; \
         nearest are {}",
        list(&within()), list(near)
    )]
    NoSuch {
        /// As written.
        written: String,
        /// The nearest valid shapes.
        near: Vec<Shape>,
    },
    /// More cubes than the switches of a pod join.
    #[error(
        "{written} takes {n_cubes} cubes and a pod joins {CUBES_MAX}; nearest are {}",
        list(near)
    )]
    TooLarge {
        /// As written.
        written: String,
        /// How many it would take.
        n_cubes: u64,
        /// The nearest valid shapes.
        near: Vec<Shape>,
    },
    /// Neither (4k,4k,8k) nor (4k,8k,8k).
    #[error(
        "{written} has no twisted form, which only (4k,4k,8k) and (4k,8k,8k) have; \
         nearest are {}",
        list(near)
    )]
    NotTwisted {
        /// As written, without its suffix.
        written: String,
        /// The nearest twisted shapes.
        near: Vec<Shape>,
    },
}

impl Shape {
    /// Reads `AxBxC`, sides in any order, `_twisted` or `_untwisted` behind it if wanted.
    ///
    /// # Errors
    /// [`ShapeError`], which names the nearest shapes that there are.
    pub fn parse(text: &str) -> Result<(Self, Vec<ShapeNote>), ShapeError> {
        let (written, twisted) = match text.split_once('_') {
            None => (text, false),
            Some((written, "untwisted")) => (written, false),
            Some((written, "twisted")) => (written, true),
            Some((_, suffix)) => {
                let suffix = format!("_{}", clip(suffix));
                return Err(ShapeError::Suffix { text: clip(text), suffix });
            }
        };
        let mut dims = sides(written)?;
        dims.sort_unstable();
        let written = clip(written);
        let is_half_machine = dims == [1, 1, 2];
        if is_half_machine || dims == [1, 2, 2] {
            dims = MACHINE.dims;
        }
        let near = |twisted| nearest(dims, twisted);
        if !WITHIN.contains(&dims) {
            if dims.iter().any(|side| !usize::from(*side).is_multiple_of(SIDE)) {
                return Err(ShapeError::NoSuch { written, near: near(false) });
            }
            let n_cubes = dims.iter().map(|&side| u64::from(side) / SIDE as u64).product();
            if (CUBES_MAX as u64) < n_cubes {
                return Err(ShapeError::TooLarge { written, n_cubes, near: near(false) });
            }
        }
        if twisted && !can_twist(dims) {
            return Err(ShapeError::NotTwisted { written, near: near(true) });
        }
        let untwisted = Self { dims, twisted: false };
        let notes = if is_half_machine {
            vec![ShapeNote::WholeMachine { written }]
        } else if written != untwisted.to_string() {
            vec![ShapeNote::Reordered { written, shape: untwisted }]
        } else {
            Vec::new()
        };
        Ok((Self { dims, twisted }, notes))
    }

    /// Every shape that there is, fewest chips first, each torus before its twisted form.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = within();
        let side = |cubes: usize| (SIDE * cubes) as u16;
        for a in 1..=CUBES_MAX {
            for b in a..=CUBES_MAX / a {
                for c in b..=CUBES_MAX / (a * b) {
                    let dims = [side(a), side(b), side(c)];
                    all.push(Self { dims, twisted: false });
                    if can_twist(dims) {
                        all.push(Self { dims, twisted: true });
                    }
                }
            }
        }
        all.sort_by_key(|it| (it.n_chips(), *it));
        all
    }

    /// The shape with the fewest chips that holds `n`, and of several the one with the smallest
    /// diameter, which is a twisted one where there is any (docs/decisions/0021).
    pub fn for_chips(n: u64) -> Option<Self> {
        let holds = |it: &Self| n <= u64::from(it.n_chips());
        Self::all().into_iter().filter(holds).min_by_key(|it| (it.n_chips(), it.diameter(), *it))
    }

    /// Chips along x, y and z.
    pub const fn dims(&self) -> Point {
        self.dims
    }

    /// Whether its wraps are shifted (seed 000 §3.4.2).
    pub const fn twisted(&self) -> bool {
        self.twisted
    }

    /// How many chips it takes.
    pub fn n_chips(&self) -> u32 {
        self.dims.iter().map(|&side| u32::from(side)).product()
    }

    /// Cubes along x, y and z; `None` for a shape within a cube.
    pub fn cubes(&self) -> Option<Point> {
        (!WITHIN.contains(&self.dims)).then(|| self.dims.map(|side| side / SIDE as u16))
    }

    /// How many cubes it lies in; a shape within a cube lies in one.
    pub fn n_cubes(&self) -> usize {
        self.n_chips().div_ceil(CHIPS as u32) as usize
    }

    /// The most hops that a shortest way between two of its chips has.
    pub fn diameter(&self) -> u32 {
        let sides = self.dims.map(u32::from);
        if self.cubes().is_none() {
            return sides.iter().map(|side| side - 1).sum();
        }
        if self.twisted {
            // Both families are as symmetric as a lattice can be, and 3/2 of their shortest side
            // across (tests hold this against a search).
            return sides[0] * 3 / 2;
        }
        sides.iter().map(|side| side / 2).sum()
    }

    /// Its chips and how they are joined.
    pub fn chips(&self) -> Lattice {
        let wraps = self.cubes().is_some();
        Lattice::new(self.dims, wraps, self.shifts(self.dims))
    }

    /// Its cubes and how they are joined; `None` for a shape within a cube.
    pub fn cube_lattice(&self) -> Option<Lattice> {
        let cubes = self.cubes()?;
        Some(Lattice::new(cubes, true, self.shifts(cubes)))
    }

    /// What a scheduler needs to know of it.  Whole cubes: any of one pod (seed 000 §3.4.1).
    /// Within a cube: boxes of whole machines in every orientation, or single chips.
    ///
    /// The boxes stand in the order of what they break.  Halving a cube along z, y, x and z
    /// again gives blocks of 4x4x2, 4x2x2, 2x2x2 and 2x2x1 chips; a box breaks a block that it
    /// takes a part of only.  Boxes that break the fewest come first, which are the blocks of
    /// its own size, and of equals the one that lies first when blocks are counted half by half.
    /// Whoever takes the first free box thus fills a broken block before it breaks the next.
    pub fn need(&self) -> Need {
        if self.cubes().is_some() {
            return Need::Whole { n_parts: self.n_cubes() as u32 };
        }
        let holds_machines = self.dims != WITHIN[0];
        let machines: Vec<u64> = CUBE.blocks([2, 2, 1]).map(|it| CUBE.mask(it)).collect();
        let machines: Vec<u64> = machines.into_iter().filter(|it| is_machine(*it)).collect();
        let is_whole = |mask: u64| machines.iter().all(|it| it & mask == 0 || it & mask == *it);
        let mut masks: Vec<u64> = orientations(self.dims.map(usize::from))
            .into_iter()
            .flat_map(|sides| CUBE.blocks(sides))
            .map(|block| CUBE.mask(block))
            .filter(|&mask| !holds_machines || is_whole(mask))
            .collect();
        let halves = halved_blocks();
        masks.sort_by_cached_key(|&mask| {
            let n_broken = halves.iter().filter(|&it| it & mask != 0 && it & !mask != 0).count();
            (n_broken, first_address(mask))
        });
        Need::Within { masks }
    }

    /// What the wrap of each dimension adds, on a lattice of `sides` (chips or cubes): half of
    /// each long side.  Seed 000 §3.4.2: (4k,4k,8k): x and y wraps add (0,0,4k); (4k,8k,8k):
    /// x wraps add (0,4k,4k).
    fn shifts(&self, sides: Point) -> [Point; 3] {
        let [x, y, z] = sides;
        match (self.twisted, x == y) {
            (false, _) => [[0; 3]; 3],
            (true, true) => [[0, 0, z / 2], [0, 0, z / 2], [0; 3]],
            (true, false) => [[0, y / 2, z / 2], [0; 3], [0; 3]],
        }
    }
}

/// The seats of a cube.
const CUBE: Grid<3> = Grid::mesh([SIDE; 3]);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.dims;
        write!(f, "{x}x{y}x{z}{}", if self.twisted { "_twisted" } else { "" })
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Shape> for String {
    fn from(shape: Shape) -> String {
        shape.to_string()
    }
}

impl TryFrom<String> for Shape {
    type Error = ShapeError;
    fn try_from(text: String) -> Result<Self, ShapeError> {
        Self::parse(&text).map(|(shape, _)| shape)
    }
}

impl std::str::FromStr for Shape {
    type Err = ShapeError;
    fn from_str(text: &str) -> Result<Self, ShapeError> {
        Self::parse(text).map(|(shape, _)| shape)
    }
}

fn can_twist([x, y, z]: Point) -> bool {
    usize::from(x).is_multiple_of(SIDE) && z == 2 * x && (y == x || y == z)
}

fn within() -> Vec<Shape> {
    WITHIN.map(|dims| Shape { dims, twisted: false }).to_vec()
}

fn sides(written: &str) -> Result<Point, ShapeError> {
    let texts: Vec<&str> = written.splitn(4, 'x').collect();
    let [a, b, c] = texts[..] else { return Err(ShapeError::Form { text: clip(written) }) };
    let mut dims = [0; 3];
    for (side, text) in dims.iter_mut().zip([a, b, c]) {
        let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        *side = match text.parse() {
            Ok(side) if is_number && side != 0 => side,
            Ok(_) | Err(_) => {
                let max = SIDE * CUBES_MAX;
                return Err(ShapeError::Side { text: clip(written), side: clip(text), max });
            }
        };
    }
    Ok(dims)
}

/// The two valid shapes whose sides differ least, smaller ones first among equals.
fn nearest(dims: Point, twisted: bool) -> Vec<Shape> {
    let sorted = |mut dims: Point| {
        dims.sort_unstable();
        dims
    };
    let wanted = sorted(dims);
    let difference = |shape: &Shape| -> u32 {
        let sides = sorted(shape.dims);
        (0..3).map(|dim| u32::from(sides[dim].abs_diff(wanted[dim]))).sum()
    };
    let mut all = Shape::all();
    all.retain(|it| it.twisted == twisted);
    all.sort_by_key(|it| (difference(it), it.n_chips(), *it));
    all.truncate(2);
    all
}

fn list(shapes: &[Shape]) -> String {
    let texts: Vec<String> = shapes.iter().map(Shape::to_string).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some(_) | None => texts.concat(),
    }
}

fn clip(text: &str) -> String {
    text.chars().take(32).collect()
}

fn is_machine(mask: u64) -> bool {
    CUBE.block_of(mask).is_some_and(|it| it.origin[0] % 2 == 0 && it.origin[1] % 2 == 0)
}

/// The blocks that halving a cube along z, y, x and z again gives.
fn halved_blocks() -> Vec<u64> {
    let mut blocks = Vec::new();
    for sides in [[4, 4, 2], [4, 2, 2], [2, 2, 2], [2, 2, 1]] {
        for block in CUBE.blocks(sides) {
            if (0..3).all(|axis| block.origin[axis].is_multiple_of(sides[axis])) {
                blocks.push(CUBE.mask(block));
            }
        }
    }
    blocks
}

/// Where the first seat of `mask` lies when the cube is halved along z, y, x, z, y and x.
fn first_address(mask: u64) -> usize {
    let address = |seat: usize| {
        let [x, y, z] = CUBE.at(seat);
        [z / 2, y / 2, x / 2, z % 2, y % 2, x % 2].iter().fold(0, |bits, bit| 2 * bits + bit)
    };
    let seats = (0..CHIPS).filter(|seat| mask >> seat & 1 == 1);
    seats.map(address).min().unwrap_or(CHIPS)
}

#[cfg(test)]
mod tests;
