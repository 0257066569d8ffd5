//! Which algorithm and protocol NCCL would choose for an operation of a size, and how fast it takes
//! itself to be.
//!
//! NCCL chooses by a model of its own: for each algorithm and protocol a latency and a bandwidth,
//! worked out once from the rings and trees that it found, and a time for each size from the two.
//! `model` is that model as each version has it, `constants` its numbers, [`measured`] reads what
//! nccl-tests wrote, to be put beside it.  The constants are NCCL's, measured by its authors on
//! machines of their own; no file of ours holds the model against a machine, so a forecast is what
//! NCCL believes and not a promise.

pub mod measured;

mod constants;

mod model;

mod words;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::host::change::{NoAnswer, Question};
use crate::host::nccl::connect::RefusedConnect;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::RefusedSearch;
use crate::host::nccl::view::RefusedView;
use crate::host::predict::model::Model;
pub use crate::host::predict::words::{NoWord, Wishes};
use crate::host::views::{agreed, connected, searched, seen_by};

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// One rank's data to all.
    Broadcast,
    /// All ranks' data, reduced, to one.
    Reduce,
    /// All ranks' pieces to all.
    AllGather,
    /// All ranks' data, reduced, a piece to each.
    ReduceScatter,
    /// All ranks' data, reduced, to all.
    AllReduce,
}

impl Op {
    /// All of them, in NCCL's order.
    pub const ALL: [Op; 5] =
        [Op::Broadcast, Op::Reduce, Op::AllGather, Op::ReduceScatter, Op::AllReduce];

    /// As nccl-tests' programs are called, without `_perf`.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Broadcast => "broadcast",
            Op::Reduce => "reduce",
            Op::AllGather => "all_gather",
            Op::ReduceScatter => "reduce_scatter",
            Op::AllReduce => "all_reduce",
        }
    }

    /// What nccl-tests multiplies the bytes per time by, to compare with a link: of `n` ranks.
    pub fn bus_factor(self, n: usize) -> f64 {
        let n = n.max(1) as f64;
        match self {
            Op::AllReduce => 2.0 * (n - 1.0) / n,
            Op::AllGather | Op::ReduceScatter => (n - 1.0) / n,
            Op::Broadcast | Op::Reduce => 1.0,
        }
    }
}

/// An operation that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no operation; choose all_reduce, all_gather, reduce_scatter, broadcast or reduce"
)]
pub struct NoOp {
    text: String,
}

impl FromStr for Op {
    type Err = NoOp;

    fn from_str(text: &str) -> Result<Self, NoOp> {
        let found = Op::ALL.into_iter().find(|it| it.name() == text);
        found.ok_or_else(|| NoOp { text: text.to_owned() })
    }
}

/// How data is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Algorithm {
    /// Double binary trees over servers, chains in them.
    Tree,
    /// Rings.
    Ring,
    /// Chains to a network that reduces, as 2.7 has them.
    #[serde(rename = "CollNet")]
    Collnet,
    /// All GPUs of a server to each port of a network that reduces.
    #[serde(rename = "CollNetDirect")]
    CollnetDirect,
    /// Chains to a network that reduces.
    #[serde(rename = "CollNetChain")]
    CollnetChain,
    /// NVSwitches reduce; over servers only with a network that reduces.
    #[serde(rename = "NVLS")]
    Nvls,
    /// NVSwitches reduce in a server, trees join servers.
    #[serde(rename = "NVLSTree")]
    NvlsTree,
    /// Binomial trees of slices, of one GPU to a server.
    #[serde(rename = "PAT")]
    Pat,
}

/// How data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Protocol {
    /// A flag with every four bytes: low latency.
    #[serde(rename = "LL")]
    Ll,
    /// A flag with every 120 bytes.
    #[serde(rename = "LL128")]
    Ll128,
    /// Whole chunks and fences.
    Simple,
}

impl Algorithm {
    /// All of them, in the order in which NCCL looks.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::Tree,
        Algorithm::Ring,
        Algorithm::Collnet,
        Algorithm::CollnetDirect,
        Algorithm::CollnetChain,
        Algorithm::Nvls,
        Algorithm::NvlsTree,
        Algorithm::Pat,
    ];

    /// Whether a version has it.
    pub fn exists_in(self, profile: Profile) -> bool {
        match self {
            Algorithm::Tree | Algorithm::Ring => true,
            Algorithm::Collnet => profile.is_seed(),
            Algorithm::CollnetDirect
            | Algorithm::CollnetChain
            | Algorithm::Nvls
            | Algorithm::NvlsTree => !profile.is_seed(),
            Algorithm::Pat => profile.has_c2c(),
        }
    }

    /// NCCL's word.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Tree => "Tree",
            Algorithm::Ring => "Ring",
            Algorithm::Collnet => "CollNet",
            Algorithm::CollnetDirect => "CollNetDirect",
            Algorithm::CollnetChain => "CollNetChain",
            Algorithm::Nvls => "NVLS",
            Algorithm::NvlsTree => "NVLSTree",
            Algorithm::Pat => "PAT",
        }
    }
}

impl Protocol {
    /// All of them, in NCCL's order.
    pub const ALL: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

    /// NCCL's word.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Ll => "LL",
            Protocol::Ll128 => "LL128",
            Protocol::Simple => "Simple",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What NCCL would do for one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Bytes, as nccl-tests counts them: of the larger of the two buffers.
    pub bytes: u64,
    /// What it would choose.
    pub algorithm: Algorithm,
    /// With which protocol.
    pub protocol: Protocol,
    /// How long it takes this to last, in us.
    pub time_us: f64,
    /// Bytes for each time, GB/s.
    pub algbw_gbps: f64,
    /// The same as nccl-tests compares it with a link, GB/s.
    pub busbw_gbps: f64,
}

/// One algorithm and protocol as NCCL tells it in its log under `NCCL_DEBUG_SUBSYS=TUNING`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Which.
    pub algorithm: Algorithm,
    /// Which.
    pub protocol: Protocol,
    /// What every operation takes at least, in us.
    pub latency_us: f32,
    /// What it tends to, GB/s; 0 where it is not used.
    pub bandwidth_gbps: f32,
}

/// How one operation would be done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Which.
    pub op: Op,
    /// Ranks of the job.
    pub n_ranks: usize,
    /// Channels over all of them.
    pub n_channels: usize,
    /// All that there is to choose from.
    pub table: Vec<Entry>,
    /// By size.
    pub forecasts: Vec<Forecast>,
    /// The ranks of a server that share a view, the asking rank's view first.  To NCCL each view is
    /// a server, and all go by what the poorest found.
    pub views: Vec<Vec<i32>>,
    /// Where the forecast is not NCCL's own, in words.
    pub doubts: Vec<String>,
    /// Variables that are set and that this version does not read.
    pub unread: Vec<String>,
}

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoPrediction {
    /// NCCL would not come so far.
    #[error(transparent)]
    Answer(#[from] NoAnswer),
    /// A word of `NCCL_ALGO` or `NCCL_PROTO`.
    #[error(transparent)]
    Word(#[from] NoWord),
    /// Servers cannot be joined.
    #[error(transparent)]
    Connect(#[from] RefusedConnect),
    /// The variables leave nothing to choose from.
    #[error("NCCL_ALGO and NCCL_PROTO leave no way to do {}; NCCL gives up", .op.name())]
    Nothing {
        /// The operation.
        op: Op,
    },
    /// One rank needs nobody.
    #[error("one rank communicates with nobody; a job has two at least")]
    Alone,
}

impl From<RefusedSearch> for NoPrediction {
    fn from(refused: RefusedSearch) -> Self {
        NoPrediction::Answer(NoAnswer::Refused(RefusedView::from(refused)))
    }
}

/// How NCCL would do `op` on the servers of `question` at these sizes, in bytes.
///
/// Of its variables, [`Wishes::VARIABLES`] belong to the tuning model and not to the graph; they
/// are obeyed.
///
/// # Errors
/// [`NoPrediction`].
pub fn predict(question: &Question, op: Op, sizes: &[u64]) -> Result<Prediction, NoPrediction> {
    let mut graph_question = question.clone();
    graph_question.env.retain(|(name, _)| !Wishes::names(name));
    let wishes = Wishes::read(question.profile, &question.env)?;
    let view = graph_question.view()?;
    if view.n_ranks < 2 {
        return Err(NoPrediction::Alone);
    }
    let server = searched(&graph_question)?;
    let n_channels = connected(&server)?.rings.len();
    let views: Vec<Vec<i32>> = server.iter().map(|it| seen_by(&it.view)).collect();
    let n_nodes = view.ask.nodes as usize * views.len();
    let model = Model::of((&view, n_nodes), &agreed(&server), n_channels, &wishes);
    let table = model.table(op);
    let mut forecasts = Vec::with_capacity(sizes.len());
    for &bytes in sizes {
        let forecast = forecast(&model, &table, op, bytes).ok_or(NoPrediction::Nothing { op })?;
        forecasts.push(forecast);
    }
    let mut doubts: Vec<String> = model.doubts(op).into_iter().map(str::to_owned).collect();
    if 1 < views.len() {
        doubts.push(format!(
            "a server's ranks see {} topologies, each of which is a server to NCCL; they go by the \
             fewest channels and the slowest, as no recorded decision of NCCL's holds here",
            views.len()
        ));
    }
    let mut unread = view.ask.settings.unread.clone();
    unread.extend(wishes.unread.iter().map(|it| (*it).to_owned()));
    let n_ranks = view.n_ranks;
    Ok(Prediction { op, n_ranks, n_channels, table, forecasts, views, doubts, unread })
}

/// The first of the fastest, as NCCL takes it.
fn forecast(model: &Model, table: &[Entry], op: Op, bytes: u64) -> Option<Forecast> {
    let mut best: Option<(Entry, f32)> = None;
    for &entry in table.iter().filter(|it| 0.0 < it.bandwidth_gbps) {
        let time = model.time(op, &entry, bytes);
        if best.is_none_or(|(_, least)| time < least) {
            best = Some((entry, time));
        }
    }
    let (entry, time) = best?;
    let time_us = f64::from(time);
    // Bytes in a us are MB/s.
    let algbw_gbps = bytes as f64 / time_us / 1000.0;
    let (algorithm, protocol) = (entry.algorithm, entry.protocol);
    let busbw_gbps = algbw_gbps * op.bus_factor(model.n_ranks());
    Some(Forecast { bytes, algorithm, protocol, time_us, algbw_gbps, busbw_gbps })
}

#[cfg(test)]
mod tests;
