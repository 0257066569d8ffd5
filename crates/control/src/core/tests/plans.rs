//! What is planned outside the core: it comes late, never, or when it no longer helps.

use expect_test::expect;

use super::world::{World, check, pods};
use crate::core::{Core, ReplayError, VERSION};
use crate::input::Input;
use crate::settings::Settings;

/// Two jobs of half a cube on two cubes, so that a job of a whole one waits until one moves.
const CROWDED: &str = "submit a 2x4x4 for=3h
     submit b 2x4x4 for=3h
     submit c 2x4x4 for=3h
     submit rest 4x4x8 for=3h limit=4h firm
     run 1m
     cancel a
     run 1m";

fn check_crowded(script: &str, expect: expect_test::Expect) {
    check(&format!("{CROWDED}\n{script}"), expect);
}

#[test]
fn a_plan_that_comes_late_is_carried_out_if_it_still_helps() {
    check_crowded(
        "plans 40s\n submit whole 4x4x4 for=10m\n run 10m\n show",
        expect![[r#"
        5s JobSubmitted job: job0
        5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
        5s JobSubmitted job: job1
        5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
        5s JobSubmitted job: job2
        5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
        5s JobSubmitted job: job3
        5s JobPlaced job: job3 attempt: 1 n_parts: 2 kept_parts: 0
        5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job3 n_switches: 48 n_removed: 0 n_added: 96
        6s BlueprintDone plan: plan0 job: job3
        20s JobStarted job: job0 attempt: 1 waited: 15s
        20s JobStarted job: job1 attempt: 1 waited: 15s
        20s JobStarted job: job2 attempt: 1 waited: 15s
        26s JobStarted job: job3 attempt: 1 waited: 21s
        65s JobNotified job: job0 attempt: 1 why: Cancelled
        70s JobStopped job: job0 attempt: 1 exit: Told kept: 50
        70s JobCancelled job: job0
        125s JobSubmitted job: job4
        165s MovesProposed plan: plan1 job: job4 n_moved: 1 lost_chip_hours: 8
        165s MovesAdopted plan: plan1 job: job4
        165s JobNotified job: job1 attempt: 1 why: Moved plan: plan1
        170s JobStopped job: job1 attempt: 1 exit: Told kept: 150
        170s JobRequeued job: job1 why: Moved plan: plan1 not_before: 170.000s
        170s JobPlaced job: job1 attempt: 2 n_parts: 1 kept_parts: 0
        170s JobPlaced job: job4 attempt: 1 n_parts: 1 kept_parts: 0
        170s BlueprintAdopted plan: plan2 parent: None generation: g6 job: job4 n_switches: 48 n_removed: 0 n_added: 48
        171s BlueprintDone plan: plan2 job: job4
        185s JobStarted job: job1 attempt: 2 waited: 3m
        191s JobStarted job: job4 attempt: 1 waited: 66s
          a attempt 1 Cancelled
          b attempt 2 Running since: 185.000s on cube1:ffffffff00000000
          c attempt 1 Running since: 20.000s on cube1:ffffffff
          rest attempt 1 Running since: 26.000s on cube2 cube3
          whole attempt 1 Running since: 191.000s on cube0
    "#]],
    );
}

#[test]
fn a_plan_whose_places_were_taken_meanwhile_is_dropped_and_made_anew() {
    check_crowded(
        "plans 40s
         submit whole 4x4x4 for=10m
         run 10s
         # It takes the place that b or c would have moved to.
         submit small 2x4x4 for=30s limit=1m prio=9
         run 10m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job3
            5s JobPlaced job: job3 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job3 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job3
            20s JobStarted job: job0 attempt: 1 waited: 15s
            20s JobStarted job: job1 attempt: 1 waited: 15s
            20s JobStarted job: job2 attempt: 1 waited: 15s
            26s JobStarted job: job3 attempt: 1 waited: 21s
            65s JobNotified job: job0 attempt: 1 why: Cancelled
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 50
            70s JobCancelled job: job0
            125s JobSubmitted job: job4
            135s JobSubmitted job: job5
            135s JobPlaced job: job5 attempt: 1 n_parts: 1 kept_parts: 0
            150s JobStarted job: job5 attempt: 1 waited: 15s
            180s JobStopped job: job5 attempt: 1 exit: Done kept: 30
            180s JobFinished job: job5
            245s MovesProposed plan: plan1 job: job4 n_moved: 1 lost_chip_hours: 8
            245s MovesAdopted plan: plan1 job: job4
            245s JobNotified job: job1 attempt: 1 why: Moved plan: plan1
            250s JobStopped job: job1 attempt: 1 exit: Told kept: 230
            250s JobRequeued job: job1 why: Moved plan: plan1 not_before: 250.000s
            250s JobPlaced job: job1 attempt: 2 n_parts: 1 kept_parts: 0
            250s JobPlaced job: job4 attempt: 1 n_parts: 1 kept_parts: 0
            250s BlueprintAdopted plan: plan2 parent: None generation: g7 job: job4 n_switches: 48 n_removed: 0 n_added: 48
            251s BlueprintDone plan: plan2 job: job4
            265s JobStarted job: job1 attempt: 2 waited: 260s
            271s JobStarted job: job4 attempt: 1 waited: 146s
              a attempt 1 Cancelled
              b attempt 2 Running since: 265.000s on cube1:ffffffff00000000
              c attempt 1 Running since: 20.000s on cube1:ffffffff
              rest attempt 1 Running since: 26.000s on cube2 cube3
              small attempt 1 Finished
              whole attempt 1 Running since: 271.000s on cube0
        "#]],
    );
}

#[test]
fn a_plan_for_a_job_that_no_longer_waits_is_refused() {
    check_crowded(
        "plans 40s
         submit whole 4x4x4 for=10m
         run 10s
         cancel whole
         run 2m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job3
            5s JobPlaced job: job3 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job3 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job3
            20s JobStarted job: job0 attempt: 1 waited: 15s
            20s JobStarted job: job1 attempt: 1 waited: 15s
            20s JobStarted job: job2 attempt: 1 waited: 15s
            26s JobStarted job: job3 attempt: 1 waited: 21s
            65s JobNotified job: job0 attempt: 1 why: Cancelled
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 50
            70s JobCancelled job: job0
            125s JobSubmitted job: job4
            135s JobCancelled job: job4
              a attempt 1 Cancelled
              b attempt 1 Running since: 20.000s on cube0:ffffffff00000000
              c attempt 1 Running since: 20.000s on cube1:ffffffff
              rest attempt 1 Running since: 26.000s on cube2 cube3
              whole attempt 0 Cancelled
        "#]],
    );
}

#[test]
fn a_plan_that_never_comes_is_asked_for_again() {
    check_crowded(
        "plans never
         submit whole 4x4x4 for=10m
         run 59s
         plans promptly
         run 10m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job3
            5s JobPlaced job: job3 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job3 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job3
            20s JobStarted job: job0 attempt: 1 waited: 15s
            20s JobStarted job: job1 attempt: 1 waited: 15s
            20s JobStarted job: job2 attempt: 1 waited: 15s
            26s JobStarted job: job3 attempt: 1 waited: 21s
            65s JobNotified job: job0 attempt: 1 why: Cancelled
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 50
            70s JobCancelled job: job0
            125s JobSubmitted job: job4
            185s MovesProposed plan: plan1 job: job4 n_moved: 1 lost_chip_hours: 8
            185s MovesAdopted plan: plan1 job: job4
            185s JobNotified job: job1 attempt: 1 why: Moved plan: plan1
            190s JobStopped job: job1 attempt: 1 exit: Told kept: 170
            190s JobRequeued job: job1 why: Moved plan: plan1 not_before: 190.000s
            190s JobPlaced job: job1 attempt: 2 n_parts: 1 kept_parts: 0
            190s JobPlaced job: job4 attempt: 1 n_parts: 1 kept_parts: 0
            190s BlueprintAdopted plan: plan2 parent: None generation: g6 job: job4 n_switches: 48 n_removed: 0 n_added: 48
            191s BlueprintDone plan: plan2 job: job4
            205s JobStarted job: job1 attempt: 2 waited: 200s
            211s JobStarted job: job4 attempt: 1 waited: 86s
              a attempt 1 Cancelled
              b attempt 2 Running since: 205.000s on cube1:ffffffff00000000
              c attempt 1 Running since: 20.000s on cube1:ffffffff
              rest attempt 1 Running since: 26.000s on cube2 cube3
              whole attempt 1 Running since: 211.000s on cube0
        "#]],
    );
}

#[test]
fn a_plan_that_was_lost_with_the_process_is_asked_for_again() {
    check_crowded(
        "plans 40s
         submit whole 4x4x4 for=10m
         run 10s
         plans promptly
         restart
         run 10m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job3
            5s JobPlaced job: job3 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job3 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job3
            20s JobStarted job: job0 attempt: 1 waited: 15s
            20s JobStarted job: job1 attempt: 1 waited: 15s
            20s JobStarted job: job2 attempt: 1 waited: 15s
            26s JobStarted job: job3 attempt: 1 waited: 21s
            65s JobNotified job: job0 attempt: 1 why: Cancelled
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 50
            70s JobCancelled job: job0
            125s JobSubmitted job: job4
            135s MovesProposed plan: plan1 job: job4 n_moved: 1 lost_chip_hours: 8
            135s MovesAdopted plan: plan1 job: job4
            135s JobNotified job: job1 attempt: 1 why: Moved plan: plan1
            140s JobStopped job: job1 attempt: 1 exit: Told kept: 120
            140s JobRequeued job: job1 why: Moved plan: plan1 not_before: 140.000s
            140s JobPlaced job: job1 attempt: 2 n_parts: 1 kept_parts: 0
            140s JobPlaced job: job4 attempt: 1 n_parts: 1 kept_parts: 0
            140s BlueprintAdopted plan: plan2 parent: None generation: g6 job: job4 n_switches: 48 n_removed: 0 n_added: 48
            141s BlueprintDone plan: plan2 job: job4
            155s JobStarted job: job1 attempt: 2 waited: 150s
            161s JobStarted job: job4 attempt: 1 waited: 36s
              a attempt 1 Cancelled
              b attempt 2 Running since: 155.000s on cube1:ffffffff00000000
              c attempt 1 Running since: 20.000s on cube1:ffffffff
              rest attempt 1 Running since: 26.000s on cube2 cube3
              whole attempt 1 Running since: 161.000s on cube0
        "#]],
    );
}

#[test]
fn an_answer_that_no_planner_gave_is_noticed_in_replay() {
    let mut world = World::new(&pods(&[4]), Settings::simulated());
    world.play(CROWDED);
    world.play("plans never\n submit whole 4x4x4 for=10m");
    let request = world.core.state().n_requests;
    world.tell(Input::Planned { request, moves: None }).unwrap();
    let mut core = Core::new();
    let mut failed = None;
    for (now, input, plans) in &world.records {
        assert!(failed.is_none(), "{failed:?} before the last record");
        failed = core.replay(*now, input.clone(), plans, VERSION).err();
    }
    assert!(matches!(failed, Some(ReplayError::Diverged { .. })), "{failed:?}");
}
