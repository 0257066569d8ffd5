use super::*;

/// The product of a path of `rows`, a path of `columns` and a ring of four.
fn hyper_square(rows: u32, columns: u32) -> (usize, Vec<[u32; 2]>) {
    let chip = |row: u32, column: u32, letter: u32| 4 * (row * columns + column) + letter;
    let mut links = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            for [a, b] in [[0, 1], [1, 3], [3, 2], [2, 0]] {
                links.push([chip(row, column, a), chip(row, column, b)]);
            }
            for letter in 0..4 {
                if column + 1 < columns {
                    links.push([chip(row, column, letter), chip(row, column + 1, letter)]);
                }
                if row + 1 < rows {
                    links.push([chip(row, column, letter), chip(row + 1, column, letter)]);
                }
            }
        }
    }
    ((4 * rows * columns) as usize, links)
}

fn grid(side: u32, wraps: bool) -> (usize, Vec<[u32; 2]>) {
    let chip = |x: u32, y: u32| x % side + side * (y % side);
    let mut links = Vec::new();
    for y in 0..side {
        for x in 0..side {
            if x + 1 < side || wraps {
                links.push([chip(x, y), chip(x + 1, y)]);
            }
            if y + 1 < side || wraps {
                links.push([chip(x, y), chip(x, y + 1)]);
            }
        }
    }
    ((side * side) as usize, links)
}

fn all_reduce((n, links): (usize, Vec<[u32; 2]>)) -> Ratio {
    let found = bounds(n, &links).unwrap();
    // The partition proves the bound.
    let n_classes = u64::from(*found.classes.iter().max().unwrap()) + 1;
    let crosses = |it: &&[u32; 2]| found.classes[it[0] as usize] != found.classes[it[1] as usize];
    let n_crossing = links.iter().filter(crosses).count() as u64;
    assert_eq!(Ratio::of(n_classes - 1, n_crossing), found.all_reduce);
    found.all_reduce
}

/// Notes on all-reduce: measured fractions of S/b.
#[test]
fn all_reduce_takes_what_the_published_table_says() {
    assert_eq!(all_reduce(hyper_square(3, 3)), Ratio::of(5, 12));
    assert_eq!(all_reduce(hyper_square(4, 4)), Ratio::of(63, 160));
    assert_eq!(all_reduce(grid(4, false)), Ratio::of(15, 24));
    assert_eq!(all_reduce(grid(8, false)), Ratio::of(63, 112));
    assert_eq!(all_reduce(hyper_square(8, 8)), Ratio::of(255, 704));
    assert_eq!(all_reduce(hyper_square(16, 16)), Ratio::of(1023, 2944));
    for side in [3, 4, 6] {
        let n = u64::from(side * side);
        assert_eq!(all_reduce(grid(side, true)), Ratio::of(n - 1, 2 * n));
    }
}

/// On every box of boards single chips are the worst partition: the bound is (N-1)/links.
#[test]
fn boxes_of_boards_take_what_their_links_say() {
    for (rows, columns) in (1..=6).flat_map(|rows| (rows..=6).map(move |it| (rows, it))) {
        let (n, links) = hyper_square(rows, columns);
        let by_links = Ratio::of(n as u64 - 1, links.len() as u64);
        assert_eq!(all_reduce((n, links)), by_links, "{rows}x{columns}");
    }
}

/// Beyond what is worked out exactly two numbers are told, and the bound lies between them.
#[test]
fn the_bound_lies_between_the_two_that_are_told() {
    let mut state = 11u64;
    for side in [2, 4, 6, 8] {
        for nth in 0..6 {
            let (n, mut links) = hyper_square(side, side);
            links.retain(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                nth == 0 || !(state >> 33).is_multiple_of(12)
            });
            let Ok(found) = bracket(n, &links) else { continue };
            let exact = bounds(n, &links).unwrap();
            assert!(found.least <= exact.all_reduce && exact.all_reduce <= found.most);
            assert!(1 <= found.n_trees && (nth != 0 || found.n_trees == 2), "{found:?}");
            assert_eq!(found.all_gather, exact.all_gather);
        }
    }
}

#[test]
fn all_gather_takes_what_the_poorest_chip_says() {
    let (n, links) = hyper_square(3, 3);
    let found = bounds(n, &links).unwrap();
    // Notes: 35/4 of S/N/b.
    assert_eq!(found.all_gather, Ratio::of(35, 36 * 4));
    // A corner link dead: 35/3, and all-reduce loses little.
    let (_, mut links) = hyper_square(3, 3);
    links.retain(|it| *it != [0, 1]);
    let found = bounds(n, &links).unwrap();
    assert_eq!(found.all_gather, Ratio::of(35, 36 * 3));
    assert_eq!(found.all_reduce, Ratio::of(35, 83));
}

/// Method: every partition of every graph of up to six chips that a seed draws.
#[test]
fn the_bound_is_the_worst_of_all_partitions() {
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % below
    };
    let mut n_tried = 0;
    while n_tried < 300 {
        let n = 2 + draw(5) as u32;
        let mut links: Vec<[u32; 2]> = Vec::new();
        for a in 0..n {
            for b in a + 1..n {
                (0..draw(3)).for_each(|_| links.push([a, b]));
            }
        }
        let Ok(found) = bounds(n as usize, &links) else { continue };
        n_tried += 1;
        let mut worst = Ratio::of(0, 1);
        let mut classes = vec![0u32; n as usize];
        loop {
            let crosses = |it: &&[u32; 2]| classes[it[0] as usize] != classes[it[1] as usize];
            let n_crossing = links.iter().filter(crosses).count() as u64;
            let mut names = classes.clone();
            names.sort_unstable();
            names.dedup();
            if 0 < n_crossing {
                worst = worst.max(Ratio::of(names.len() as u64 - 1, n_crossing));
            }
            // The next assignment of classes, some of them equal but for their names.
            let Some(at) = (0..classes.len()).find(|it| classes[*it] + 1 < n) else { break };
            classes[at] += 1;
            classes[..at].fill(0);
        }
        assert_eq!(found.all_reduce, worst, "{n} chips, {links:?}");
    }
}

#[test]
fn what_has_no_bound_says_why() {
    assert_eq!(bounds(1, &[]), Err(BoundError::TooFew { n: 1 }));
    assert_eq!(bounds(3, &[[0, 1]]), Err(BoundError::Apart { n_reached: 2, n: 3 }));
    assert_eq!(bounds(2, &[[0, 5]]), Err(BoundError::NoChip { end: 5, last: 1 }));
}
