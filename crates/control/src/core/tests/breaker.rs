//! The circuit breaker: what it weighs, what it holds back, and what releases that.

use std::fmt::Write as _;

use expect_test::expect;

use super::world::{World, check, pods};
use crate::note::CaseState;
use crate::settings::Settings;

#[test]
fn what_the_breaker_holds_back_is_done_as_its_window_passes() {
    check(
        "report cube0 machine_down
         report cube1 machine_down
         report cube2 machine_down
         run 1m
         show
         run 5m
         show",
        expect![[r#"
            5s CaseOpened case: case0 target: cube0 symptom: MachineDown severity: Fatal
            5s Drained target: cube0 by: Case(case0)
            5s CaseMoved case: case0 state: Draining
            5s CaseMoved case: case0 state: Waiting
            5s CaseOpened case: case1 target: cube1 symptom: MachineDown severity: Fatal
            5s Drained target: cube1 by: Case(case1)
            5s CaseMoved case: case1 state: Draining
            5s CaseMoved case: case1 state: Waiting
            5s CaseOpened case: case2 target: cube2 symptom: MachineDown severity: Fatal
            5s BreakerTripped case: case2 until: 305.000s
              out cube0 by Case(case0)
              out cube1 by Case(case1)
              case0 cube0 MachineDown Waiting
              case1 cube1 MachineDown Waiting
              case2 cube2 MachineDown Observed
            305s Drained target: cube2 by: Case(case2)
            305s CaseMoved case: case2 state: Draining
            305s CaseMoved case: case2 state: Waiting
              out cube0 by Case(case0)
              out cube1 by Case(case1)
              out cube2 by Case(case2)
              case0 cube0 MachineDown Waiting
              case1 cube1 MachineDown Waiting
              case2 cube2 MachineDown Waiting
        "#]],
    );
}

/// Goal: what stops jobs weighs as what they hold.  Method: fibres, each next to nothing by itself,
/// of cubes on which jobs run.
#[test]
fn reports_that_stop_more_running_jobs_than_the_share_are_held_back() {
    check(
        "submit a 4x4x4 for=5h limit=6h
         submit b 4x4x4 for=5h limit=6h
         submit c 4x4x4 for=5h limit=6h
         run 5m
         report cube0/z/out/5 link_down
         report cube1/z/out/6 link_down
         report cube2/z/out/7 link_down
         show
         run 6m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan1 parent: None generation: g2 job: job1 n_switches: 48 n_removed: 0 n_added: 48
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan2 parent: None generation: g3 job: job2 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            6s BlueprintDone plan: plan1 job: job1
            6s BlueprintDone plan: plan2 job: job2
            26s JobStarted job: job0 attempt: 1 waited: 21s
            26s JobStarted job: job1 attempt: 1 waited: 21s
            26s JobStarted job: job2 attempt: 1 waited: 21s
            305s CaseOpened case: case0 target: cube0/z/out/5 symptom: LinkDown severity: Fatal
            305s Drained target: cube0/z/out/5 by: Case(case0)
            305s CaseMoved case: case0 state: Draining
            305s JobNotified job: job0 attempt: 1 why: Fault case: case0
            305s CaseOpened case: case1 target: cube1/z/out/6 symptom: LinkDown severity: Fatal
            305s Drained target: cube1/z/out/6 by: Case(case1)
            305s CaseMoved case: case1 state: Draining
            305s JobNotified job: job1 attempt: 1 why: Fault case: case1
            305s CaseOpened case: case2 target: cube2/z/out/7 symptom: LinkDown severity: Fatal
            305s BreakerTripped case: case2 until: 605.000s
              a attempt 1 Stopping why: Fault case: case0 kill_at: 305.000s killed: true on cube0
              b attempt 1 Stopping why: Fault case: case1 kill_at: 305.000s killed: true on cube1
              c attempt 1 Running since: 26.000s on cube2
              out cube0/z/out/5 by Case(case0)
              out cube1/z/out/6 by Case(case1)
              case0 cube0/z/out/5 LinkDown Draining
              case1 cube1/z/out/6 LinkDown Draining
              case2 cube2/z/out/7 LinkDown Observed
            306s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            306s JobRequeued job: job0 why: Fault case: case0 not_before: 306.000s
            306s CaseMoved case: case0 state: Waiting
            306s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            306s BlueprintAdopted plan: plan3 parent: Some(plan0) generation: g7 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            306s JobStopped job: job1 attempt: 1 exit: Told kept: 0
            306s JobRequeued job: job1 why: Fault case: case1 not_before: 306.000s
            306s CaseMoved case: case1 state: Waiting
            307s BlueprintDone plan: plan3 job: job0
            327s JobStarted job: job0 attempt: 2 waited: 322s
            605s Drained target: cube2/z/out/7 by: Case(case2)
            605s CaseMoved case: case2 state: Draining
            605s JobNotified job: job2 attempt: 1 why: Fault case: case2
            606s JobStopped job: job2 attempt: 1 exit: Told kept: 0
            606s JobRequeued job: job2 why: Fault case: case2 not_before: 606.000s
            606s CaseMoved case: case2 state: Waiting
              a attempt 2 Running since: 327.000s on cube3
              b attempt 1 Queued since: 5.000s not_before: 306.000s held: false
              c attempt 1 Queued since: 5.000s not_before: 606.000s held: false
              out cube0/z/out/5 by Case(case0)
              out cube1/z/out/6 by Case(case1)
              out cube2/z/out/7 by Case(case2)
              case0 cube0/z/out/5 LinkDown Waiting
              case1 cube1/z/out/6 LinkDown Waiting
              case2 cube2/z/out/7 LinkDown Waiting
        "#]],
    );
}

/// Goal: in a plant of one pod everything goes through each switch; its fault is not held back
/// because a fibre failed before it.
#[test]
fn a_switch_of_the_only_pod_is_left_also_after_a_fibre() {
    check(
        "submit a 4x4x12 for=5h limit=6h
         run 5m
         report cube3/z/out/7 link_down
         report z5 switch_down
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 144
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            305s CaseOpened case: case0 target: cube3/z/out/7 symptom: LinkDown severity: Fatal
            305s Drained target: cube3/z/out/7 by: Case(case0)
            305s CaseMoved case: case0 state: Draining
            305s CaseMoved case: case0 state: Waiting
            305s CaseOpened case: case1 target: z5 symptom: SwitchDown severity: Fatal
            305s Drained target: z5 by: Case(case1)
            305s CaseMoved case: case1 state: Draining
            305s JobNotified job: job0 attempt: 1 why: Fault case: case1
            306s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            306s JobRequeued job: job0 why: Fault case: case1 not_before: 306.000s
            306s CaseMoved case: case1 state: Waiting
              a attempt 1 Queued since: 5.000s not_before: 306.000s held: false
              out z5 by Case(case1)
              out cube3/z/out/7 by Case(case0)
              case1 z5 SwitchDown Waiting
              case0 cube3/z/out/7 LinkDown Waiting
        "#]],
    );
}

/// Goal: of acts that are heavier than the share one passes in a window; beside it what is light.
#[test]
fn the_second_act_that_is_heavier_than_the_share_waits_and_a_person_does_not() {
    check(
        "submit a 4x4x12 for=5h limit=6h
         run 5m
         report cube0/z/out/7 link_down
         run 1m
         report cube1/x/in/1 link_down
         report cube0/m03 machine_down
         show
         take ann case1
         show
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 144
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            305s CaseOpened case: case0 target: cube0/z/out/7 symptom: LinkDown severity: Fatal
            305s Drained target: cube0/z/out/7 by: Case(case0)
            305s CaseMoved case: case0 state: Draining
            305s JobNotified job: job0 attempt: 1 why: Fault case: case0
            306s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            306s JobRequeued job: job0 why: Fault case: case0 not_before: 306.000s
            306s CaseMoved case: case0 state: Waiting
            306s JobPlaced job: job0 attempt: 2 n_parts: 3 kept_parts: 2
            306s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 48 n_removed: 32 n_added: 64
            307s BlueprintDone plan: plan1 job: job0
            327s JobStarted job: job0 attempt: 2 waited: 322s
            365s CaseOpened case: case1 target: cube1/x/in/1 symptom: LinkDown severity: Fatal
            365s BreakerTripped case: case1 until: 605.000s
            365s CaseOpened case: case2 target: cube0/m03 symptom: MachineDown severity: Fatal
            365s Drained target: cube0/m03 by: Case(case2)
            365s CaseMoved case: case2 state: Draining
            365s CaseMoved case: case2 state: Waiting
              a attempt 2 Running since: 327.000s on cube3 cube1 cube2
              out cube0/m03 by Case(case2)
              out cube0/z/out/7 by Case(case0)
              case2 cube0/m03 MachineDown Waiting
              case0 cube0/z/out/7 LinkDown Waiting
              case1 cube1/x/in/1 LinkDown Observed
            365s Drained target: cube1/x/in/1 by: Case(case1)
            365s CaseMoved case: case1 state: Draining
            365s JobNotified job: job0 attempt: 2 why: Fault case: case1
              a attempt 2 Stopping why: Fault case: case1 kill_at: 425.000s killed: false on cube3 cube1 cube2
              out cube0/m03 by Case(case2)
              out cube0/z/out/7 by Case(case0)
              out cube1/x/in/1 by Case(case1)
              case2 cube0/m03 MachineDown Waiting
              case0 cube0/z/out/7 LinkDown Waiting
              case1 cube1/x/in/1 LinkDown Draining
            370s JobStopped job: job0 attempt: 2 exit: Told kept: 43
            370s JobRequeued job: job0 why: Fault case: case1 not_before: 370.000s
            370s CaseMoved case: case1 state: UnderRepair
              a attempt 2 Queued since: 5.000s not_before: 370.000s held: false
              out cube0/m03 by Case(case2)
              out cube0/z/out/7 by Case(case0)
              out cube1/x/in/1 by Case(case1)
              case2 cube0/m03 MachineDown Waiting
              case0 cube0/z/out/7 LinkDown Waiting
              case1 cube1/x/in/1 LinkDown UnderRepair
        "#]],
    );
}

/// Goal: switches weigh also while nobody uses them.
#[test]
fn half_of_the_switches_of_an_idle_pod_are_taken_out_at_once_and_no_more() {
    let mut world = World::new(&pods(&[4]), Settings::simulated());
    let mut script = String::new();
    for dim in ["x", "y", "z"] {
        for index in 0..16 {
            writeln!(script, "report {dim}{index} switch_down").unwrap();
        }
    }
    world.play(&script);
    let state = world.core.state();
    let held: Vec<_> = state.cases.iter().filter(|it| it.held_back.is_some()).collect();
    assert!(held.iter().all(|it| it.state == CaseState::Observed));
    // One of 48 is 6 of 256 seats, rounded up; 21 of them are 126.
    assert_eq!((state.drains.len(), held.len()), (21, 27));
    world.play("run 6m");
    assert_eq!(world.core.state().drains.len(), 42);
    world.play("run 6m");
    assert_eq!(world.core.state().drains.len(), 48);
    assert!(world.core.state().cases.iter().all(|it| it.held_back.is_none()));
    world.replay_all();
}
