//! What is asked of the hardware.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{PartId, PoolId, PortId};
use crate::limits;
use crate::unit::{Ppm, Span};

/// How much hardware a job needs, in its family's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// A slice of a torus pod: `4x8x8`, `4x8x8_twisted`, `2x2x1`; or rows and columns of boards of
    /// a grid: `4x6`.
    Shape(String),
    /// Whole parts with all their seats, in one pool: hosts of a cluster.
    Parts(u32),
    /// Chips that are joined with one another, on boards of a grid.
    Load(Box<Load>),
}

/// A task's load, from which its partition of a grid of boards follows (seed 004, claim 12).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Load {
    /// Chips at least.
    pub chips: u32,
    /// Memory of all chips together at least, in GiB.
    pub memory_gib: u32,
    /// The share of its time that it communicates on the best partition of its size.
    pub communication: Ppm,
    /// What it communicates by.
    pub collective: Collective,
    /// Boards that hold the chips and the memory; worked out when it is submitted.
    pub boards: Option<u32>,
}

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collective {
    /// Everyone gets the sum of all.
    AllReduce,
    /// Everyone gets the pieces of all.
    AllGather,
}

impl Collective {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Collective::AllReduce => "all-reduce",
            Collective::AllGather => "all-gather",
        }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Demand::Shape(shape) => f.write_str(shape),
            Demand::Parts(1) => f.write_str("1 host"),
            Demand::Parts(n) => write!(f, "{n} hosts"),
            Demand::Load(load) => {
                write!(f, "{} chips", load.chips)?;
                if load.memory_gib != 0 {
                    write!(f, " with {} GiB", load.memory_gib)?;
                }
                Ok(())
            }
        }
    }
}

/// What the tasks of a job do.  The scheduler never reads it: it knows limits only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Steps of equal length that a simulated world counts.
    Simulated {
        /// How long all steps take on healthy hardware.
        duration: Span,
        /// How long one step takes.
        step: Span,
        /// How long the job computes between two checkpoints.
        checkpoint_every: Span,
    },
    /// A program, run once on each machine of the job.
    Command(Program),
}

/// A program as a job's owner gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name or path, and its arguments.
    pub argv: Vec<String>,
    /// Variables that it is given beyond those of its slice.
    pub env: BTreeMap<String, String>,
    /// The directory that it begins in; its own scratch directory where absent.
    pub dir: Option<String>,
    /// How long it may go without touching its heartbeat file; none if nobody watches.
    pub heartbeat: Option<Span>,
    /// The machine's account that it runs under, which the server says and no owner does; the
    /// server's own where absent.
    #[serde(default)]
    pub account: Option<String>,
}

impl Work {
    /// What a world that runs no programs counts in its stead: all steps, one step, and the time
    /// between two checkpoints.  A program counts as an hour of steps of a second.
    pub fn steps(&self) -> (Span, Span, Span) {
        match self {
            Work::Simulated { duration, step, checkpoint_every } => {
                (*duration, *step, *checkpoint_every)
            }
            Work::Command(_) => (Span::hours(1), Span::secs(1), Span::mins(10)),
        }
    }

    /// The program, where it is one.
    pub fn program(&self) -> Option<&Program> {
        match self {
            Work::Command(program) => Some(program),
            Work::Simulated { .. } => None,
        }
    }
}

/// A job as its owner writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// For people; need not be unique.
    pub name: String,
    /// Who asked.
    pub owner: String,
    /// On whose account.
    pub project: String,
    /// How much hardware.
    pub demand: Demand,
    /// Higher goes first, 0..=9.
    pub priority: u8,
    /// Whether a job of higher priority may take its hardware, after a notice.
    pub preemptible: bool,
    /// How long it may run from each dispatch; none for as long as it likes.
    pub limit: Option<Span>,
    /// How often it is started again after it failed by itself.
    pub retries: u32,
    /// What its tasks do.
    pub work: Work,
    /// Replicas of each process: 1, or 3 on hosts close together (seed 003, definition 4).
    pub redundancy: u8,
}

/// The highest priority.
pub const PRIORITY_MAX: u8 = 9;

/// What is wrong with a job as written.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpecError {
    /// Empty, too long, or with characters that do not print.
    #[error("{field} must be 1 to {max} printable characters, not {value:?}")]
    Name {
        /// Which one.
        field: String,
        /// The limit in bytes.
        max: usize,
        /// As written, cut short.
        value: String,
    },
    /// Beyond 0..=9.
    #[error("priority {priority} is above {PRIORITY_MAX}")]
    Priority {
        /// As written.
        priority: u8,
    },
    /// A limit or step of no length.
    #[error("{field} must be longer than nothing")]
    NoLength {
        /// Which one.
        field: String,
    },
    /// A command of no words, or whose first is empty.
    #[error("a command needs at least the name of a program")]
    NoProgram,
    /// Too many words, or too much text.
    #[error("{field} takes {n} bytes in {n_words} texts; at most {max} bytes in {words_max} fit")]
    TooLong {
        /// Which one.
        field: String,
        /// How much it takes.
        n: usize,
        /// In how many texts.
        n_words: usize,
        /// The most bytes.
        max: usize,
        /// The most texts.
        words_max: usize,
    },
    /// A text that no program can be given.
    #[error("{field} holds a NUL byte, which no program can be given")]
    Nul {
        /// Which one.
        field: String,
    },
    /// A variable whose name is none, or is the slice's to give.
    #[error(
        "{name:?} cannot be set: names are letters, digits and underscores, and those of the slice \
         are set by Selvedge"
    )]
    Variable {
        /// As written, cut short.
        name: String,
    },
    /// Replicas that nothing is placed for.
    #[error("redundancy is 1 or 3, not {redundancy}")]
    Redundancy {
        /// As written.
        redundancy: u8,
    },
    /// A directory that depends on where the server was started.
    #[error("directory {dir:?} must be absolute")]
    Directory {
        /// As written, cut short.
        dir: String,
    },
}

impl JobSpec {
    /// Holds the spec against what every family asks of a job.
    ///
    /// # Errors
    /// The first [`SpecError`].
    pub fn check(&self) -> Result<(), SpecError> {
        for (field, value) in
            [("name", &self.name), ("owner", &self.owner), ("project", &self.project)]
        {
            let fits = !value.is_empty() && value.len() <= limits::NAME_MAX;
            if !fits || value.chars().any(char::is_control) {
                return Err(SpecError::Name {
                    field: field.to_owned(),
                    max: limits::NAME_MAX,
                    value: value.chars().take(32).collect(),
                });
            }
        }
        if PRIORITY_MAX < self.priority {
            return Err(SpecError::Priority { priority: self.priority });
        }
        if !matches!(self.redundancy, 1 | 3) {
            return Err(SpecError::Redundancy { redundancy: self.redundancy });
        }
        let no_length = |field: &str| SpecError::NoLength { field: field.to_owned() };
        if self.limit == Some(Span::ZERO) {
            return Err(no_length("limit"));
        }
        match &self.work {
            Work::Simulated { step, .. } if *step == Span::ZERO => Err(no_length("step")),
            Work::Simulated { checkpoint_every, .. } if *checkpoint_every == Span::ZERO => {
                Err(no_length("checkpoint_every"))
            }
            Work::Simulated { .. } => Ok(()),
            Work::Command(program) if program.heartbeat == Some(Span::ZERO) => {
                Err(no_length("heartbeat"))
            }
            Work::Command(program) => program.check(),
        }
    }
}

/// Variables that say where a task is; nobody else may set them.
pub const SLICE_VARIABLES: [&str; 7] =
    ["TPU_", "SELVEDGE_", "MASTER_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"];

/// Of the same names, those that say which server a command of the task's own asks, and as whom.
pub const CLIENT_VARIABLES: [&str; 3] = ["SELVEDGE_SERVER", "SELVEDGE_TOKEN_FILE", "SELVEDGE_CA"];

impl Program {
    fn check(&self) -> Result<(), SpecError> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(SpecError::NoProgram);
        }
        let env = self.env.iter().flat_map(|(name, value)| [name, value]);
        fits("command", self.argv.iter())?;
        fits("env", env)?;
        fits("dir", self.dir.iter())?;
        for name in self.env.keys() {
            if !is_variable(name) || is_of_slice(name) {
                return Err(SpecError::Variable { name: name.chars().take(32).collect() });
            }
        }
        match &self.dir {
            Some(dir) if !dir.starts_with('/') => {
                Err(SpecError::Directory { dir: dir.chars().take(64).collect() })
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn fits<'a>(field: &str, texts: impl Iterator<Item = &'a String>) -> Result<(), SpecError> {
    let (mut n, mut n_words, mut nul) = (0, 0, false);
    for text in texts {
        n += text.len() + 1;
        n_words += 1;
        nul |= text.contains('\0');
    }
    let (max, words_max) = (limits::COMMAND_BYTES_MAX, limits::COMMAND_WORDS_MAX);
    if max < n || words_max < n_words {
        return Err(SpecError::TooLong { field: field.to_owned(), n, n_words, max, words_max });
    }
    if nul { Err(SpecError::Nul { field: field.to_owned() }) } else { Ok(()) }
}

fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|it| it.is_ascii_alphabetic() || it == '_');
    begins && chars.all(|it| it.is_ascii_alphanumeric() || it == '_')
}

fn is_of_slice(name: &str) -> bool {
    let begins = |it: &&str| if it.ends_with('_') { name.starts_with(it) } else { name == *it };
    SLICE_VARIABLES.iter().any(begins) && !CLIENT_VARIABLES.contains(&name)
}

/// A job's hold on one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// The part.
    pub part: PartId,
    /// Its seats, as a mask.
    pub seats: u64,
}

/// Where a job is, or would be: its holds in the order that its demand numbers them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The pool that all parts are in.
    pub pool: PoolId,
    /// One for each part, in the family's order (for a torus: x fastest, then y, then z).
    pub holds: Vec<Hold>,
    /// Both ends of each cable between its parts that was out of use when it was chosen, ascending:
    /// the job runs without them.
    #[serde(default)]
    pub without: Vec<PortId>,
}

impl Place {
    /// These holds with every cable between them.
    pub fn of(pool: PoolId, holds: Vec<Hold>) -> Self {
        Self { pool, holds, without: Vec::new() }
    }

    /// Whether a cable at `port` is one that the job runs without.
    pub fn is_without(&self, port: PortId) -> bool {
        self.without.binary_search(&port).is_ok()
    }

    /// Whether it has something of `part`.
    pub fn has_part(&self, part: PartId) -> bool {
        self.holds.iter().any(|it| it.part == part)
    }

    /// How many seats (chips) it takes.
    pub fn n_seats(&self) -> u32 {
        self.holds.iter().map(|it| it.seats.count_ones()).sum()
    }
}

/// One pair of a circuit switch: light that enters at `north` leaves at `south`, and back.
/// Ports by their place on the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Xconnect {
    /// The north port.
    pub north: u16,
    /// The south port.
    pub south: u16,
}

/// What a family makes of a demand: all that a scheduler needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// So many whole parts of one pool, any of them, with all their seats, inner links and
    /// outer links.
    Whole {
        /// How many.
        n_parts: u32,
    },
    /// One of these sets of seats within one part, with the inner links among them.
    Within {
        /// The masks in order of preference; all of one size, at least one.
        masks: Vec<u64>,
    },
    /// Whole parts that are joined on the grid of their pool.
    Partition(Partition),
}

/// Whole parts that are joined on the grid of their pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// How many.
    pub n_parts: u32,
    /// The sides of the box that it would like, in any order; their product is `n_parts`.
    pub sides: Option<[u16; 3]>,
    /// Whether nothing but that box will do.
    pub exact: bool,
    /// The share of its time that it communicates on the best partition of its size.
    pub communication: Ppm,
    /// What it communicates by.
    pub collective: Collective,
}

impl Need {
    /// How many seats (chips) it takes on parts of `n_part_seats` seats.
    pub fn n_seats(&self, n_part_seats: u32) -> u32 {
        match self {
            Need::Whole { n_parts } => n_parts * n_part_seats,
            Need::Within { masks } => masks[0].count_ones(),
            Need::Partition(it) => it.n_parts * n_part_seats,
        }
    }
}
