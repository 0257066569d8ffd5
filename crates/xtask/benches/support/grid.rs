//! Placement on grids: what a decision, the tables of a partition, a trace of slices and the
//! clusters of a program in replicas take.

use std::collections::BTreeSet;

use selvedge_control::check::{self, Claim};
use selvedge_family::cluster::hosts::Hosts;
use selvedge_family::cluster::{Apart, place};
use selvedge_family::grid::policy::Policy;
use selvedge_model::id::{JobId, PartId, PoolId};
use selvedge_model::job::{Hold, Place};
use selvedge_model::spec::Plant;
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::spec::plant::Family;
use selvedge_model::unit::{Ppm, Span};
use selvedge_sim::dice::Dice;
use selvedge_sim::study::workload::{self, Workload};
use selvedge_sim::study::{allocation, pods};
use selvedge_sim::trace::mix::{self, Mix};
use selvedge_sim::trace::{Cell, Scaled};

/// A thousand tasks, in strict order, on as many groups as the figures to reach are for.
pub(crate) fn decisions_16x16() -> crate::Counts {
    decisions([16, 16])
}

/// The same on the largest machine.
pub(crate) fn decisions_64x64() -> crate::Counts {
    decisions([64, 64])
}

fn decisions(groups: [u16; 2]) -> crate::Counts {
    let n_boards = u32::from(groups[0]) * u32::from(groups[1]);
    let setup = allocation::Setup {
        groups,
        policy: Policy::Polyomino,
        queue: allocation::Queue::Window(1),
        tasks: workload::draw(Workload::Uniform8, 1000, n_boards, 1),
        dead: Ppm::new(0),
        communication: Ppm::new(0),
        seed: 1,
    };
    let outcome = allocation::run(&setup, &mut || Span::ZERO).expect("all tasks fit").outcome;
    let of_ten_thousand = (outcome.utilisation * 1e4) as usize;
    vec![("decisions", outcome.decisions as usize), ("used_of_10000", of_ten_thousand)]
}

/// The tables of all chips of a machine of 32x32 groups, made and checked.
pub(crate) fn tables_4096_chips() -> crate::Counts {
    let machine = Family::HyperSquare(HyperSquare::of_groups([32, 32]));
    let fabric = selvedge_family::build(&Plant::of_pods("bench", [machine])).expect("it fits");
    let parts: Vec<PartId> = fabric.parts().ids().collect();
    let seats = |part: PartId| fabric.template_of(part).all_seats();
    let holds = parts.iter().map(|&part| Hold { part, seats: seats(part) }).collect();
    let place = Place::of(PoolId::new(0), holds);
    let (chips, tables) =
        selvedge_family::forwarding(&fabric, &parts, &[]).expect("all are joined");
    let claim = Claim { chips: &chips, toward: &|to| tables.toward(to) };
    let found = check::tables(&fabric, JobId::new(0), &place, &claim);
    vec![("chips", chips.len()), ("violations", found.len())]
}

/// 400 slices of the published mix on a switched pod and on a static one, in strict order.
pub(crate) fn pods_400_slices() -> crate::Counts {
    let load = Ppm::new(850_000);
    let mix = Mix { n_jobs: 400, cell: Cell::of(1, 4096), load, scaled: Scaled::Arrivals };
    let jobs = mix::draw(1, mix);
    let ask = pods::Ask { n_watched: 101, curve: false };
    let minutes = |pod| {
        let outcome = pods::run(pod, &jobs, ask, &mut || Span::ZERO).outcome;
        (outcome.queue_h * 60.0) as usize
    };
    vec![
        ("switched_queue_min", minutes(pods::Pod::Switched)),
        ("static_queue_min", minutes(pods::Pod::Static(Policy::BestFit))),
    ]
}

/// The clusters of a machine of 64x64 boards of which every tenth is dead.
pub(crate) fn clusters_4096_hosts() -> crate::Counts {
    let machine = Family::HyperSquare(HyperSquare::of_groups([64, 64]));
    let fabric = selvedge_family::build(&Plant::of_pods("bench", [machine])).expect("it fits");
    let mut dice = Dice::new(1, "clusters");
    let dead: BTreeSet<PartId> = (0..410).map(|_| PartId::at(dice.index(4096))).collect();
    let hosts = Hosts::of(&fabric, |it| !dead.contains(&it.part));
    let clusters = place(&hosts, Apart::Host, usize::MAX).expect("there are hosts enough");
    let hops = clusters.hops_sum() as usize;
    vec![("clusters", clusters.triples.len()), ("bound", clusters.bound), ("hops", hops)]
}
