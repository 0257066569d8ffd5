//! Rings of rows, of columns, and through any connected set.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use selvedge_model::spec::Plant;

use crate::hypersquare::group::{Chip, Group, Letter};
use crate::hypersquare::machine::Machine;
use crate::hypersquare::ring::{
    ALL_LETTERS, RingError, column_rings, row_ring, row_rings, through_all, torus_chip, torus_sides,
};
use crate::hypersquare::tests::{built, every_size, links_of};

/// The links of a ring, ends in order; a ring of two is one link.
fn steps(ring: &[Chip]) -> Vec<[Chip; 2]> {
    let n_steps = if ring.len() == 2 { 1 } else { ring.len() };
    let step = |idx: usize| {
        let mut ends = [ring[idx], ring[(idx + 1) % ring.len()]];
        ends.sort();
        ends
    };
    (0..n_steps).map(step).collect()
}

fn check(ring: &[Chip], expected: Expect) {
    let text: Vec<String> = ring.iter().map(ToString::to_string).collect();
    expected.assert_eq(&text.join(" "));
}

/// Seed 004, claims 4 and 5: A1 B1 B2 A2 and A1 B1 B2 B3 A3 A2.
#[test]
fn the_row_rings_of_two_and_three_groups_are_those_of_the_claims() {
    check(&row_ring(0, [0, 1], false), expect!["0,0,A 0,0,B 0,1,B 0,1,A"]);
    check(&row_ring(0, [0, 2], false), expect!["0,0,A 0,0,B 0,1,B 0,2,B 0,2,A 0,1,A"]);
    check(&row_ring(5, [7, 8], true), expect!["5,7,C 5,7,D 5,8,D 5,8,C"]);
}

#[test]
fn every_chip_is_in_one_row_ring_and_one_column_ring_and_no_link_in_two() {
    for groups in every_size() {
        let (plant, fabric) = built(groups);
        let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
        let links = links_of(&machine);
        let all: BTreeSet<Chip> = machine.chips().collect();
        let (rows, columns): (Vec<_>, Vec<_>) =
            (row_rings(groups).collect(), column_rings(groups).collect());
        let sizes = groups.map(|it| 2 * usize::from(it));
        assert_eq!([rows.len(), columns.len()], sizes);
        for (rings, size) in [(&rows, sizes[1]), (&columns, sizes[0])] {
            assert!(rings.iter().all(|it| it.len() == size));
            let met: Vec<Chip> = rings.iter().flatten().copied().collect();
            assert_eq!(met.len(), all.len());
            assert_eq!(met.into_iter().collect::<BTreeSet<_>>(), all);
        }
        let used: Vec<_> = rows.iter().chain(&columns).flat_map(|it| steps(it)).collect();
        let distinct: BTreeSet<_> = used.iter().copied().collect();
        assert_eq!(distinct.len(), used.len(), "{groups:?}: a link in two rings");
        assert!(distinct.is_subset(&links), "{groups:?}");
        // What is left over are rungs on boards inside.
        let [r, c] = groups.map(usize::from);
        let left = 2 * r * c.saturating_sub(2) + 2 * c * r.saturating_sub(2);
        assert_eq!(links.len() - distinct.len(), left, "{groups:?}");
    }
}

#[test]
fn the_rings_together_are_the_torus_of_twice_the_sides() {
    for groups in every_size() {
        let sides = torus_sides(groups);
        let chips: BTreeSet<Chip> = (0..sides[0] * sides[1])
            .map(|it| torus_chip(groups, [it % sides[0], it / sides[0]]))
            .collect();
        assert_eq!(chips.len(), sides[0] * sides[1], "each chip has one place");
        let mut of_torus = BTreeSet::new();
        for y in 0..sides[1] {
            let along: Vec<Chip> = (0..sides[0]).map(|x| torus_chip(groups, [x, y])).collect();
            of_torus.extend(steps(&along));
        }
        for x in 0..sides[0] {
            let along: Vec<Chip> = (0..sides[1]).map(|y| torus_chip(groups, [x, y])).collect();
            of_torus.extend(steps(&along));
        }
        let rings = row_rings(groups).chain(column_rings(groups));
        assert_eq!(of_torus, rings.flat_map(|it| steps(&it)).collect(), "{groups:?}");
    }
}

fn everywhere(_: Group, _: Group) -> u8 {
    ALL_LETTERS
}

/// Holds a ring against the machine's links: each chip of the set once, each step a link.
fn check_ring(set: &[Group], ring: &[Chip], links: &BTreeSet<[Chip; 2]>) {
    assert_eq!(ring.len(), 4 * set.len());
    let wanted: BTreeSet<Group> = set.iter().copied().collect();
    let met: BTreeSet<Chip> = ring.iter().copied().collect();
    assert_eq!(met.len(), ring.len(), "{set:?}: a chip twice");
    assert!(met.iter().all(|it| wanted.contains(&it.group)), "{set:?}: it leaves the set");
    let steps: BTreeSet<_> = steps(ring).into_iter().collect();
    assert_eq!(steps.len(), ring.len());
    assert!(steps.is_subset(links), "{set:?}: {ring:?}");
}

#[test]
fn an_l_of_three_groups_has_a_ring_of_twelve_chips() {
    let set = [Group::at(0, 0), Group::at(0, 1), Group::at(1, 1)];
    check(
        &through_all([2, 2], &set, everywhere).unwrap(),
        expect!["0,0,A 0,1,A 0,1,C 0,1,D 1,1,D 1,1,C 1,1,A 1,1,B 0,1,B 0,0,B 0,0,D 0,0,C"],
    );
    check(&through_all([2, 2], &set[..1], everywhere).unwrap(), expect!["0,0,A 0,0,B 0,0,D 0,0,C"]);
}

/// A small generator of numbers (xorshift): tests need no more.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// A connected set that grows from one group by drawn neighbours, named in a drawn order.
fn drawn(dice: &mut Dice, groups: [u16; 2], size: usize) -> Vec<Group> {
    let [row, column] = groups.map(|it| dice.below(usize::from(it)) as u16);
    let mut set = vec![Group::at(row, column)];
    while set.len() < size {
        let Group { row, column } = set[dice.below(set.len())];
        let (row, column) = [
            (row.wrapping_sub(1), column),
            (row + 1, column),
            (row, column.wrapping_sub(1)),
            (row, column + 1),
        ][dice.below(4)];
        let next = Group::at(row, column);
        if row < groups[0] && column < groups[1] && !set.contains(&next) {
            set.push(next);
        }
    }
    for idx in (1..set.len()).rev() {
        set.swap(idx, dice.below(idx + 1));
    }
    set
}

#[test]
fn every_one_of_5000_drawn_connected_sets_has_a_ring_through_all_its_chips() {
    let groups = [12, 9];
    let (plant, fabric) = built(groups);
    let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
    let links = links_of(&machine);
    let mut dice = Dice(0x5eed_0004);
    for _ in 0..5000 {
        let size = 1 + dice.below(40);
        let set = drawn(&mut dice, groups, size);
        let ring = through_all(groups, &set, |a, b| machine.letters_joined(a, b)).unwrap();
        check_ring(&set, &ring, &links);
    }
}

/// Every set of groups of a 3x4 machine, by its bits: connected ones have a ring, others none.
#[test]
fn of_all_sets_of_a_3x4_machine_exactly_the_connected_ones_have_a_ring() {
    let groups = [3, 4];
    let (plant, fabric) = built(groups);
    let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
    let links = links_of(&machine);
    let mut n_rings = 0;
    for bits in 1u32..1 << 12 {
        let in_set = (0..12).filter(|it| bits >> it & 1 == 1);
        let set: Vec<Group> = in_set.map(|it| Group::at(it / 4, it % 4)).collect();
        let mut reached = bits & bits.wrapping_neg();
        loop {
            const WEST: u32 = 0b0001_0001_0001;
            let aside = (reached & !(WEST << 3)) << 1 | (reached & !WEST) >> 1;
            let more = (reached | aside | reached << 4 | reached >> 4) & bits;
            if more == reached {
                break;
            }
            reached = more;
        }
        match through_all(groups, &set, |a, b| machine.letters_joined(a, b)) {
            Ok(ring) => {
                assert_eq!(reached, bits, "{set:?}");
                check_ring(&set, &ring, &links);
                n_rings += 1;
            }
            Err(_) => assert!(reached != bits, "{set:?}"),
        }
    }
    assert_eq!(n_rings, 1126);
}

/// Damaged machines: rings use no board and no cable that is not there.
#[test]
fn a_ring_goes_round_what_is_missing() {
    let text = "format = 1\nname = \"demo\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"3x3\"\n\
                [[missing]]\npart = \"board1.1\"\n[[missing]]\ncable = \"board0.0/C/east\"\n";
    let plant = Plant::parse("demo.toml", text).unwrap();
    let fabric = crate::build(&plant).unwrap();
    let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
    let links = links_of(&machine);
    let live: BTreeSet<Group> = machine.chips().map(|it| it.group).collect();
    let live: Vec<Group> = live.into_iter().collect();
    assert_eq!(live.len(), 8);
    let ring = through_all([3, 3], &live, |a, b| machine.letters_joined(a, b)).unwrap();
    assert_eq!(machine.ring(&machine.groups()).unwrap(), ring);
    let error = machine.ring(&[Group::at(1, 1)]).unwrap_err();
    assert_eq!(error.to_string(), "group 1,1 has no board; leave it out");
    check_ring(&live, &ring, &links);
    // Two groups with three of the four cables between them.
    let pair = [Group::at(0, 0), Group::at(0, 1)];
    check_ring(&pair, &machine.ring(&pair).unwrap(), &links);
}

/// Two groups joined by some of their four cables have a ring where one of them is of A or D and
/// one of B or C.
#[test]
fn two_groups_with_cables_of_both_colours_have_a_ring() {
    let groups = [1, 3];
    let set: Vec<Group> = (0..3).map(|it| Group::at(0, it)).collect();
    let ring = |letters: u8| {
        let live = |a: Group, b: Group| match (a.column.min(b.column), a.column.max(b.column)) {
            (0, 1) => letters,
            _ => ALL_LETTERS,
        };
        through_all(groups, &set, live)
    };
    for letters in 1..=ALL_LETTERS {
        let has = |it: &Letter| letters >> it.seat() & 1 == 1;
        let (a, b, c, d) = (Letter::A, Letter::B, Letter::C, Letter::D);
        let is_of_both = [a, d].iter().any(has) && [b, c].iter().any(has);
        match ring(letters) {
            Ok(ring) => {
                assert!(is_of_both, "{letters:04b}");
                let crosses = ring
                    .iter()
                    .zip(ring.iter().cycle().skip(1))
                    .filter(|(from, to)| from.group.column + to.group.column == 1);
                assert!(crosses.clone().all(|(from, _)| has(&from.letter)), "{letters:04b}");
                assert_eq!(crosses.count() % 2, 0);
            }
            Err(error) => {
                assert!(!is_of_both && error.is_proof() == Some(true), "{letters:04b}: {error}");
            }
        }
    }
    assert!(matches!(ring(0), Err(RingError::Apart { .. })));
    let error = ring(0b1001).unwrap_err().to_string();
    expect![
        "there is none: the cables left of group 0,0 are of its chips A and D alone; a ring comes \
         and goes by A and D as often as by the other two; mend a cable of those, or leave it out"
    ]
    .assert_eq(&error);
}

/// Whether a path that has met `met` can be led on round to chip 0, by trying all.
fn any_ring(beside: &[Vec<usize>], at: usize, met: u64) -> bool {
    if met.count_ones() as usize == beside.len() {
        return beside[at].contains(&0);
    }
    let mut next = beside[at].iter().filter(|it| met >> **it & 1 == 0);
    next.any(|it| any_ring(beside, *it, met | 1 << it))
}

/// Method: sets of two to five groups of machines most of whose cables are dead, against all
/// paths.
#[test]
fn where_most_cables_are_dead_a_ring_is_found_exactly_where_there_is_one() {
    let groups = [3, 3];
    let (plant, fabric) = built(groups);
    let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
    let links = links_of(&machine);
    let mut dice = Dice(0x5eed_0011);
    let (mut n_rings, mut n_single, mut n_chip, mut n_colour, mut n_ruled) = (0, 0, 0, 0, 0);
    for _ in 0..1500 {
        let is_inner = |it: &&[Chip; 2]| it[0].group == it[1].group;
        let n_dead = 3 + dice.below(6);
        let is_kept = |dice: &mut Dice| n_dead <= dice.below(10);
        let live: BTreeSet<[Chip; 2]> =
            links.iter().filter(|it| is_inner(it) || is_kept(&mut dice)).copied().collect();
        let is_live = |a: Chip, b: Chip| live.contains(&[a, b]) || live.contains(&[b, a]);
        let letters = |a: Group, b: Group| {
            let joined = Letter::ALL.into_iter().filter(|it| is_live(a.chip(*it), b.chip(*it)));
            joined.fold(0, |acc, it| acc | 1 << it.seat())
        };
        let size = 2 + dice.below(4);
        let set = drawn(&mut dice, groups, size);
        let chips: Vec<Chip> = set.iter().flat_map(|it| Letter::ALL.map(|l| it.chip(l))).collect();
        let beside: Vec<Vec<usize>> = chips
            .iter()
            .map(|a| (0..chips.len()).filter(|b| is_live(*a, chips[*b])).collect())
            .collect();
        match through_all(groups, &set, letters) {
            Ok(ring) => {
                check_ring(&set, &ring, &live);
                n_rings += 1;
                let crossed: BTreeSet<_> = ring
                    .iter()
                    .zip(ring.iter().cycle().skip(1))
                    .filter(|(from, to)| from.group != to.group)
                    .map(|(from, to)| [from.group.min(to.group), from.group.max(to.group)])
                    .collect();
                n_single +=
                    u32::from(crossed.iter().any(|it| letters(it[0], it[1]).count_ones() == 1));
                continue;
            }
            Err(RingError::Apart { .. }) => continue,
            Err(RingError::OneChip { .. }) => n_chip += 1,
            Err(RingError::OneColour { .. } | RingError::OneSeam { .. }) => n_colour += 1,
            Err(RingError::RuledOut { .. }) => n_ruled += 1,
            Err(error) => panic!("{set:?}: {error}"),
        }
        assert!(!any_ring(&beside, 0, 1), "{set:?}");
    }
    let counts = [n_rings, n_single, n_chip, n_colour, n_ruled];
    assert_eq!(counts, [460, 20, 0, 614, 19]);
}

/// Group 0,1 is joined to what lies east and south of it by its chip A alone.
#[test]
fn a_set_that_hangs_on_one_chip_has_no_ring() {
    let set = [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2]].map(|[row, column]| Group::at(row, column));
    let live = |a: Group, b: Group| {
        let is_narrow = [a, b].contains(&set[1]) && ![a, b].contains(&set[0]);
        if is_narrow { 1 } else { ALL_LETTERS }
    };
    let error = through_all([2, 3], &set, live).unwrap_err();
    assert_eq!(error.is_proof(), Some(true));
    expect![
        "there is none: group 0,2 hangs on chip 0,1,A alone, and a ring passes a chip once; mend \
         another cable to what lies beyond it, or leave that out"
    ]
    .assert_eq(&error.to_string());
    let narrow = |a: Group, b: Group| if a.column + b.column == 1 { 0b1001 } else { ALL_LETTERS };
    let error = through_all([1, 3], &set[..3], narrow).unwrap_err();
    expect![
        "there is none: the cables left of group 0,0 are of its chips A and D alone; a ring comes \
         and goes by A and D as often as by the other two; mend a cable of those, or leave it out"
    ]
    .assert_eq(&error.to_string());
}

/// Machines of 16x16 groups with a tenth, a fifth and a third of their cables dead.
#[test]
fn large_machines_with_many_dead_cables_have_rings_through_all_groups() {
    let groups = [16, 16];
    let (plant, fabric) = built(groups);
    let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
    let links = links_of(&machine);
    let all = machine.groups();
    let mut dice = Dice(0x5eed_0012);
    let mut counts = [[0; 3]; 3];
    for (nth, one_in) in [10, 5, 3].into_iter().enumerate() {
        for _ in 0..20 {
            let is_inner = |it: &&[Chip; 2]| it[0].group == it[1].group;
            let live: BTreeSet<[Chip; 2]> =
                links.iter().filter(|it| is_inner(it) || 0 < dice.below(one_in)).copied().collect();
            let is_live = |a: Chip, b: Chip| live.contains(&[a, b]) || live.contains(&[b, a]);
            let letters = |a: Group, b: Group| {
                let joined = Letter::ALL.into_iter().filter(|it| is_live(a.chip(*it), b.chip(*it)));
                joined.fold(0, |acc, it| acc | 1 << it.seat())
            };
            let found = through_all(groups, &all, letters);
            if let Ok(ring) = &found {
                check_ring(&all, ring, &live);
            }
            let kind = match found {
                Ok(_) => 0,
                Err(error) => 2 - usize::from(error.is_proof().unwrap_or(true)),
            };
            counts[nth][kind] += 1;
        }
    }
    // Found, none by proof, not known.
    assert_eq!(counts, [[20, 0, 0], [19, 1, 0], [12, 7, 1]]);
}

/// Machines with a twentieth of their cables dead: a set that hangs together has a ring that uses
/// none of them.
#[test]
fn rings_of_damaged_machines_use_live_cables_alone() {
    let groups = [8, 8];
    let (plant, fabric) = built(groups);
    let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
    let links = links_of(&machine);
    let mut dice = Dice(0x5eed_0009);
    let (mut n_rings, mut n_none) = (0, 0);
    for _ in 0..300 {
        let is_inner = |it: &&[Chip; 2]| it[0].group == it[1].group;
        let live: BTreeSet<[Chip; 2]> =
            links.iter().filter(|it| is_inner(it) || 0 < dice.below(20)).copied().collect();
        let letters = |a: Group, b: Group| {
            let is_live = |it: &Letter| {
                let ends = [a.chip(*it), b.chip(*it)];
                live.contains(&ends) || live.contains(&[ends[1], ends[0]])
            };
            Letter::ALL.into_iter().filter(is_live).fold(0, |acc, it| acc | 1 << it.seat())
        };
        let size = 20 + dice.below(40);
        let set = drawn(&mut dice, groups, size);
        match through_all(groups, &set, letters) {
            Ok(ring) => {
                check_ring(&set, &ring, &live);
                n_rings += 1;
            }
            Err(error) => {
                assert_eq!(error.is_proof(), Some(true), "{set:?}: {error}");
                n_none += 1;
            }
        }
    }
    // What hangs on two cables of one colour has none.
    assert_eq!((n_rings, n_none), (296, 4));
}

#[test]
fn sets_without_a_ring_are_refused_with_their_place() {
    let refused = |set: &[[u16; 2]]| {
        let set: Vec<Group> = set.iter().map(|it| Group::at(it[0], it[1])).collect();
        through_all([2, 4], &set, everywhere).unwrap_err().to_string()
    };
    expect!["a ring goes through at least one group; name some, such as 0,0"]
        .assert_eq(&refused(&[]));
    expect!["there is no group 2,0; rows are 0 to 1, columns 0 to 3"]
        .assert_eq(&refused(&[[0, 0], [2, 0]]));
    expect!["group 0,1 is named twice; name each once"].assert_eq(&refused(&[[0, 1], [0, 1]]));
    expect![
        "the groups are 3 pieces that no cables join: (0,0 0,1), (1,2), (0,3); add the groups between them, or take one piece"
    ]
        .assert_eq(&refused(&[[0, 0], [1, 2], [0, 1], [0, 3]]));
}
