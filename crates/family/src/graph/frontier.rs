//! Orders of a graph's nodes for whoever decides one after the other.

/// Nodes from which orders are tried.
const STARTS_MAX: usize = 16;

/// The nodes in an order in which few of those that have come have neighbours that have not: of a
/// few orders the one whose frontier is narrowest.  `beside` are the neighbours of each.
pub(crate) fn narrow_order(beside: &[Vec<u32>]) -> Vec<u32> {
    let n = beside.len();
    let step = n.div_ceil(STARTS_MAX);
    let orders = (0..n).step_by(step).map(|start| order_from(beside, start));
    orders.min_by_key(|it| it.0).expect("there are nodes").1
}

/// From `start` on always the node beside those that have come that widens the frontier least, of
/// equal ones the one beside the oldest; with the greatest width and the sum of all.
fn order_from(beside: &[Vec<u32>], start: usize) -> ((usize, usize), Vec<u32>) {
    let n = beside.len();
    let mut n_left: Vec<usize> = beside.iter().map(Vec::len).collect();
    let mut is_in = vec![false; n];
    let (mut order, mut frontier): (Vec<u32>, Vec<u32>) = (Vec::with_capacity(n), Vec::new());
    let (mut widest, mut sum) = (0, 0);
    let mut next = start as u32;
    loop {
        order.push(next);
        is_in[next as usize] = true;
        frontier.push(next);
        beside[next as usize].iter().for_each(|it| n_left[*it as usize] -= 1);
        // Until its last link was decided, a node keeps its seat.
        (widest, sum) = (widest.max(frontier.len()), sum + frontier.len());
        let is_open = |it: &u32| beside[*it as usize].iter().any(|to| !is_in[*to as usize]);
        frontier.retain(is_open);
        let around = frontier.iter().flat_map(|it| &beside[*it as usize]).copied();
        let widens = |node: u32| {
            let closes = |it: &&u32| {
                is_in[**it as usize]
                    && beside[**it as usize].iter().filter(|to| !is_in[**to as usize]).count() == 1
            };
            let n_closed = beside[node as usize].iter().filter(closes).count();
            usize::from(n_left[node as usize] != 0) + beside.len() - n_closed
        };
        let chosen = around.filter(|it| !is_in[*it as usize]).min_by_key(|it| widens(*it));
        let Some(node) = chosen.or_else(|| (0..n as u32).find(|it| !is_in[*it as usize])) else {
            return ((widest, sum), order);
        };
        next = node;
    }
}
