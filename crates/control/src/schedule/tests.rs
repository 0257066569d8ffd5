//! In which of several pools a job is placed.

use std::collections::BTreeSet;

use selvedge_model::id::{JobId, PartId, PoolId};
use selvedge_model::job::{Collective, Demand, Load};
use selvedge_model::spec::Plant;
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::spec::plant::Family;
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Moment, Ppm, Span};

use super::*;
use crate::planted::Planted;
use crate::state::PartState;

/// Boards of the first pool that are left, a path along three of its sides: the chips at its ends
/// have three links, where those of the best of its size have four.
const PATH: [usize; 9] = [0, 1, 2, 3, 7, 11, 15, 14, 13];

#[test]
fn a_partition_that_is_good_for_anybody_goes_before_the_best_of_a_broken_pool() {
    let squares =
        [[4, 4], [6, 6], [8, 8]].map(|it| Family::HyperSquare(HyperSquare::of_groups(it)));
    let fabric = selvedge_family::build(&Plant::of_pods("made", squares)).unwrap();
    let layout = Layout::of(&fabric);
    let mut parts: IdVec<PartId, PartState> = IdVec::new();
    parts.grow(layout.seats.len(), PartState::default());
    let pools: Vec<PoolId> = layout.pools.ids().collect();
    let [broken, sound, promised] = pools[..] else { panic!("{pools:?}") };
    for (idx, &part) in layout.pools[broken].iter().enumerate() {
        parts[part].out = if PATH.contains(&idx) { 0 } else { layout.seats[part] };
    }
    let first = layout.pools[promised][0];
    parts[first].held = layout.seats[first];
    let (one, one_need) = family::need(&Demand::Shape("1x1".to_owned())).unwrap();
    let holds = [Hold { part: first, seats: layout.seats[first] }];
    let busy = [Busy {
        job: JobId::new(9),
        demand: &one,
        need: &one_need,
        limit: Some(Span::hours(5)),
        holds: &holds,
        pool: promised,
        release_by: Moment::START + Span::hours(5),
        priority: 0,
        waited: Span::ZERO,
        preemptible: false,
        leaving: false,
        since: Moment::START,
    }];
    let load = |boards: u32, communication: u32| {
        let load = Load {
            chips: 4 * boards,
            memory_gib: 0,
            communication: Ppm::new(communication),
            collective: Collective::AllGather,
            boards: Some(boards),
        };
        family::need(&Demand::Load(Box::new(load))).unwrap()
    };
    let view = View {
        now: Moment::START,
        fabric: &fabric,
        layout: &layout,
        parts: &parts,
        doubted: &BTreeSet::new(),
        busy: &busy,
        means: Means { backfill: true, preempt: false, defragment: false },
        aging: Span::ZERO,
        setup_max: Span::ZERO,
        stop_max: Span::ZERO,
        window: None,
        current: &|_, _| None,
        planted: Planted::NONE,
    };
    let (whole, whole_need) = family::need(&Demand::Shape("8x8".to_owned())).unwrap();
    let head = Waiting::new(JobId::new(0), &whole, &whole_need, Some(Span::hours(1)));
    for (communication, wanted) in [(1_000_000, sound), (0, broken)] {
        let (demand, need) = load(9, communication);
        let job = Waiting::new(JobId::new(1), &demand, &need, Some(Span::hours(1)));
        // It is placed so as the first that waits, and so behind a head.
        let (plan, _) = super::plan(&view, &[job]);
        assert_eq!(plan.starts[0].place.pool, wanted, "{communication}");
        let (plan, report) = super::plan(&view, &[head, job]);
        assert_eq!(report.head.unwrap().promise.unwrap().pool, promised);
        assert_eq!((plan.starts[0].job, plan.starts[0].place.pool), (job.job, wanted));
    }
}
