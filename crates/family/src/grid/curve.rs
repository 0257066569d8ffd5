//! A curve through all cells of the first two axes, on which neighbours lie near one another
//! (Hilbert 1891).

use crate::grid::Grid;

/// All cells of `grid` in the order of a Hilbert curve, layer by layer of the later axes.  Where
/// the sides are no powers of two, the curve of the next power is walked and what lies beyond is
/// left out.
pub fn hilbert<const D: usize>(grid: &Grid<D>) -> Vec<u32> {
    let flat = [grid.sides[0], if 1 < D { grid.sides[1] } else { 1 }];
    let side = flat[0].max(flat[1]).next_power_of_two();
    let n_flat = flat[0] * flat[1];
    let layer: Vec<u32> = (0..side * side)
        .map(|nth| place(side, nth))
        .filter(|at| at[0] < flat[0] && at[1] < flat[1])
        .map(|at| (at[0] + flat[0] * at[1]) as u32)
        .collect();
    let n_layers = grid.n_cells() / n_flat;
    (0..n_layers).flat_map(|it| layer.iter().map(move |at| at + (it * n_flat) as u32)).collect()
}

/// Where the `nth` cell of the curve through `side` by `side` cells lies.
fn place(side: usize, mut nth: usize) -> [usize; 2] {
    let [mut x, mut y] = [0, 0];
    let mut half = 1;
    while half < side {
        let (east, south) = ((nth / 2) & 1, (nth ^ (nth / 2)) & 1);
        if south == 0 {
            if east == 1 {
                (x, y) = (half - 1 - x, half - 1 - y);
            }
            (x, y) = (y, x);
        }
        (x, y) = (x + half * east, y + half * south);
        nth /= 4;
        half *= 2;
    }
    [x, y]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_passes_each_cell_once_and_steps_to_a_neighbour() {
        let grid = Grid::mesh([8, 8]);
        let curve = hilbert(&grid);
        let mut sorted = curve.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..64).collect::<Vec<u32>>());
        for pair in curve.windows(2) {
            let [a, b] = [grid.at(pair[0] as usize), grid.at(pair[1] as usize)];
            assert_eq!(a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]), 1, "{a:?} {b:?}");
        }
        assert_eq!(hilbert(&Grid::mesh([3, 5, 2])).len(), 30);
    }
}
