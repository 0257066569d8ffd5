//! Devices, links and parts that misbehave, and what becomes of the jobs on them.

use expect_test::expect;

use super::world::{check, check_on, pods};

#[test]
fn a_lost_machine_costs_one_cube_and_only_its_mirrors_move() {
    check(
        "crew 10m
         submit a 4x4x12 for=1h limit=3h
         run 15m
         show
         report cube1/m03 machine_down
         run 1m
         show
         run 2h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 144
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
              a attempt 1 Running since: 26.000s on cube0 cube1 cube2
            905s CaseOpened case: case0 target: cube1/m03 symptom: MachineDown severity: Fatal
            905s Drained target: cube1/m03 by: Case(case0)
            905s CaseMoved case: case0 state: Draining
            905s JobNotified job: job0 attempt: 1 why: Fault case: case0
            906s JobStopped job: job0 attempt: 1 exit: Told kept: 600
            906s JobRequeued job: job0 why: Fault case: case0 not_before: 906.000s
            906s CaseMoved case: case0 state: Waiting
            906s JobPlaced job: job0 attempt: 2 n_parts: 3 kept_parts: 2
            906s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 48 n_removed: 32 n_added: 64
            907s BlueprintDone plan: plan1 job: job0
            927s JobStarted job: job0 attempt: 2 waited: 922s
              a attempt 2 Running since: 927.000s on cube0 cube3 cube2
              out cube1/m03 by Case(case0)
              case0 cube1/m03 MachineDown Waiting
            966s CaseMoved case: case0 state: UnderRepair
            1506s CaseMoved case: case0 state: Verifying
            1518s CaseMoved case: case0 state: Probation until: 2118.000s
            2118s Undrained target: cube1/m03 by: Case(case0)
            2118s CaseMoved case: case0 state: Closed
            3927s JobStopped job: job0 attempt: 2 exit: Done kept: 3600
            3927s JobFinished job: job0
              a attempt 2 Finished
        "#]],
    );
}

/// What another job has left joined on cube3 would have to be taken apart first; cube4 is dark.
#[test]
fn a_swap_takes_a_dark_spare_before_one_that_is_joined() {
    check_on(
        &pods(&[5]),
        "submit a 4x4x12 for=9h firm
         submit b 4x4x4 for=1m
         run 30m
         report cube1/m03 machine_down
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 144
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan1 parent: None generation: g2 job: job1 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            6s BlueprintDone plan: plan1 job: job1
            26s JobStarted job: job0 attempt: 1 waited: 21s
            26s JobStarted job: job1 attempt: 1 waited: 21s
            86s JobStopped job: job1 attempt: 1 exit: Done kept: 60
            86s JobFinished job: job1
            1805s CaseOpened case: case0 target: cube1/m03 symptom: MachineDown severity: Fatal
            1805s Drained target: cube1/m03 by: Case(case0)
            1805s CaseMoved case: case0 state: Draining
            1805s JobNotified job: job0 attempt: 1 why: Fault case: case0
            1806s JobStopped job: job0 attempt: 1 exit: Told kept: 1200
            1806s JobRequeued job: job0 why: Fault case: case0 not_before: 1806.000s
            1806s CaseMoved case: case0 state: Waiting
            1806s JobPlaced job: job0 attempt: 2 n_parts: 3 kept_parts: 2
            1806s BlueprintAdopted plan: plan2 parent: Some(plan0) generation: g5 job: job0 n_switches: 48 n_removed: 32 n_added: 64
            1807s BlueprintDone plan: plan2 job: job0
            1827s JobStarted job: job0 attempt: 2 waited: 1822s
              a attempt 2 Running since: 1827.000s on cube0 cube4 cube2
              b attempt 1 Finished
              out cube1/m03 by Case(case0)
              case0 cube1/m03 MachineDown Waiting
        "#]],
    );
}

#[test]
fn without_a_spare_the_job_gives_its_place_up_and_waits() {
    check(
        "crew 20m
         submit a 4x4x16 for=1h limit=3h
         run 15m
         report cube1 machine_down
         run 5m
         show
         run 2h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 4 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 192
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            905s CaseOpened case: case0 target: cube1 symptom: MachineDown severity: Fatal
            905s Drained target: cube1 by: Case(case0)
            905s CaseMoved case: case0 state: Draining
            905s JobNotified job: job0 attempt: 1 why: Fault case: case0
            906s JobStopped job: job0 attempt: 1 exit: Told kept: 600
            906s JobRequeued job: job0 why: Fault case: case0 not_before: 906.000s
            906s CaseMoved case: case0 state: Waiting
            966s CaseMoved case: case0 state: UnderRepair
              a attempt 1 Queued since: 5.000s not_before: 906.000s held: false
              out cube1 by Case(case0)
              case0 cube1 MachineDown UnderRepair
            2106s CaseMoved case: case0 state: Verifying
            2118s CaseMoved case: case0 state: Probation until: 2718.000s
            2718s Undrained target: cube1 by: Case(case0)
            2718s CaseMoved case: case0 state: Closed
            2718s JobPlaced job: job0 attempt: 2 n_parts: 4 kept_parts: 0
            2718s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            2718s BlueprintDone plan: plan1 job: job0
            2738s JobStarted job: job0 attempt: 2 waited: 2733s
            5738s JobStopped job: job0 attempt: 2 exit: Done kept: 3600
            5738s JobFinished job: job0
              a attempt 2 Finished
        "#]],
    );
}

#[test]
fn a_refused_port_is_undone_drained_and_other_cubes_are_taken() {
    check(
        "broken x3/n1
         submit a 4x4x8 for=10m limit=1h
         run 1m
         show
         run 1h",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s SwitchRefused switch: x3 plan: plan0 n_ports: 1
            6s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 47 n_removed: 94 n_added: 0
            6s JobNotified job: job0 attempt: 1 why: StartFailed stage: Wiring
            6s CaseOpened case: case0 target: cube1/x/out/3 symptom: PortFailed severity: Critical
            6s Drained target: cube1/x/out/3 by: Case(case0)
            6s CaseMoved case: case0 state: Draining
            7s JobRequeued job: job0 why: Fault case: case0 not_before: 7.000s
            7s CaseMoved case: case0 state: Waiting
            7s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 1
            7s BlueprintAdopted plan: plan2 parent: None generation: g3 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            8s BlueprintDone plan: plan2 job: job0
            28s JobStarted job: job0 attempt: 2 waited: 23s
              a attempt 2 Running since: 28.000s on cube0 cube2
              out cube1/x/out/3 by Case(case0)
              case0 cube1/x/out/3 PortFailed Waiting
            628s JobStopped job: job0 attempt: 2 exit: Done kept: 600
            628s JobFinished job: job0
        "#]],
    );
}

#[test]
fn a_refused_undo_leaves_its_ports_at_fault() {
    check(
        "submit z 4x4x4 for=1m
         run 5m
         broken x3/n1
         submit a 4x4x8 for=10m limit=1h
         refuses y5
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            86s JobStopped job: job0 attempt: 1 exit: Done kept: 60
            86s JobFinished job: job0
            305s JobSubmitted job: job1
            305s JobPlaced job: job1 attempt: 1 n_parts: 2 kept_parts: 0
            305s BlueprintAdopted plan: plan1 parent: None generation: g3 job: job1 n_switches: 48 n_removed: 16 n_added: 64
            306s SwitchRefused switch: x3 plan: plan1 n_ports: 1
            306s BlueprintAdopted plan: plan2 parent: Some(plan1) generation: g4 job: job1 n_switches: 47 n_removed: 63 n_added: 16
            306s JobNotified job: job1 attempt: 1 why: StartFailed stage: Wiring
            306s CaseOpened case: case0 target: cube1/x/out/3 symptom: PortFailed severity: Critical
            306s Drained target: cube1/x/out/3 by: Case(case0)
            306s CaseMoved case: case0 state: Draining
            307s SwitchRefused switch: y5 plan: plan2 n_ports: 1
            307s CaseOpened case: case1 target: cube1/y/out/5 symptom: PortFailed severity: Critical
            307s Drained target: cube1/y/out/5 by: Case(case1)
            307s CaseMoved case: case1 state: Draining
            307s JobRequeued job: job1 why: Fault case: case0 not_before: 307.000s
            307s CaseMoved case: case0 state: Waiting
            307s CaseMoved case: case1 state: Waiting
            307s JobPlaced job: job1 attempt: 2 n_parts: 2 kept_parts: 1
            307s BlueprintAdopted plan: plan3 parent: None generation: g5 job: job1 n_switches: 48 n_removed: 16 n_added: 64
            308s SwitchRefused switch: y5 plan: plan3 n_ports: 1
            308s BlueprintAdopted plan: plan4 parent: Some(plan3) generation: g6 job: job1 n_switches: 47 n_removed: 63 n_added: 16
            308s JobNotified job: job1 attempt: 2 why: StartFailed stage: Wiring
            308s CaseOpened case: case2 target: cube2/y/out/5 symptom: PortFailed severity: Critical
            308s Drained target: cube2/y/out/5 by: Case(case2)
            308s CaseMoved case: case2 state: Draining
            309s JobRequeued job: job1 why: Fault case: case2 not_before: 309.000s
            309s CaseMoved case: case2 state: Waiting
            309s JobPlaced job: job1 attempt: 3 n_parts: 2 kept_parts: 1
            309s BlueprintAdopted plan: plan5 parent: None generation: g7 job: job1 n_switches: 48 n_removed: 16 n_added: 64
            310s SwitchRefused switch: y5 plan: plan5 n_ports: 1
            310s BlueprintAdopted plan: plan6 parent: Some(plan5) generation: g8 job: job1 n_switches: 47 n_removed: 63 n_added: 16
            310s JobNotified job: job1 attempt: 3 why: StartFailed stage: Wiring
            310s CaseOpened case: case3 target: y5 symptom: PortFailed severity: Critical
            310s Drained target: y5 by: Case(case3)
            310s CaseMoved case: case3 state: Draining
            310s Undrained target: cube1/y/out/5 by: Case(case1)
            310s CaseMoved case: case1 state: Closed
            310s Undrained target: cube2/y/out/5 by: Case(case2)
            310s CaseMoved case: case2 state: Closed
            311s JobRequeued job: job1 why: Fault case: case3 not_before: 311.000s
            311s CaseMoved case: case3 state: Waiting
              a attempt 3 Queued since: 305.000s not_before: 311.000s held: false
              z attempt 1 Finished
              out y5 by Case(case3)
              out cube1/x/out/3 by Case(case0)
              case3 y5 PortFailed Waiting
              case0 cube1/x/out/3 PortFailed Waiting
        "#]],
    );
}

#[test]
fn a_newer_generation_on_a_switch_is_read_back_and_planned_anew() {
    check(
        "ahead z5 700
         submit a 4x4x8 for=10m limit=1h
         run 1h",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s SwitchStale switch: z5 newest: g700
            7s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g701 job: job0 n_switches: 1 n_removed: 0 n_added: 2
            8s BlueprintDone plan: plan1 job: job0
            28s JobStarted job: job0 attempt: 1 waited: 23s
            628s JobStopped job: job0 attempt: 1 exit: Done kept: 600
            628s JobFinished job: job0
        "#]],
    );
}

#[test]
fn a_silent_switch_is_at_fault_after_three_asks() {
    check(
        "silent z5
         submit a 4x4x8 for=10m limit=1h
         run 5m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            95s CaseOpened case: case0 target: z5 symptom: Silent severity: Degraded
            95s Drained target: z5 by: Case(case0)
            95s CaseMoved case: case0 state: Waiting
            95s JobNotified job: job0 attempt: 1 why: Fault case: case0
            95s JobRequeued job: job0 why: Fault case: case0 not_before: 95.000s
              a attempt 1 Queued since: 5.000s not_before: 95.000s held: false
              out z5 by Case(case0)
              case0 z5 Silent Waiting
        "#]],
    );
}

#[test]
fn a_silent_cube_is_at_fault_and_another_is_taken() {
    check(
        "silent cube0
         submit a 4x4x4 for=10m limit=1h
         run 1h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            551s CaseOpened case: case0 target: cube0 symptom: Silent severity: Critical
            551s Drained target: cube0 by: Case(case0)
            551s CaseMoved case: case0 state: Draining
            551s JobNotified job: job0 attempt: 1 why: Fault case: case0
            551s JobRequeued job: job0 why: Fault case: case0 not_before: 551.000s
            551s CaseMoved case: case0 state: Waiting
            551s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            551s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            552s BlueprintDone plan: plan1 job: job0
            572s JobStarted job: job0 attempt: 2 waited: 567s
            1172s JobStopped job: job0 attempt: 2 exit: Done kept: 600
            1172s JobFinished job: job0
              a attempt 2 Finished
              out cube0 by Case(case0)
              case0 cube0 Silent Waiting
        "#]],
    );
}

#[test]
fn a_link_that_does_not_train_is_drained_and_the_job_goes_elsewhere() {
    check(
        "dark cube0/x/out/3
         submit a 4x4x4 for=10m limit=1h
         run 1h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            11s CaseOpened case: case0 target: cube0/x/out/3 symptom: LinkDown severity: Fatal
            11s Drained target: cube0/x/out/3 by: Case(case0)
            11s CaseMoved case: case0 state: Draining
            11s JobNotified job: job0 attempt: 1 why: Fault case: case0
            11s JobRequeued job: job0 why: Fault case: case0 not_before: 11.000s
            11s CaseMoved case: case0 state: Waiting
            11s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            11s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            12s BlueprintDone plan: plan1 job: job0
            32s JobStarted job: job0 attempt: 2 waited: 27s
            632s JobStopped job: job0 attempt: 2 exit: Done kept: 600
            632s JobFinished job: job0
              a attempt 2 Finished
              out cube0/x/out/3 by Case(case0)
              case0 cube0/x/out/3 LinkDown Waiting
        "#]],
    );
}

#[test]
fn a_chip_below_its_threshold_fails_the_intent_check() {
    check(
        "crew 10m
         bad cube0/chip1.0.0
         submit a 2x4x4 for=10m limit=1h
         submit b 4x4x4 for=10m limit=1h
         run 1h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job1 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job1
            7s CaseOpened case: case0 target: cube0/chip1.0.0 symptom: ChipFailed severity: Fatal
            7s Drained target: cube0/chip1.0.0 by: Case(case0)
            7s CaseMoved case: case0 state: Draining
            7s JobNotified job: job0 attempt: 1 why: Fault case: case0
            7s JobRequeued job: job0 why: Fault case: case0 not_before: 7.000s
            7s CaseMoved case: case0 state: Waiting
            7s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            22s JobStarted job: job0 attempt: 2 waited: 17s
            26s JobStarted job: job1 attempt: 1 waited: 21s
            67s CaseMoved case: case0 state: UnderRepair
            607s CaseMoved case: case0 state: Verifying
            619s CaseMoved case: case0 state: Probation until: 1219.000s
            622s JobStopped job: job0 attempt: 2 exit: Done kept: 600
            622s JobFinished job: job0
            626s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            626s JobFinished job: job1
            1219s Undrained target: cube0/chip1.0.0 by: Case(case0)
            1219s CaseMoved case: case0 state: Closed
              a attempt 2 Finished
              b attempt 1 Finished
        "#]],
    );
}

#[test]
fn a_latent_fault_is_found_end_to_end() {
    check(
        "sick cube0/chip1.2.3
         submit b 4x4x4 for=10m limit=1h
         run 1h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            23s CaseOpened case: case0 target: cube0/chip1.2.3 symptom: ExerciseFailed severity: Critical
            23s Drained target: cube0/chip1.2.3 by: Case(case0)
            23s CaseMoved case: case0 state: Draining
            23s JobNotified job: job0 attempt: 1 why: Fault case: case0
            23s JobRequeued job: job0 why: Fault case: case0 not_before: 23.000s
            23s CaseMoved case: case0 state: Waiting
            23s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            23s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            24s BlueprintDone plan: plan1 job: job0
            44s JobStarted job: job0 attempt: 2 waited: 39s
            644s JobStopped job: job0 attempt: 2 exit: Done kept: 600
            644s JobFinished job: job0
              b attempt 2 Finished
              out cube0/chip1.2.3 by Case(case0)
              case0 cube0/chip1.2.3 ExerciseFailed Waiting
        "#]],
    );
}

#[test]
fn a_swapped_fibre_is_discovered_and_never_run_on() {
    check(
        "cross cube0/x/out/3 cube1/x/out/3
         submit b 4x4x8 for=10m limit=1h
         run 1h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job0
            24s DiscoveryDiffered job: job0 n_ports: 4 n_chips_lost: 0
            24s CaseOpened case: case0 target: cube0/x/in/3 symptom: Miswired severity: Critical
            24s Drained target: cube0/x/in/3 by: Case(case0)
            24s CaseMoved case: case0 state: Draining
            24s JobNotified job: job0 attempt: 1 why: Fault case: case0
            24s JobRequeued job: job0 why: Fault case: case0 not_before: 24.000s
            24s CaseMoved case: case0 state: Waiting
            24s CaseOpened case: case1 target: cube0/x/out/3 symptom: Miswired severity: Critical
            24s Drained target: cube0/x/out/3 by: Case(case1)
            24s CaseMoved case: case1 state: Draining
            24s CaseMoved case: case1 state: Waiting
            24s CaseOpened case: case2 target: cube1/x/in/3 symptom: Miswired severity: Critical
            24s Drained target: cube1/x/in/3 by: Case(case2)
            24s CaseMoved case: case2 state: Draining
            24s CaseMoved case: case2 state: Waiting
            24s CaseOpened case: case3 target: cube1/x/out/3 symptom: Miswired severity: Critical
            24s Drained target: cube1/x/out/3 by: Case(case3)
            24s CaseMoved case: case3 state: Draining
            24s CaseMoved case: case3 state: Waiting
            24s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 0
            24s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            25s BlueprintDone plan: plan1 job: job0
            45s JobStarted job: job0 attempt: 2 waited: 40s
            645s JobStopped job: job0 attempt: 2 exit: Done kept: 600
            645s JobFinished job: job0
              b attempt 2 Finished
              out cube0/x/out/3 by Case(case1)
              out cube0/x/in/3 by Case(case0)
              out cube1/x/out/3 by Case(case3)
              out cube1/x/in/3 by Case(case2)
              case1 cube0/x/out/3 Miswired Waiting
              case0 cube0/x/in/3 Miswired Waiting
              case3 cube1/x/out/3 Miswired Waiting
              case2 cube1/x/in/3 Miswired Waiting
        "#]],
    );
}

#[test]
fn observing_places_on_what_only_warns_and_says_so() {
    check(
        "level observe
         bad cube0/chip1.2.3
         submit b 4x4x4 for=10m limit=1h
         run 2m
         report cube0/m00 machine_down
         run 1m
         show
         level quarantine
         show
         level drain
         run 1m
         show
         level repair
         show",
        expect![[r#"
            5s LevelSet level: Observe by: "ops"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            13s CaseOpened case: case0 target: cube0/chip1.2.3 symptom: ChipFailed severity: Fatal
            26s JobStarted job: job0 attempt: 1 waited: 21s
            125s CaseOpened case: case1 target: cube0/m00 symptom: MachineDown severity: Fatal
              b attempt 1 Running since: 26.000s on cube0
              case1 cube0/m00 MachineDown Observed
              case0 cube0/chip1.2.3 ChipFailed Observed
            185s LevelSet level: Quarantine by: "ops"
            185s Drained target: cube0/m00 by: Case(case1)
            185s CaseMoved case: case1 state: Draining
            185s Drained target: cube0/chip1.2.3 by: Case(case0)
            185s CaseMoved case: case0 state: Draining
              b attempt 1 Running since: 26.000s on cube0
              out cube0/m00 by Case(case1)
              out cube0/chip1.2.3 by Case(case0)
              case1 cube0/m00 MachineDown Draining
              case0 cube0/chip1.2.3 ChipFailed Draining
            185s LevelSet level: Drain by: "ops"
            185s JobNotified job: job0 attempt: 1 why: Fault case: case1
            186s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            186s JobRequeued job: job0 why: Fault case: case1 not_before: 186.000s
            186s CaseMoved case: case1 state: Waiting
            186s CaseMoved case: case0 state: Waiting
            186s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            186s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            187s BlueprintDone plan: plan1 job: job0
            207s JobStarted job: job0 attempt: 2 waited: 202s
              b attempt 2 Running since: 207.000s on cube1
              out cube0/m00 by Case(case1)
              out cube0/chip1.2.3 by Case(case0)
              case1 cube0/m00 MachineDown Waiting
              case0 cube0/chip1.2.3 ChipFailed Waiting
            245s LevelSet level: Repair by: "ops"
              b attempt 2 Running since: 207.000s on cube1
              out cube0/m00 by Case(case1)
              out cube0/chip1.2.3 by Case(case0)
              case1 cube0/m00 MachineDown Waiting
              case0 cube0/chip1.2.3 ChipFailed Waiting
        "#]],
    );
}
