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

/// The joints of a grid of `rows` by `columns`, each with some of the sides.
fn drawn(dice: &mut Dice, rows: usize, columns: usize) -> Vec<Joint> {
    let mut joints = Vec::new();
    let mut join = |dice: &mut Dice, a: usize, b: usize| {
        // As dead cables leave them: all four sides, two that meet, one, or none.
        let open = [0b1111, 0b1111, 0b0011, 0b0110, 0b1100, 0b1001, 0b0001, 0b0100, 0]
            [dice.below(9) as usize];
        joints.push(Joint { ends: [a, b], open });
    };
    for at in 0..rows * columns {
        if at % columns + 1 < columns {
            join(dice, at, at + 1);
        }
        if at / columns + 1 < rows {
            join(dice, at, at + columns);
        }
    }
    joints
}

/// Whether any tree with any sides fits: every joint is left out or opens one of its sides.
fn any_fits(joints: &[Joint], taken: &mut [u8], roots: &[usize], n_left: usize) -> bool {
    if n_left == 0 {
        return true;
    }
    let Some((joint, others)) = joints.split_first() else { return false };
    let [a, b] = joint.ends;
    if roots[a] != roots[b] {
        for colour in (0..4).filter(|it| joint.open >> it & 1 == 1) {
            if (taken[a] | taken[b]) >> colour & 1 == 1 {
                continue;
            }
            let joined: Vec<usize> =
                roots.iter().map(|it| if *it == roots[b] { roots[a] } else { *it }).collect();
            taken[a] |= 1 << colour;
            taken[b] |= 1 << colour;
            let fits = any_fits(others, taken, &joined, n_left - 1);
            taken[a] &= !(1 << colour);
            taken[b] &= !(1 << colour);
            if fits {
                return true;
            }
        }
    }
    any_fits(others, taken, roots, n_left)
}

/// Method: machines of six groups whose joints have drawn sides, against all trees with all sides.
#[test]
fn a_tree_is_found_wherever_one_fits() {
    let mut dice = Dice(0x5eed_0004);
    let (mut n_found, mut n_none, mut n_missed) = (0, 0, 0);
    for _ in 0..3000 {
        let joints = drawn(&mut dice, 2, 3);
        let roots: Vec<usize> = (0..6).collect();
        let fits = any_fits(&joints, &mut [0; 6], &roots, 5);
        match sided_tree(6, &joints) {
            Ok(edges) => {
                assert!(fits && edges.len() == 5);
                let mut taken = [0u8; 6];
                for Edge { ends, colour } in edges {
                    let joint =
                        joints.iter().find(|it| it.ends == ends || it.ends == [ends[1], ends[0]]);
                    assert_eq!(joint.unwrap().open >> colour & 1, 1);
                    for end in ends {
                        assert_eq!(taken[end] >> colour & 1, 0, "a side is opened once");
                        taken[end] |= 1 << colour;
                    }
                }
                n_found += 1;
            }
            Err(_) => {
                n_missed += u32::from(fits);
                n_none += 1;
            }
        }
    }
    assert!(100 < n_found && 100 < n_none, "{n_found} {n_none}");
    assert_eq!(n_missed, 0, "of {n_found}");
}
