//! What several collectives get where they share links: the max-min fair shares, which transports
//! that back off alike come to (Bertsekas and Gallager, Data Networks, §6.5.2).

/// What one of several gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// In the unit of the capacities.
    pub rate: f64,
    /// The link that is full and holds it there, by place among the capacities; none of one that
    /// uses no link, whose rate is infinite.
    pub held_by: Option<usize>,
}

/// The max-min fair rates of `demands`, each a list of links by place in `capacities` and how much
/// of the link one unit of its rate takes.
///
/// Rates grow together until a link is full; those that use it stay, the others grow on.
/// O(demands · all entries).
///
/// # Panics
/// If a demand names a link beyond `capacities`.
pub fn max_min(capacities: &[f64], demands: &[Vec<(usize, f64)>]) -> Vec<Share> {
    let mut left = capacities.to_vec();
    let none = Share { rate: f64::INFINITY, held_by: None };
    let mut shares = vec![none; demands.len()];
    let takes = |it: &&(usize, f64)| 0.0 < it.1;
    let mut growing: Vec<usize> =
        (0..demands.len()).filter(|it| demands[*it].iter().any(|it| takes(&it))).collect();
    let mut level = 0.0;
    while !growing.is_empty() {
        // What all that still grow take of each link for one more unit each.
        let mut taken = vec![0.0; left.len()];
        for &(link, weight) in growing.iter().flat_map(|it| &demands[*it]) {
            taken[link] += weight;
        }
        let room = |link: usize| (left[link] / taken[link]).max(0.0);
        let full = (0..left.len()).filter(|it| 0.0 < taken[*it]);
        let full = full.min_by(|a, b| room(*a).total_cmp(&room(*b))).expect("some link is used");
        let step = room(full);
        level += step;
        for (left, taken) in left.iter_mut().zip(&taken) {
            *left -= step * taken;
        }
        growing.retain(|&it| {
            let is_held = demands[it].iter().filter(takes).any(|it| it.0 == full);
            if is_held {
                shares[it] = Share { rate: level, held_by: Some(full) };
            }
            !is_held
        });
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(capacities: &[f64], demands: &[Vec<(usize, f64)>]) -> Vec<(f64, Option<usize>)> {
        max_min(capacities, demands).iter().map(|it| (it.rate, it.held_by)).collect()
    }

    #[test]
    fn who_is_not_held_takes_what_others_leave() {
        // The textbook's line of two links: one long flow, two short ones.
        let demands = [vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0)], vec![(1, 1.0)]];
        let expected = [(5.0, Some(0)), (5.0, Some(0)), (15.0, Some(1))];
        assert_eq!(rates(&[10.0, 20.0], &demands), expected);
    }

    #[test]
    fn weights_count_and_who_uses_no_link_is_not_held() {
        let demands = [vec![(0, 3.0)], vec![(0, 1.0)], vec![], vec![(1, 0.0)]];
        let free = (f64::INFINITY, None);
        assert_eq!(rates(&[8.0, 1.0], &demands), [(2.0, Some(0)), (2.0, Some(0)), free, free]);
    }

    #[test]
    fn no_rate_can_grow_without_one_that_is_not_larger_shrinking() {
        // Each is held by a link that is full and on which nobody has more.
        let mut seed = 7u64;
        let mut dice = move |n: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let capacities: Vec<f64> = (0..6).map(|_| 1.0 + dice(20) as f64).collect();
            let demands: Vec<Vec<(usize, f64)>> = (0..5)
                .map(|_| {
                    let links: std::collections::BTreeSet<usize> =
                        (0..=dice(3)).map(|_| dice(6) as usize).collect();
                    links.into_iter().map(|it| (it, 1.0 + dice(4) as f64)).collect()
                })
                .collect();
            let shares = max_min(&capacities, &demands);
            for (idx, share) in shares.iter().enumerate() {
                let link = share.held_by.expect("each uses a link");
                let used: f64 = demands
                    .iter()
                    .zip(&shares)
                    .flat_map(|(it, share)| it.iter().map(move |it| (it.0, it.1 * share.rate)))
                    .filter(|it| it.0 == link)
                    .map(|it| it.1)
                    .sum();
                assert!((used - capacities[link]).abs() < 1e-9, "{used} of {}", capacities[link]);
                assert!(demands[idx].iter().any(|it| it.0 == link));
                for (other, demand) in demands.iter().enumerate() {
                    if demand.iter().any(|it| it.0 == link) {
                        assert!(shares[other].rate <= share.rate + 1e-9, "{idx} and {other}");
                    }
                }
            }
        }
    }
}
