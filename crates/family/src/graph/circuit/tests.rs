use super::*;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Whether a path from node 0 that has met `met` can be led on round to node 0, by trying all.
fn any_ring(graph: &Graph, at: u32, met: u64) -> bool {
    if met.count_ones() as usize == graph.n_nodes() {
        return graph.neighbours(at as usize).contains(&0);
    }
    let next = graph.neighbours(at as usize).iter();
    next.filter(|it| met >> **it & 1 == 0).any(|it| any_ring(graph, *it, met | 1 << it))
}

fn check_ring(graph: &Graph, ring: &[u32]) {
    let mut met = ring.to_vec();
    met.sort_unstable();
    assert_eq!(met, (0..graph.n_nodes() as u32).collect::<Vec<_>>());
    for (from, to) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        assert!(graph.neighbours(*from as usize).contains(to), "{from} to {to}");
    }
}

/// Method: drawn graphs of 3 to 11 nodes, sparse to dense, against all paths.
#[test]
fn a_ring_is_found_exactly_where_one_of_all_paths_closes() {
    let mut dice = Dice(0x5eed_0225);
    let (mut n_found, mut n_none) = (0, 0);
    for _ in 0..4000 {
        let n = 3 + dice.below(9) as u32;
        let density = 2 + dice.below(5);
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| [a, b]));
        let links = pairs.filter(|_| dice.below(8) < density).collect();
        let graph = Graph::of_links(n as usize, links);
        match search(&graph, &mut (1 << 30)) {
            Search::Found(ring) => {
                check_ring(&graph, &ring);
                n_found += 1;
            }
            Search::None => {
                assert!(!any_ring(&graph, 0, 1), "{:?}", graph.links());
                n_none += 1;
            }
            Search::TooLong => panic!("{n} nodes"),
        }
    }
    assert!(1000 < n_found && 1000 < n_none, "{n_found} {n_none}");
}

/// The Petersen graph has none; without any one node it has.
#[test]
fn the_petersen_graph_has_no_ring_and_has_one_without_any_node() {
    let links =
        || (0..5u32).flat_map(|it| [[it, (it + 1) % 5], [it, it + 5], [it + 5, (it + 2) % 5 + 5]]);
    let graph = Graph::of_links(10, links().collect());
    let mut n_left = 1 << 20;
    assert_eq!(search(&graph, &mut n_left), Search::None);
    assert!(0 < n_left && n_left < 1 << 20, "{n_left}");
    for gone in 0..10 {
        let left = |it: u32| if it < gone { it } else { it - 1 };
        let links = links().filter(|it| !it.contains(&gone)).map(|it| it.map(left));
        let graph = Graph::of_links(9, links.collect());
        let Search::Found(ring) = search(&graph, &mut (1 << 20)) else { panic!("without {gone}") };
        check_ring(&graph, &ring);
    }
}

#[test]
fn a_long_ladder_takes_few_steps_and_a_wide_grid_too_many() {
    let grid = |width: u32, height: u32| {
        let node = move |x, y| x + width * y;
        let across =
            (0..height).flat_map(|y| (1..width).map(move |x| [node(x - 1, y), node(x, y)]));
        let down = (1..height).flat_map(|y| (0..width).map(move |x| [node(x, y - 1), node(x, y)]));
        Graph::of_links((width * height) as usize, across.chain(down).collect())
    };
    let ladder = grid(2, 1000);
    let Search::Found(ring) = search(&ladder, &mut 20_000) else { panic!("a ladder is a ring") };
    check_ring(&ladder, &ring);
    // An odd number of nodes in two colours: none, by parity, which takes long to see.
    assert_eq!(search(&grid(5, 5), &mut (1 << 20)), Search::None);
    assert_eq!(search(&grid(19, 19), &mut 10_000), Search::TooLong);
    assert_eq!(search(&grid(1, 2), &mut 10), Search::None);
}
