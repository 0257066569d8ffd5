//! A spanning tree of groups whose edges have sides of their own.
//!
//! Each joint between two groups may open some of four sides; an edge of the tree opens one of them
//! on both its groups, and no side of a group is opened twice.  For a given tree this is decided
//! exactly: from the leaves up, each group notes which sides the edge toward the root may have so
//! that the edges toward the leaves find sides of their own, at most 4! ways to try.  Where every
//! joint may open every side, any tree will do.  Else the tree takes wide joints first, and where
//! its sides do not fit, another one is drawn that avoids the joints of the group where they did
//! not, so many times; which tree is best of all is as hard as the intersection of three matroids.
//! Linear in the joints where all are whole, and but for a sort where some are not.

use crate::graph::sets::Sets;

/// Two groups beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joint {
    /// The groups, by their places in the set.
    pub(super) ends: [usize; 2],
    /// The sides that may be opened, by colour.
    pub(super) open: u8,
}

/// An edge of the tree, with the side that it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// The groups.
    pub(super) ends: [usize; 2],
    /// The side.
    pub(super) colour: usize,
}

/// A group whose edges find no sides of their own, or that no side leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crowded {
    /// Its place in the set.
    pub(super) idx: usize,
}

/// Trees that are tried.
const TRIES_MAX: u32 = 64;

/// A spanning tree of `n_groups` groups by `joints`, with a side for each edge.
///
/// # Errors
/// [`Crowded`], where none was found.
pub(super) fn sided_tree(n_groups: usize, joints: &[Joint]) -> Result<Vec<Edge>, Crowded> {
    let mut order: Vec<usize> = (0..joints.len()).collect();
    let mut state = 0x5eed_0004_u64;
    // How unwilling each joint is taken: narrow ones, and those of groups that were crowded.
    let mut last: Vec<u32> = joints.iter().map(|it| 4 - it.open.count_ones()).collect();
    let mut crowded = Crowded { idx: 0 };
    for n_try in 0..TRIES_MAX {
        // Every other tree is drawn whatever was learned, which may mislead.
        if n_try % 2 == 0 {
            order.sort_by_key(|it| last[*it]);
        }
        let tree = spanning(n_groups, joints, &order)?;
        match coloured(n_groups, joints, &tree) {
            Ok(edges) => return Ok(edges),
            Err(at) => crowded = at,
        }
        for (joint, last) in joints.iter().zip(&mut last) {
            *last += u32::from(joint.ends.contains(&crowded.idx));
        }
        for idx in (1..order.len()).rev() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            order.swap(idx, (state % (idx as u64 + 1)) as usize);
        }
    }
    Err(crowded)
}

/// The joints of a spanning tree, those first in `order` preferred (Kruskal 1956).
fn spanning(n_groups: usize, joints: &[Joint], order: &[usize]) -> Result<Vec<usize>, Crowded> {
    let mut sets = Sets::single(n_groups);
    let mut tree = Vec::with_capacity(n_groups);
    for &joint in order.iter().filter(|it| joints[**it].open != 0) {
        let [a, b] = joints[joint].ends.map(|it| it as u32);
        if sets.join(a, b) {
            tree.push(joint);
        }
    }
    match (0..n_groups).find(|it| sets.of(*it as u32) != 0) {
        Some(idx) => Err(Crowded { idx }),
        None => Ok(tree),
    }
}

/// As many edges with sides of their own as are found at once, the narrow joints first; no ring of
/// them, so that what they join are trees.
pub(super) fn sided_forest(n_groups: usize, joints: &[Joint]) -> Vec<Edge> {
    let mut order: Vec<&Joint> = joints.iter().filter(|it| it.open != 0).collect();
    order.sort_by_key(|it| it.open.count_ones());
    let (mut sets, mut taken) = (Sets::single(n_groups), vec![0u8; n_groups]);
    let mut edges = Vec::with_capacity(n_groups);
    for Joint { ends, open } in order {
        let [a, b] = *ends;
        let free = open & !taken[a] & !taken[b];
        if free != 0 && sets.join(a as u32, b as u32) {
            let colour = free.trailing_zeros() as usize;
            ends.iter().for_each(|it| taken[*it] |= 1 << colour);
            edges.push(Edge { ends: *ends, colour });
        }
    }
    edges
}

/// A tree as it hangs from its first group.
struct Hanging {
    /// The groups, each after the one that it hangs from.
    order: Vec<usize>,
    /// The joint by which each hangs.
    upward: Vec<Option<usize>>,
    /// What hangs from each, and by which joint.
    below: Vec<Vec<(usize, usize)>>,
}

impl Hanging {
    fn of(n_groups: usize, joints: &[Joint], tree: &[usize]) -> Self {
        let mut beside: Vec<Vec<(usize, usize)>> = vec![Vec::new(); n_groups];
        for &joint in tree {
            let [a, b] = joints[joint].ends;
            beside[a].push((b, joint));
            beside[b].push((a, joint));
        }
        let (mut order, mut upward) = (vec![0], vec![None; n_groups]);
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            let up = upward[at];
            beside[at].retain(|it| Some(it.1) != up);
            for &(lower, joint) in &beside[at] {
                upward[lower] = Some(joint);
                order.push(lower);
            }
        }
        Self { order, upward, below: beside }
    }
}

/// A side for each edge of the tree.
fn coloured(n_groups: usize, joints: &[Joint], tree: &[usize]) -> Result<Vec<Edge>, Crowded> {
    let hanging = Hanging::of(n_groups, joints, tree);
    // The sides that the edge upward from each group may have, for all that hangs from it.
    let mut may = vec![0u8; n_groups];
    for &at in hanging.order.iter().rev() {
        let below: Vec<u8> = hanging.below[at].iter().map(|it| may[it.0]).collect();
        let Some(joint) = hanging.upward[at] else {
            if chosen(&below, 0).is_none() {
                return Err(Crowded { idx: at });
            }
            continue;
        };
        let open = (0..4).filter(|colour| joints[joint].open >> colour & 1 == 1);
        let fits = open.filter(|colour| chosen(&below, 1 << colour).is_some());
        may[at] = fits.fold(0, |may, colour| may | 1 << colour);
        if may[at] == 0 {
            return Err(Crowded { idx: at });
        }
    }
    let mut upward = vec![0u8; n_groups];
    let mut edges = Vec::with_capacity(tree.len());
    for &at in &hanging.order {
        let below: Vec<u8> = hanging.below[at].iter().map(|it| may[it.0]).collect();
        let sides = chosen(&below, upward[at]).expect("the way up found that they fit");
        for (&(lower, _), colour) in hanging.below[at].iter().zip(sides) {
            upward[lower] = 1 << colour;
            edges.push(Edge { ends: [at, lower], colour });
        }
    }
    Ok(edges)
}

/// One of the colours of each of `sets`, all different and none of those `taken`.
fn chosen(sets: &[u8], taken: u8) -> Option<Vec<usize>> {
    let Some((&last, others)) = sets.split_last() else { return Some(Vec::new()) };
    (0..4).filter(|colour| (last & !taken) >> colour & 1 == 1).find_map(|colour| {
        let mut colours = chosen(others, taken | 1 << colour)?;
        colours.push(colour);
        Some(colours)
    })
}

#[cfg(test)]
mod tests;
