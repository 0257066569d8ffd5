//! Why a plant cannot be built.

use selvedge_model::fabric::FabricError;
use selvedge_model::limits;
use selvedge_model::spec::{At, point};
use selvedge_model::unit::{Length, Span};

use crate::build::BUILT_IN;

/// What tells how long a cable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthBy {
    /// Where its ends stand.
    Place,
    /// How long a bit takes; the longest that its kind takes.
    Delay(Span),
}

/// Why a plant cannot be built.  Its text says what is wrong, [`BuildError::right`] what would be
/// right.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BuildError {
    /// A path that names no port.
    #[error("there is no port {path:?}")]
    NoPort {
        /// The path.
        path: String,
        /// The port that looks most like it.
        near: Option<String>,
        /// Where it stands.
        at: At,
    },
    /// A name of no part.
    #[error("there is no part {name:?}")]
    NoPart {
        /// The name.
        name: String,
        /// The part that looks most like it.
        near: Option<String>,
        /// Where it stands.
        at: At,
    },
    /// A cube that has a number but is not there.
    #[error("{cube} is not deployed")]
    NotDeployed {
        /// The cube.
        cube: String,
        /// Where it stands.
        at: At,
    },
    /// A port of a part that the file says is missing.
    #[error("{part} is missing by another line")]
    PartMissing {
        /// The part.
        part: String,
        /// Where it stands.
        at: At,
    },
    /// A part of a template that there is not.
    #[error("there is no template {name:?}")]
    NoTemplate {
        /// The name.
        name: String,
        /// The template that looks most like it.
        near: Option<String>,
        /// Where it stands.
        at: At,
    },
    /// A topology file that the plant names and does not hold.
    #[error("there is no topology file {name:?}")]
    NoTopology {
        /// Its name.
        name: String,
        /// The one whose name looks most like it.
        near: Option<String>,
        /// Where it is named.
        at: At,
    },
    /// A topology file that describes no host.
    #[error("{name} describes no host: {wrong}")]
    BadTopology {
        /// Its name.
        name: String,
        /// What is wrong with it, with its place.
        wrong: String,
        /// The same, drawn at its place.
        drawn: String,
        /// Where it is named.
        at: At,
    },
    /// A topology for a part that is no host.
    #[error("{part} is no host: it has no topology")]
    NoHost {
        /// The part.
        part: String,
        /// Where it stands.
        at: At,
    },
    /// A template with the name of a built-in one.
    #[error("template {name:?} is built in")]
    TemplateTaken {
        /// The name.
        name: String,
        /// Where it stands.
        at: At,
    },
    /// A part with the name of another.
    #[error("part {name:?} is there already")]
    PartTaken {
        /// The name.
        name: String,
        /// Where it stands.
        at: At,
    },
    /// A failure domain with the name of a generated one.
    #[error("domain {name:?} is there already")]
    DomainTaken {
        /// The name.
        name: String,
        /// Where it stands.
        at: At,
    },
    /// An override of a cable that no generator makes.
    #[error("no generated cable ends at {port}")]
    NoCable {
        /// The port.
        port: String,
        /// Where it stands.
        at: At,
    },
    /// A port with two cables.
    #[error("port {port} is cabled twice: it already leads to {other}")]
    PortTaken {
        /// The port.
        port: String,
        /// Where its first cable leads.
        other: String,
        /// Where the second stands.
        at: At,
    },
    /// A cable at a port with a link inside its part.
    #[error("port {port} has a link inside its part")]
    PortLinked {
        /// The port.
        port: String,
        /// Where it stands.
        at: At,
    },
    /// A re-patched end on another switch.
    #[error("{port} is not on {switch}, the switch of {end}")]
    OtherSwitch {
        /// The port.
        port: String,
        /// The switch that the end belongs to.
        switch: String,
        /// The end.
        end: String,
        /// Where it stands.
        at: At,
    },
    /// A re-patched end on the wrong side of its switch.
    #[error("{port} is on the other side of {switch} than {end} needs")]
    OtherSide {
        /// The port.
        port: String,
        /// The switch.
        switch: String,
        /// The end.
        end: String,
        /// Where it stands.
        at: At,
    },
    /// An end without a switch that is to be re-patched.
    #[error("{end} leads to no switch")]
    NoSwitch {
        /// The end.
        end: String,
        /// Where it stands.
        at: At,
    },
    /// A missing part that the file itself adds.
    #[error("{name} is missing by this line and there by another")]
    MissingThere {
        /// The part.
        name: String,
        /// The key that makes it be there.
        key: &'static str,
        /// Where it stands.
        at: At,
    },
    /// A cable beyond what its kind carries.
    #[error("{a} to {b} is {length}, longer than {wire} carries, which is {reach}")]
    CableTooLong {
        /// One end.
        a: String,
        /// The other.
        b: String,
        /// How long it is at least.
        length: Length,
        /// What it is made of.
        wire: &'static str,
        /// The longest that there may be.
        reach: Length,
        /// What tells the length.
        by: LengthBy,
        /// Where it stands.
        at: At,
    },
    /// More than the tables hold.
    #[error("the plant has {n} nodes, ports or links")]
    TooLarge {
        /// How many.
        n: u64,
    },
    /// A new version that would give numbers a second time.
    #[error("pod{pod} would have other numbers than before: its first was {old}, now {new}")]
    Renumbers {
        /// The pod.
        pod: usize,
        /// The number of its first cube or host.
        old: u32,
        /// What it would be.
        new: u32,
        /// Where the pod stands.
        at: At,
    },
    /// A fabric that is not of the plant it is said to be of.
    #[error("the fabric is not of the old plant: {part} is in one of them only")]
    NotOld {
        /// A part that only one of them has.
        part: String,
    },
    /// What the fabric refused.
    #[error("the fabric refused the plant")]
    Refused(#[from] FabricError),
}

impl BuildError {
    /// Where the plant file speaks of it.
    pub fn at(&self) -> At {
        match self {
            BuildError::NoPort { at, .. }
            | BuildError::NoPart { at, .. }
            | BuildError::NotDeployed { at, .. }
            | BuildError::PartMissing { at, .. }
            | BuildError::NoTemplate { at, .. }
            | BuildError::TemplateTaken { at, .. }
            | BuildError::PartTaken { at, .. }
            | BuildError::DomainTaken { at, .. }
            | BuildError::NoCable { at, .. }
            | BuildError::PortTaken { at, .. }
            | BuildError::PortLinked { at, .. }
            | BuildError::OtherSwitch { at, .. }
            | BuildError::OtherSide { at, .. }
            | BuildError::NoSwitch { at, .. }
            | BuildError::MissingThere { at, .. }
            | BuildError::CableTooLong { at, .. }
            | BuildError::NoTopology { at, .. }
            | BuildError::BadTopology { at, .. }
            | BuildError::NoHost { at, .. }
            | BuildError::Renumbers { at, .. } => *at,
            BuildError::TooLarge { .. } | BuildError::NotOld { .. } | BuildError::Refused(_) => {
                At::NOWHERE
            }
        }
    }

    /// What would be right.
    pub fn right(&self) -> String {
        match self {
            BuildError::NoPort { near: Some(near), .. }
            | BuildError::NoPart { near: Some(near), .. }
            | BuildError::NoTemplate { near: Some(near), .. } => format!("did you mean {near:?}?"),
            BuildError::NoPort { .. } => {
                "a part's name and a port's, such as cube17/x/in/7 or x7/s66".to_owned()
            }
            BuildError::NoPart { .. } => "name a part that the plant has".to_owned(),
            BuildError::PartMissing { .. } => "take out one of the two lines".to_owned(),
            BuildError::NotDeployed { .. } => "deploy it, or leave this out until then".to_owned(),
            BuildError::NoTemplate { .. } => {
                format!("one of the file's templates, or {}", BUILT_IN.join(", "))
            }
            BuildError::NoTopology { near: Some(near), .. } => format!("did you mean {near:?}?"),
            BuildError::NoTopology { .. } => {
                "a file beside the plant file, or a [[topology]] of that name in it".to_owned()
            }
            BuildError::BadTopology { .. } => {
                "a file that NCCL_TOPO_DUMP_FILE wrote, or `selvedge topo read`".to_owned()
            }
            BuildError::NoHost { .. } => {
                "name a host, or a [[part]] of template \"host\"".to_owned()
            }
            BuildError::TemplateTaken { .. }
            | BuildError::PartTaken { .. }
            | BuildError::DomainTaken { .. } => "give it another name".to_owned(),
            BuildError::NoCable { .. } => {
                "name the end of a generated cable, such as cube17/x/in/7".to_owned()
            }
            BuildError::PortTaken { .. } => {
                "use a free port; n64 to n67 and s64 to s67 of each switch are spare".to_owned()
            }
            BuildError::PortLinked { .. } => "use a port that leads out of its part".to_owned(),
            BuildError::OtherSwitch { switch, .. } => format!("a free port of {switch}"),
            BuildError::OtherSide { .. } => {
                "an out end takes a north port (n), an in end a south port (s)".to_owned()
            }
            BuildError::NoSwitch { .. } => "leave out port, and give loss_db alone".to_owned(),
            BuildError::MissingThere { key, .. } => format!("take it out of {key}"),
            BuildError::CableTooLong { by: LengthBy::Place, reach, .. } => {
                format!("ends at most {reach} apart, or a kind that reaches farther")
            }
            BuildError::CableTooLong { by: LengthBy::Delay(longest), .. } => {
                format!(
                    "latency_ns = {} or less, or a kind that reaches farther",
                    longest.as_nanos()
                )
            }
            BuildError::TooLarge { .. } => {
                format!("at most {} of each; split the plant", limits::PLANT_PORTS_MAX)
            }
            BuildError::Renumbers { .. } => {
                "leave the pods before it as large as they are, and add pods at the end".to_owned()
            }
            BuildError::NotOld { .. } => "extend from the plant that was applied last".to_owned(),
            BuildError::Refused(cause) => cause.to_string(),
        }
    }

    /// The error at its place in the plant file, drawn as the file's own faults are.
    pub fn show(&self, file_name: &str, text: &str) -> String {
        let shown = point(file_name, text, self.at(), &self.to_string(), &self.right());
        match self {
            BuildError::BadTopology { drawn, .. } => format!("{shown}\n{drawn}"),
            _ => shown,
        }
    }
}
