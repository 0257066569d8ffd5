//! Devices that were told more than the journal has.

use expect_test::expect;
use selvedge_model::id::JobId;
use selvedge_model::job::Hold;
use selvedge_model::unit::Generation;

use super::world::World;
use crate::input::{Ahead, Answer, Exit, Input, Stray};
use crate::settings::Settings;

fn hold(world: &World, name: &str) -> Hold {
    let fabric = world.core.fabric();
    let part = fabric.part_named(name).unwrap();
    Hold { part, seats: fabric.template_of(part).all_seats() }
}

/// Goal: nobody is placed where unknown tasks run, or beside them under their number, until they
/// are dead; what is believed to be there begins anew; no number that devices have seen is given
/// out again.
#[test]
fn what_devices_know_and_the_core_does_not_is_ended_before_anything_is_placed_there() {
    let plant = "format = 1\nname = \"h\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 3\n";
    let mut world = World::new(plant, Settings::simulated());
    world.play(
        "submit known hosts=1 for=2h limit=3h
         submit other hosts=1 for=2h limit=3h
         run 1m",
    );
    // By what was lost, the first job had begun again on the third host, where a later job had run
    // before; and another runs where the second job is believed to be.
    let stray = |job, attempt, holds| Stray { job: JobId::new(job), attempt, holds };
    let ahead = Ahead {
        strays: vec![
            stray(0, 4, vec![hold(&world, "host2")]),
            stray(2, 1, vec![hold(&world, "host1")]),
        ],
        attempt: 7,
        generation: Generation::new(900),
    };
    world.tell(Input::Ahead(ahead)).unwrap();
    world.play(
        "submit new hosts=1 for=10m limit=1h
         submit last hosts=1 for=10m limit=1h
         show
         run 1s
         show
         run 3m
         show",
    );
    let over = Answer::Stopped { job: JobId::new(0), attempt: 4, exit: Exit::Told, kept: 9 };
    assert!(world.tell(Input::Answer(over)).is_err(), "nobody waits for it any more");
    assert_eq!(world.core.state().attempts_seen, 7);
    assert!(900 < world.core.state().generation.number());
    world.replay_all();
    expect![[r#"
        5s JobSubmitted job: job0
        5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
        5s JobSubmitted job: job1
        5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
        20s JobStarted job: job0 attempt: 1 waited: 15s
        20s JobStarted job: job1 attempt: 1 waited: 15s
        65s StrayFound job: job0 attempt: 4 n_parts: 1
        65s StrayFound job: job2 attempt: 1 n_parts: 1
        65s JobStopped job: job0 attempt: 1 exit: Lost kept: 0
        65s JobRequeued job: job0 why: Lost not_before: 125.000s
        65s JobNotified job: job1 attempt: 1 why: Lost
        65s JobSubmitted job: job2
        65s JobSubmitted job: job3
          known attempt 1 Queued since: 5.000s not_before: 125.000s held: false on host0
          last attempt 0 Queued since: 65.000s not_before: 65.000s held: false
          new attempt 0 Queued since: 65.000s not_before: 65.000s held: false
          other attempt 1 Stopping why: Lost kill_at: 65.000s killed: true on host1
        66s StrayEnded job: job0 attempt: 4
        66s JobPlaced job: job3 attempt: 8 n_parts: 1 kept_parts: 0
        66s StrayEnded job: job2 attempt: 1
        66s JobStopped job: job1 attempt: 1 exit: Told kept: 0
        66s JobRequeued job: job1 why: Lost not_before: 126.000s
          known attempt 1 Queued since: 5.000s not_before: 125.000s held: false on host0
          last attempt 8 Starting stage: Inspecting since: 66.000s asks: 1 on host2
          new attempt 0 Queued since: 65.000s not_before: 65.000s held: false
          other attempt 1 Queued since: 5.000s not_before: 126.000s held: false on host1
        81s JobStarted job: job3 attempt: 8 waited: 16s
        125s JobPlaced job: job0 attempt: 8 n_parts: 1 kept_parts: 1
        126s JobPlaced job: job1 attempt: 8 n_parts: 1 kept_parts: 1
        140s JobStarted job: job0 attempt: 8 waited: 135s
        141s JobStarted job: job1 attempt: 8 waited: 136s
          known attempt 8 Running since: 140.000s on host0
          last attempt 8 Running since: 81.000s on host2
          new attempt 0 Queued since: 65.000s not_before: 65.000s held: false
          other attempt 8 Running since: 141.000s on host1
    "#]]
    .assert_eq(&world.lines);
}

#[test]
fn what_devices_say_of_parts_that_are_not_there_takes_nothing_out() {
    let plant = "format = 1\nname = \"h\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 1\n";
    let mut world = World::new(plant, Settings::simulated());
    let part = selvedge_model::id::PartId::new(77);
    let holds = vec![Hold { part, seats: u64::MAX }];
    let strays = vec![Stray { job: JobId::new(9), attempt: u32::MAX, holds }];
    let generation = Generation::new(u64::MAX);
    world.tell(Input::Ahead(Ahead { strays, attempt: u32::MAX, generation })).unwrap();
    assert!(world.core.state().strays.is_empty());
    assert!(world.core.state().generation.number() < 1 << 62);
    world.play("submit a hosts=1 for=10m limit=1h\n run 1h\n show");
    world.replay_all();
    assert!(world.lines.ends_with("Finished\n"), "{}", world.lines);
}
