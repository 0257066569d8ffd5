//! The views of all ranks.  Of GPUs that use neither P2P nor shared memory with each other NCCL
//! leaves those of the others out of a rank's view, so that one server may have several views.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::host::change::{NoAnswer, Question};
use crate::host::decision::{Decisions, Difference, Differences, Subject, grouped};
use crate::host::nccl::connect::{Connected, RefusedConnect, Server, connect_all};
use crate::host::nccl::search::{Found, graphs};
use crate::host::nccl::view::{RefusedView, View};
use crate::host::nccl::width::Width;
use crate::host::place::ranges;

/// All views of a server: the asking rank's, then that of the lowest rank that none has shown, and
/// so on.
///
/// # Errors
/// As [`Question::view`].
pub fn views(question: &Question) -> Result<Vec<View>, NoAnswer> {
    let mut views = vec![question.view()?];
    // Two ranks see each other, or neither does: what one view leaves out, others show.
    let mut left: BTreeSet<i32> = left_out(&views[0]).into_iter().collect();
    while let Some(rank) = left.pop_first() {
        let view = Question { rank, ..question.clone() }.view()?;
        for gpu in view.gpus() {
            left.remove(&view.graph.gpu(*gpu).rank);
        }
        views.push(view);
    }
    Ok(views)
}

/// A view and the graphs that its ranks find in it.
#[derive(Clone, Debug)]
pub struct Searched {
    /// What they see.
    pub view: View,
    /// What they find.
    pub found: Vec<Found>,
}

/// The graphs of all views of a server, in the order of [`views`].
///
/// # Errors
/// As [`views`], and where NCCL finds no graph.
pub fn searched(question: &Question) -> Result<Vec<Searched>, NoAnswer> {
    let search = |view: View| {
        let found = graphs(&view).map_err(RefusedView::from)?.found;
        Ok(Searched { view, found })
    };
    views(question)?.into_iter().map(search).collect()
}

/// The graphs that the ranks of all views agree on: of each kind the asking rank's, with the fewest
/// channels, the slowest and the farthest of all; none of its channels where a view has no such
/// graph.
pub fn agreed(server: &[Searched]) -> Vec<Found> {
    let Some((own, others)) = server.split_first() else { return Vec::new() };
    let mut agreed = own.found.clone();
    for graph in &mut agreed {
        for other in others {
            let Some(it) = other.found.iter().find(|it| it.kind == graph.kind) else {
                graph.channels.clear();
                continue;
            };
            graph.channels.truncate(it.channels.len());
            let slower = |a: Width, b: Width| if b.0 < a.0 { b } else { a };
            graph.intra = slower(graph.intra, it.intra);
            graph.inter = slower(graph.inter, it.inter);
            graph.kind_intra = graph.kind_intra.max(it.kind_intra);
            graph.kind_inter = graph.kind_inter.max(it.kind_inter);
            graph.same_channels &= it.same_channels;
            graph.cross_nic = graph.cross_nic.max(it.cross_nic);
        }
    }
    agreed
}

/// The channels of a job of as many such servers as the question is about.
///
/// # Errors
/// If ranks are missing or doubled, or a view has no rings or trees.
pub fn connected(server: &[Searched]) -> Result<Connected, RefusedConnect> {
    let n_ranks: usize = server.iter().map(|it| it.view.gpus().len()).sum();
    let nodes = server.first().map_or(0, |it| it.view.ask.nodes as usize);
    let part = |node: usize, it| {
        let Searched { view, found }: &Searched = it;
        Server { view, found, first: node * n_ranks }
    };
    let parts = (0..nodes).flat_map(|node| server.iter().map(move |it| part(node, it)));
    connect_all(&parts.collect::<Vec<_>>())
}

/// The ranks of the GPUs that trimming took from the view.
pub fn left_out(view: &View) -> Vec<i32> {
    view.left_out.iter().map(|it| view.graph.gpu(*it).rank).collect()
}

/// What is left out and why, where something is.
pub fn left_out_note(view: &View) -> Option<String> {
    let gone = left_out(view);
    let first = gone.first()?;
    let rank = view.ask.rank;
    Some(format!(
        "NCCL leaves {} out of rank {rank}'s view: it uses neither P2P nor shared memory there, and \
         goes over the network; the view of rank {first} has GPU{first}",
        ranges("GPU", &gone)
    ))
}

/// The ranks that share a view, ascending.
pub fn seen_by(view: &View) -> Vec<i32> {
    let mut ranks: Vec<i32> = view.gpus().iter().map(|it| view.graph.gpu(*it).rank).collect();
    ranks.sort_unstable();
    ranks
}

/// Whose view the first is and whose the others are, where there are others; by their ranks, in
/// the order of [`views`].
pub fn others_note(ranks: &[Vec<i32>]) -> Option<String> {
    let (own, others) = ranks.split_first().filter(|it| !it.1.is_empty())?;
    let [own, others] = [std::slice::from_ref(own), others].map(|it| {
        let each = it.iter().map(|it| ranges("GPU", it));
        each.collect::<Vec<_>>().join(" | ")
    });
    Some(format!("this is the view of {own}; views of their own have {others}"))
}

/// What one view decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The ranks that share it.
    pub ranks: Vec<i32>,
    /// All of it.
    pub decisions: Decisions,
}

/// What differs for one rank.
#[derive(Clone, Debug)]
pub struct Differing {
    /// Whose view it is; none of the rank that asked.
    pub rank: Option<i32>,
    /// How it differs.
    pub differences: Vec<Difference>,
}

/// Decisions that differ alike, of one rank's view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alike {
    /// None of the rank that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<i32>,
    /// Which, and how.
    #[serde(flatten)]
    pub differences: Differences,
}

/// What each view of a server decides, in the order of [`views`].
///
/// # Errors
/// As [`views`] and [`Decisions::of`].
pub fn decided(question: &Question) -> Result<Vec<Seen>, NoAnswer> {
    let seen = |view: View| Ok(Seen { ranks: seen_by(&view), decisions: Decisions::of(&view)? });
    views(question)?.into_iter().map(seen).collect()
}

/// What is decided otherwise, those that differ alike together; as [`differing`].
pub fn differing_alike(before: &[Seen], after: &[Seen]) -> Vec<Alike> {
    let of_rank = |it: Differing| {
        let rank = it.rank;
        grouped(&it.differences).into_iter().map(move |differences| Alike { rank, differences })
    };
    differing(before, after).into_iter().flat_map(of_rank).collect()
}

/// What is decided otherwise: for the ranks that ask, then for every rank whose views have not been
/// compared.
pub fn differing(before: &[Seen], after: &[Seen]) -> Vec<Differing> {
    let of = |rank: Option<i32>, b: usize, a: usize| {
        let differences = before[b].decisions.differences(&after[a].decisions);
        Differing { rank, differences }
    };
    let mut out = vec![of(None, 0, 0)];
    let mut compared = BTreeSet::from([(0, 0)]);
    let at = |seen: &[Seen], rank: i32| seen.iter().position(|it| it.ranks.contains(&rank));
    let ranks: BTreeSet<i32> =
        before.iter().chain(after).flat_map(|it| it.ranks.iter().copied()).collect();
    for &rank in &ranks {
        if let (Some(b), Some(a)) = (at(before, rank), at(after, rank))
            && compared.insert((b, a))
        {
            out.push(of(Some(rank), b, a));
        }
    }
    // A view of which no rank is left, and one that nobody had before.
    let gpus = |seen: &Seen| seen.decisions.line(Subject::Gpus).map(str::to_owned);
    let mut lone = |side: &[Seen], is_told: &dyn Fn(usize) -> bool, is_before: bool| {
        for (idx, seen) in side.iter().enumerate().filter(|it| !is_told(it.0)) {
            let (is, none) = (gpus(seen), None);
            let (before, after) = if is_before { (is, none) } else { (none, is) };
            let differences = vec![Difference { subject: Subject::Gpus, before, after }];
            out.push(Differing { rank: side[idx].ranks.first().copied(), differences });
        }
    };
    lone(before, &|idx| compared.iter().any(|it| it.0 == idx), true);
    lone(after, &|idx| compared.iter().any(|it| it.1 == idx), false);
    out.retain(|it| !it.differences.is_empty());
    out
}
