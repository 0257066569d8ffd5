//! Restarts at every moment: what was on its way is lost, and the work is done all the same.

use selvedge_model::unit::{Moment, Span};

use super::world::{World, pods};
use crate::settings::Settings;
use crate::state::JobState;

/// Plays `before`, then restarts at each second of the next `secs`, each on a copy of its own;
/// after a further day every job has finished and nothing is out of use.
fn restart_at_each_second(before: &str, secs: u64) {
    let mut world = World::new(&pods(&[4]), Settings::simulated());
    world.play(before);
    for _ in 0..secs {
        let mut copy = world.clone();
        let at = copy.now.since(Moment::START);
        copy.restart();
        copy.run(Span::days(1));
        copy.replay_all();
        let state = copy.core.state();
        for (name, &job) in &copy.jobs {
            let known = &state.jobs[job];
            let is_done = known.state == JobState::Finished;
            assert!(is_done, "{name}, restarted at {at}: {:?}\n{}", known.state, copy.lines);
        }
        assert!(state.drains.is_empty(), "restarted at {at}\n{}", copy.lines);
        assert!(state.awaited.is_empty() && state.wirings.is_empty(), "restarted at {at}");
        world.run(Span::secs(1));
    }
}

#[test]
fn a_start_survives_a_restart_in_each_stage() {
    restart_at_each_second("submit a 4x4x8 for=10m limit=1h", 24);
}

#[test]
fn a_stop_survives_a_restart() {
    restart_at_each_second(
        "submit a 4x4x8 for=10m limit=1h
         stubborn a
         run 2m
         requeue a
         run 50s",
        16,
    );
}

#[test]
fn a_hot_swap_survives_a_restart() {
    restart_at_each_second(
        "crew 90s
         submit a 4x4x12 for=10m limit=1h
         run 2m
         report cube1/m03 machine_down",
        25,
    );
}

#[test]
fn an_undo_survives_a_restart() {
    restart_at_each_second(
        "crew 90s
         broken x3/n1
         submit a 4x4x8 for=10m limit=1h",
        6,
    );
}

#[test]
fn a_repair_survives_a_restart() {
    restart_at_each_second(
        "crew 90s
         report cube1 machine_down
         report x5 switch_down
         submit a 4x4x16 for=10m limit=1h
         run 55s",
        60,
    );
}

#[test]
fn a_preemption_survives_a_restart() {
    restart_at_each_second(
        "submit low 4x4x16 for=10m limit=1h
         run 2m
         submit high 4x4x4 for=10m limit=1h prio=5",
        10,
    );
}
