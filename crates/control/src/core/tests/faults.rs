//! Devices, links and parts that misbehave, from the first sign to their return.

use expect_test::expect;

use super::world::check;

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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 144
                6 BlueprintDone plan: plan0 job: job0
               26 JobStarted job: job0 attempt: 1 waited: 21s
              a attempt 1 Running since: 26.000s on cube0 cube1 cube2
              905 CaseOpened case: case0 target: cube1/m03 symptom: MachineDown severity: Fatal
              905 Drained target: cube1/m03 by: Case(case0)
              905 CaseMoved case: case0 state: Draining
              905 JobNotified job: job0 attempt: 1 why: Fault case: case0
              906 JobStopped job: job0 attempt: 1 exit: Told kept: 600
              906 JobRequeued job: job0 why: Fault case: case0 not_before: 906.000s
              906 CaseMoved case: case0 state: Waiting
              906 JobPlaced job: job0 attempt: 2 n_parts: 3 kept_parts: 2
              906 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 32 n_added: 64
              907 BlueprintDone plan: plan1 job: job0
              927 JobStarted job: job0 attempt: 2 waited: 922s
              a attempt 2 Running since: 927.000s on cube0 cube3 cube2
              out cube1/m03 by Case(case0)
              case0 cube1/m03 MachineDown Waiting
              966 CaseMoved case: case0 state: UnderRepair
             1506 CaseMoved case: case0 state: Verifying
             1518 CaseMoved case: case0 state: Probation until: 2118.000s
             2118 Undrained target: cube1/m03 by: Case(case0)
             2118 CaseMoved case: case0 state: Closed
             3927 JobStopped job: job0 attempt: 2 exit: Done kept: 3600
             3927 JobFinished job: job0
              a attempt 2 Finished
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 4 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 192
                6 BlueprintDone plan: plan0 job: job0
               26 JobStarted job: job0 attempt: 1 waited: 21s
              905 CaseOpened case: case0 target: cube1 symptom: MachineDown severity: Fatal
              905 Drained target: cube1 by: Case(case0)
              905 CaseMoved case: case0 state: Draining
              905 JobNotified job: job0 attempt: 1 why: Fault case: case0
              906 JobStopped job: job0 attempt: 1 exit: Told kept: 600
              906 JobRequeued job: job0 why: Fault case: case0 not_before: 906.000s
              906 CaseMoved case: case0 state: Waiting
              906 JobRequeued job: job0 why: Lost not_before: 906.000s
              966 CaseMoved case: case0 state: UnderRepair
              a attempt 1 Queued since: 5.000s not_before: 906.000s held: false
              out cube1 by Case(case0)
              case0 cube1 MachineDown UnderRepair
             2106 CaseMoved case: case0 state: Verifying
             2118 CaseMoved case: case0 state: Probation until: 2718.000s
             2718 Undrained target: cube1 by: Case(case0)
             2718 CaseMoved case: case0 state: Closed
             2718 JobPlaced job: job0 attempt: 2 n_parts: 4 kept_parts: 0
             2718 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 0 n_removed: 0 n_added: 0
             2718 BlueprintDone plan: plan1 job: job0
             2738 JobStarted job: job0 attempt: 2 waited: 2733s
             5738 JobStopped job: job0 attempt: 2 exit: Done kept: 3600
             5738 JobFinished job: job0
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
                6 SwitchRefused switch: x3 plan: plan0 n_ports: 1
                6 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 47 n_removed: 94 n_added: 0
                6 JobNotified job: job0 attempt: 1 why: StartFailed stage: Wiring
                6 CaseOpened case: case0 target: cube1/x/out/3 symptom: PortFailed severity: Critical
                6 Drained target: cube1/x/out/3 by: Case(case0)
                6 CaseMoved case: case0 state: Draining
                7 JobRequeued job: job0 why: Fault case: case0 not_before: 7.000s
                7 CaseMoved case: case0 state: Waiting
                7 JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 1
                7 BlueprintAdopted plan: plan2 parent: None generation: g3 job: job0 n_switches: 48 n_removed: 0 n_added: 96
                8 BlueprintDone plan: plan2 job: job0
               28 JobStarted job: job0 attempt: 2 waited: 23s
              a attempt 2 Running since: 28.000s on cube0 cube2
              out cube1/x/out/3 by Case(case0)
              case0 cube1/x/out/3 PortFailed Waiting
              628 JobStopped job: job0 attempt: 2 exit: Done kept: 600
              628 JobFinished job: job0
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
                6 BlueprintDone plan: plan0 job: job0
               26 JobStarted job: job0 attempt: 1 waited: 21s
               86 JobStopped job: job0 attempt: 1 exit: Done kept: 60
               86 JobFinished job: job0
              305 JobSubmitted job: job1
              305 JobPlaced job: job1 attempt: 1 n_parts: 2 kept_parts: 0
              305 BlueprintAdopted plan: plan1 parent: None generation: g2 job: job1 n_switches: 48 n_removed: 16 n_added: 64
              306 SwitchRefused switch: x3 plan: plan1 n_ports: 1
              306 BlueprintAdopted plan: plan2 parent: Some(plan1) generation: g3 job: job1 n_switches: 47 n_removed: 63 n_added: 16
              306 JobNotified job: job1 attempt: 1 why: StartFailed stage: Wiring
              306 CaseOpened case: case0 target: cube1/x/out/3 symptom: PortFailed severity: Critical
              306 Drained target: cube1/x/out/3 by: Case(case0)
              306 CaseMoved case: case0 state: Draining
              307 SwitchRefused switch: y5 plan: plan2 n_ports: 1
              307 CaseOpened case: case1 target: cube1/y/out/5 symptom: PortFailed severity: Critical
              307 Drained target: cube1/y/out/5 by: Case(case1)
              307 CaseMoved case: case1 state: Draining
              307 JobRequeued job: job1 why: Fault case: case0 not_before: 307.000s
              307 CaseMoved case: case0 state: Waiting
              307 CaseMoved case: case1 state: Waiting
              307 JobPlaced job: job1 attempt: 2 n_parts: 2 kept_parts: 1
              307 BlueprintAdopted plan: plan3 parent: None generation: g4 job: job1 n_switches: 48 n_removed: 16 n_added: 64
              308 SwitchRefused switch: y5 plan: plan3 n_ports: 1
              308 BlueprintAdopted plan: plan4 parent: Some(plan3) generation: g5 job: job1 n_switches: 47 n_removed: 63 n_added: 16
              308 JobNotified job: job1 attempt: 2 why: StartFailed stage: Wiring
              308 CaseOpened case: case2 target: cube2/y/out/5 symptom: PortFailed severity: Critical
              308 Drained target: cube2/y/out/5 by: Case(case2)
              308 CaseMoved case: case2 state: Draining
              309 JobRequeued job: job1 why: Fault case: case2 not_before: 309.000s
              309 CaseMoved case: case2 state: Waiting
              309 JobPlaced job: job1 attempt: 3 n_parts: 2 kept_parts: 1
              309 BlueprintAdopted plan: plan5 parent: None generation: g6 job: job1 n_switches: 48 n_removed: 16 n_added: 64
              310 SwitchRefused switch: y5 plan: plan5 n_ports: 1
              310 BlueprintAdopted plan: plan6 parent: Some(plan5) generation: g7 job: job1 n_switches: 47 n_removed: 63 n_added: 16
              310 JobNotified job: job1 attempt: 3 why: StartFailed stage: Wiring
              310 CaseOpened case: case3 target: cube3/y/out/5 symptom: PortFailed severity: Critical
              310 Drained target: cube3/y/out/5 by: Case(case3)
              310 CaseMoved case: case3 state: Draining
              311 JobRequeued job: job1 why: Fault case: case3 not_before: 311.000s
              311 CaseMoved case: case3 state: Waiting
              311 JobRequeued job: job1 why: Lost not_before: 311.000s
              a attempt 3 Queued since: 305.000s not_before: 311.000s held: false
              z attempt 1 Finished
              out cube1/x/out/3 by Case(case0)
              out cube1/y/out/5 by Case(case1)
              out cube2/y/out/5 by Case(case2)
              out cube3/y/out/5 by Case(case3)
              case0 cube1/x/out/3 PortFailed Waiting
              case1 cube1/y/out/5 PortFailed Waiting
              case2 cube2/y/out/5 PortFailed Waiting
              case3 cube3/y/out/5 PortFailed Waiting
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
                6 SwitchStale switch: z5 newest: g700
                7 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g701 job: job0 n_switches: 1 n_removed: 0 n_added: 2
                8 BlueprintDone plan: plan1 job: job0
               28 JobStarted job: job0 attempt: 1 waited: 23s
              628 JobStopped job: job0 attempt: 1 exit: Done kept: 600
              628 JobFinished job: job0
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
               95 CaseOpened case: case0 target: z5 symptom: Silent severity: Critical
               95 Drained target: z5 by: Case(case0)
               95 CaseMoved case: case0 state: Draining
               95 JobNotified job: job0 attempt: 1 why: Fault case: case0
               95 JobRequeued job: job0 why: Fault case: case0 not_before: 95.000s
               95 CaseMoved case: case0 state: Waiting
               95 JobRequeued job: job0 why: Lost not_before: 95.000s
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
                6 BlueprintDone plan: plan0 job: job0
              551 CaseOpened case: case0 target: cube0 symptom: Silent severity: Critical
              551 Drained target: cube0 by: Case(case0)
              551 CaseMoved case: case0 state: Draining
              551 JobNotified job: job0 attempt: 1 why: Fault case: case0
              551 JobRequeued job: job0 why: Fault case: case0 not_before: 551.000s
              551 CaseMoved case: case0 state: Waiting
              551 JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
              551 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 48
              552 BlueprintDone plan: plan1 job: job0
              572 JobStarted job: job0 attempt: 2 waited: 567s
             1172 JobStopped job: job0 attempt: 2 exit: Done kept: 600
             1172 JobFinished job: job0
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
                6 BlueprintDone plan: plan0 job: job0
               11 CaseOpened case: case0 target: cube0/x/out/3 symptom: LinkDown severity: Fatal
               11 Drained target: cube0/x/out/3 by: Case(case0)
               11 CaseMoved case: case0 state: Draining
               11 JobNotified job: job0 attempt: 1 why: Fault case: case0
               11 JobRequeued job: job0 why: Fault case: case0 not_before: 11.000s
               11 CaseMoved case: case0 state: Waiting
               11 JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
               11 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 48
               12 BlueprintDone plan: plan1 job: job0
               32 JobStarted job: job0 attempt: 2 waited: 27s
              632 JobStopped job: job0 attempt: 2 exit: Done kept: 600
              632 JobFinished job: job0
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
                5 JobSubmitted job: job1
                5 JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job1 n_switches: 48 n_removed: 0 n_added: 48
                6 BlueprintDone plan: plan0 job: job1
                7 CaseOpened case: case0 target: cube0/chip1.0.0 symptom: ChipFailed severity: Fatal
                7 Drained target: cube0/chip1.0.0 by: Case(case0)
                7 CaseMoved case: case0 state: Draining
                7 JobNotified job: job0 attempt: 1 why: Fault case: case0
                7 CaseMoved case: case0 state: Waiting
                7 JobRequeued job: job0 why: Fault case: case0 not_before: 7.000s
                7 JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
               22 JobStarted job: job0 attempt: 2 waited: 17s
               26 JobStarted job: job1 attempt: 1 waited: 21s
               67 CaseMoved case: case0 state: UnderRepair
              607 CaseMoved case: case0 state: Verifying
              619 CaseMoved case: case0 state: Probation until: 1219.000s
              622 JobStopped job: job0 attempt: 2 exit: Done kept: 600
              622 JobFinished job: job0
              626 JobStopped job: job1 attempt: 1 exit: Done kept: 600
              626 JobFinished job: job1
             1219 Undrained target: cube0/chip1.0.0 by: Case(case0)
             1219 CaseMoved case: case0 state: Closed
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
                6 BlueprintDone plan: plan0 job: job0
               23 CaseOpened case: case0 target: cube0/chip1.2.3 symptom: ExerciseFailed severity: Critical
               23 Drained target: cube0/chip1.2.3 by: Case(case0)
               23 CaseMoved case: case0 state: Draining
               23 JobNotified job: job0 attempt: 1 why: Fault case: case0
               23 JobRequeued job: job0 why: Fault case: case0 not_before: 23.000s
               23 CaseMoved case: case0 state: Waiting
               23 JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
               23 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 48
               24 BlueprintDone plan: plan1 job: job0
               44 JobStarted job: job0 attempt: 2 waited: 39s
              644 JobStopped job: job0 attempt: 2 exit: Done kept: 600
              644 JobFinished job: job0
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
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
                6 BlueprintDone plan: plan0 job: job0
               24 DiscoveryDiffered job: job0 n_ports: 2
               24 CaseOpened case: case0 target: cube0/x/in/3 symptom: Miswired severity: Critical
               24 Drained target: cube0/x/in/3 by: Case(case0)
               24 CaseMoved case: case0 state: Draining
               24 JobNotified job: job0 attempt: 1 why: Fault case: case0
               24 JobRequeued job: job0 why: Fault case: case0 not_before: 24.000s
               24 CaseMoved case: case0 state: Waiting
               24 CaseOpened case: case1 target: cube0/x/out/3 symptom: Miswired severity: Critical
               24 Drained target: cube0/x/out/3 by: Case(case1)
               24 CaseMoved case: case1 state: Draining
               24 CaseMoved case: case1 state: Waiting
               24 JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 1
               24 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 32 n_added: 64
               25 BlueprintDone plan: plan1 job: job0
               43 DiscoveryDiffered job: job0 n_ports: 2
               43 CaseOpened case: case2 target: cube1/x/in/3 symptom: Miswired severity: Critical
               43 Drained target: cube1/x/in/3 by: Case(case2)
               43 CaseMoved case: case2 state: Draining
               43 JobNotified job: job0 attempt: 2 why: Fault case: case2
               43 JobRequeued job: job0 why: Fault case: case2 not_before: 43.000s
               43 CaseMoved case: case2 state: Waiting
               43 CaseOpened case: case3 target: cube1/x/out/3 symptom: Miswired severity: Critical
               43 Drained target: cube1/x/out/3 by: Case(case3)
               43 CaseMoved case: case3 state: Draining
               43 CaseMoved case: case3 state: Waiting
               43 JobPlaced job: job0 attempt: 3 n_parts: 2 kept_parts: 1
               43 BlueprintAdopted plan: plan2 parent: Some(plan1) generation: g3 job: job0 n_switches: 48 n_removed: 32 n_added: 64
               44 BlueprintDone plan: plan2 job: job0
               64 JobStarted job: job0 attempt: 3 waited: 59s
              664 JobStopped job: job0 attempt: 3 exit: Done kept: 600
              664 JobFinished job: job0
              b attempt 3 Finished
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
                5 LevelSet level: Observe by: "ops"
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
                6 BlueprintDone plan: plan0 job: job0
               13 CaseOpened case: case0 target: cube0/chip1.2.3 symptom: ChipFailed severity: Fatal
               26 JobStarted job: job0 attempt: 1 waited: 21s
              125 CaseOpened case: case1 target: cube0/m00 symptom: MachineDown severity: Fatal
              b attempt 1 Running since: 26.000s on cube0
              case1 cube0/m00 MachineDown Observed
              case0 cube0/chip1.2.3 ChipFailed Observed
              185 LevelSet level: Quarantine by: "ops"
              185 Drained target: cube0/m00 by: Case(case1)
              185 CaseMoved case: case1 state: Draining
              185 Drained target: cube0/chip1.2.3 by: Case(case0)
              185 CaseMoved case: case0 state: Draining
              b attempt 1 Running since: 26.000s on cube0
              out cube0/m00 by Case(case1)
              out cube0/chip1.2.3 by Case(case0)
              case1 cube0/m00 MachineDown Draining
              case0 cube0/chip1.2.3 ChipFailed Draining
              185 LevelSet level: Drain by: "ops"
              185 JobNotified job: job0 attempt: 1 why: Fault case: case1
              186 JobStopped job: job0 attempt: 1 exit: Told kept: 0
              186 JobRequeued job: job0 why: Fault case: case1 not_before: 186.000s
              186 CaseMoved case: case1 state: Waiting
              186 CaseMoved case: case0 state: Waiting
              186 JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
              186 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 48
              187 BlueprintDone plan: plan1 job: job0
              207 JobStarted job: job0 attempt: 2 waited: 202s
              b attempt 2 Running since: 207.000s on cube1
              out cube0/m00 by Case(case1)
              out cube0/chip1.2.3 by Case(case0)
              case1 cube0/m00 MachineDown Waiting
              case0 cube0/chip1.2.3 ChipFailed Waiting
              245 LevelSet level: Repair by: "ops"
              b attempt 2 Running since: 207.000s on cube1
              out cube0/m00 by Case(case1)
              out cube0/chip1.2.3 by Case(case0)
              case1 cube0/m00 MachineDown Waiting
              case0 cube0/chip1.2.3 ChipFailed Waiting
        "#]],
    );
}

#[test]
fn a_drained_link_holds_while_its_machine_serves_shapes_that_do_not_use_it() {
    check(
        "drain ann cube0/chip0.0.0/+x
         drain ann cube1
         drain ann cube2
         drain ann cube3
         submit whole 4x4x4 for=10m limit=1h
         submit flat 1x1x1 for=10m limit=1h
         submit pair 2x2x1 for=10m limit=1h
         run 1m
         show
         restart
         run 1m
         show
         undrain bob cube0/chip0.0.0/+x
         undrain ann cube0/chip1.0.0/-x
         run 20m
         show",
        expect![[r#"
                5 Drained target: cube0/chip0.0.0/+x by: Person("ann")
                5 Drained target: cube1 by: Person("ann")
                5 Drained target: cube2 by: Person("ann")
                5 Drained target: cube3 by: Person("ann")
                5 JobSubmitted job: job0
                5 JobSubmitted job: job1
                5 JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
                5 JobSubmitted job: job2
                5 JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
               20 JobStarted job: job1 attempt: 1 waited: 15s
               20 JobStarted job: job2 attempt: 1 waited: 15s
              flat attempt 1 Running since: 20.000s on cube0:1
              pair attempt 1 Running since: 20.000s on cube0:330000
              whole attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              out cube1 by Person("ann")
              out cube2 by Person("ann")
              out cube3 by Person("ann")
              out cube0/chip0.0.0/+x by Person("ann")
              flat attempt 1 Running since: 20.000s on cube0:1
              pair attempt 1 Running since: 20.000s on cube0:330000
              whole attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              out cube1 by Person("ann")
              out cube2 by Person("ann")
              out cube3 by Person("ann")
              out cube0/chip0.0.0/+x by Person("ann")
              refused: cube0/chip0.0.0/+x is not drained by bob; it is drained by ann
              125 CaseOpened case: case0 target: cube0/chip0.0.0/+x symptom: Returned severity: Critical
              125 Drained target: cube0/chip0.0.0/+x by: Case(case0)
              125 CaseMoved case: case0 state: Draining
              125 CaseMoved case: case0 state: Verifying
              125 Undrained target: cube0/chip0.0.0/+x by: Person("ann")
              137 CaseMoved case: case0 state: Probation until: 737.000s
              620 JobStopped job: job1 attempt: 1 exit: Done kept: 600
              620 JobFinished job: job1
              620 JobStopped job: job2 attempt: 1 exit: Done kept: 600
              620 JobFinished job: job2
              737 Undrained target: cube0/chip0.0.0/+x by: Case(case0)
              737 CaseMoved case: case0 state: Closed
              737 JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
              737 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
              738 BlueprintDone plan: plan0 job: job0
              758 JobStarted job: job0 attempt: 1 waited: 753s
              flat attempt 1 Finished
              pair attempt 1 Finished
              whole attempt 1 Running since: 758.000s on cube0
              out cube1 by Person("ann")
              out cube2 by Person("ann")
              out cube3 by Person("ann")
        "#]],
    );
}

#[test]
fn a_drain_by_somebody_else_outlives_the_repair() {
    check(
        "crew 10m
         drain ann cube0
         report cube0/m00 machine_down
         drain bob cube0
         run 1h
         show
         undrain ann cube0
         show
         undrain bob cube0
         run 1m
         show
         run 20m
         show",
        expect![[r#"
                5 Drained target: cube0 by: Person("ann")
                5 CaseOpened case: case0 target: cube0/m00 symptom: MachineDown severity: Fatal
                5 Drained target: cube0/m00 by: Case(case0)
                5 CaseMoved case: case0 state: Draining
                5 CaseMoved case: case0 state: Waiting
                5 Drained target: cube0 by: Person("bob")
               65 CaseMoved case: case0 state: UnderRepair
              605 CaseMoved case: case0 state: Verifying
              617 CaseMoved case: case0 state: Probation until: 1217.000s
             1217 Undrained target: cube0/m00 by: Case(case0)
             1217 CaseMoved case: case0 state: Closed
              out cube0 by Person("ann"), Person("bob")
             3605 Undrained target: cube0 by: Person("ann")
              out cube0 by Person("bob")
             3605 CaseOpened case: case1 target: cube0 symptom: Returned severity: Critical
             3605 Drained target: cube0 by: Case(case1)
             3605 CaseMoved case: case1 state: Draining
             3605 CaseMoved case: case1 state: Verifying
             3605 Undrained target: cube0 by: Person("bob")
             3617 CaseMoved case: case1 state: Probation until: 4217.000s
              out cube0 by Case(case1)
              case1 cube0 Returned Probation until: 4217.000s
             4217 Undrained target: cube0 by: Case(case1)
             4217 CaseMoved case: case1 state: Closed
        "#]],
    );
}

#[test]
fn a_part_that_fails_its_verification_goes_back_to_repair() {
    check(
        "report cube0/m00 machine_down
         take bob case0
         finish ann case0
         bad cube0/chip0.0.0
         finish bob case0
         run 1m
         show
         take bob case0
         heal cube0/chip0.0.0
         finish bob case0
         run 5m
         report cube0/m00 machine_down
         show
         take bob case0
         finish bob case0
         run 20m
         show",
        expect![[r#"
                5 CaseOpened case: case0 target: cube0/m00 symptom: MachineDown severity: Fatal
                5 Drained target: cube0/m00 by: Case(case0)
                5 CaseMoved case: case0 state: Draining
                5 CaseMoved case: case0 state: Waiting
                5 CaseMoved case: case0 state: UnderRepair
              refused: case0 was taken by bob
                5 CaseMoved case: case0 state: Verifying
                7 CaseMoved case: case0 state: Waiting
              out cube0/m00 by Case(case0)
              case0 cube0/m00 MachineDown Waiting
               65 CaseMoved case: case0 state: UnderRepair
               65 CaseMoved case: case0 state: Verifying
               77 CaseMoved case: case0 state: Probation until: 677.000s
              365 CaseMoved case: case0 state: Waiting
              out cube0/m00 by Case(case0)
              case0 cube0/m00 MachineDown Waiting
              365 CaseMoved case: case0 state: UnderRepair
              365 CaseMoved case: case0 state: Verifying
              377 CaseMoved case: case0 state: Probation until: 977.000s
              977 Undrained target: cube0/m00 by: Case(case0)
              977 CaseMoved case: case0 state: Closed
        "#]],
    );
}

#[test]
fn the_breaker_stops_what_would_take_out_too_much() {
    check(
        "report cube0 machine_down
         report cube1 machine_down
         report cube2 machine_down
         show
         take ann case2
         show",
        expect![[r#"
                5 CaseOpened case: case0 target: cube0 symptom: MachineDown severity: Fatal
                5 Drained target: cube0 by: Case(case0)
                5 CaseMoved case: case0 state: Draining
                5 CaseMoved case: case0 state: Waiting
                5 CaseOpened case: case1 target: cube1 symptom: MachineDown severity: Fatal
                5 Drained target: cube1 by: Case(case1)
                5 CaseMoved case: case1 state: Draining
                5 CaseMoved case: case1 state: Waiting
                5 CaseOpened case: case2 target: cube2 symptom: MachineDown severity: Fatal
                5 BreakerTripped case: case2
              out cube0 by Case(case0)
              out cube1 by Case(case1)
              case0 cube0 MachineDown Waiting
              case1 cube1 MachineDown Waiting
              case2 cube2 MachineDown Observed
                5 Drained target: cube2 by: Case(case2)
                5 CaseMoved case: case2 state: Draining
                5 CaseMoved case: case2 state: UnderRepair
              out cube0 by Case(case0)
              out cube1 by Case(case1)
              out cube2 by Case(case2)
              case0 cube0 MachineDown Waiting
              case1 cube1 MachineDown Waiting
              case2 cube2 MachineDown UnderRepair
        "#]],
    );
}

#[test]
fn a_symptom_that_passes_closes_by_itself_and_rises_by_repetition() {
    check(
        "level observe
         report cube0/x/out/3 link_flapped
         run 5m
         report cube0/x/out/3 link_flapped
         run 11m
         report cube0/x/out/3 link_flapped
         report cube0/x/out/3 link_flapped
         report cube0/x/out/3 link_flapped
         run 1h
         show",
        expect![[r#"
                5 LevelSet level: Observe by: "ops"
                5 CaseOpened case: case0 target: cube0/x/out/3 symptom: LinkFlapped severity: Degraded
              905 CaseMoved case: case0 state: Closed
              965 CaseOpened case: case1 target: cube0/x/out/3 symptom: LinkFlapped severity: Degraded
              965 CaseGrew case: case1 severity: Critical n_seen: 3
              case1 cube0/x/out/3 LinkFlapped Observed
        "#]],
    );
}

#[test]
fn maintenance_goes_in_waves_within_its_budget() {
    check(
        "submit a 4x4x4 for=20m limit=1h
         run 1m
         maintain 2 10m cube0 cube1 cube2 x5
         run 5m
         show
         run 1h
         show",
        expect![[r#"
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
                6 BlueprintDone plan: plan0 job: job0
               26 JobStarted job: job0 attempt: 1 waited: 21s
               65 CaseOpened case: case0 target: cube0 symptom: Planned severity: Critical
               65 Drained target: cube0 by: Case(case0)
               65 CaseMoved case: case0 state: Draining
               65 JobNotified job: job0 attempt: 1 why: Fault case: case0
               65 CaseOpened case: case1 target: cube1 symptom: Planned severity: Critical
               65 Drained target: cube1 by: Case(case1)
               65 CaseMoved case: case1 state: Draining
               65 CaseMoved case: case1 state: UnderRepair
               65 MaintenanceMoved n_waiting: 2 n_at_work: 2 n_done: 0
               70 JobStopped job: job0 attempt: 1 exit: Told kept: 44
               70 JobRequeued job: job0 why: Fault case: case0 not_before: 70.000s
               70 CaseMoved case: case0 state: UnderRepair
               70 JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
               70 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 0 n_added: 48
               71 BlueprintDone plan: plan1 job: job0
               91 JobStarted job: job0 attempt: 2 waited: 86s
              a attempt 2 Running since: 91.000s on cube2
              out cube0 by Case(case0)
              out cube1 by Case(case1)
              case0 cube0 Planned UnderRepair
              case1 cube1 Planned UnderRepair
              665 CaseMoved case: case1 state: Verifying
              670 CaseMoved case: case0 state: Verifying
              677 CaseMoved case: case1 state: Probation until: 1277.000s
              682 CaseMoved case: case0 state: Probation until: 1282.000s
             1247 JobStopped job: job0 attempt: 2 exit: Done kept: 1200
             1247 JobFinished job: job0
             1277 Undrained target: cube1 by: Case(case1)
             1277 CaseMoved case: case1 state: Closed
             1277 CaseOpened case: case2 target: cube2 symptom: Planned severity: Critical
             1277 Drained target: cube2 by: Case(case2)
             1277 CaseMoved case: case2 state: Draining
             1277 CaseMoved case: case2 state: UnderRepair
             1277 MaintenanceMoved n_waiting: 1 n_at_work: 2 n_done: 1
             1282 Undrained target: cube0 by: Case(case0)
             1282 CaseMoved case: case0 state: Closed
             1282 CaseOpened case: case3 target: x5 symptom: Planned severity: Critical
             1282 Drained target: x5 by: Case(case3)
             1282 CaseMoved case: case3 state: Draining
             1282 CaseMoved case: case3 state: UnderRepair
             1282 MaintenanceMoved n_waiting: 0 n_at_work: 2 n_done: 2
             1877 CaseMoved case: case2 state: Verifying
             1882 CaseMoved case: case3 state: Verifying
             1883 CaseMoved case: case3 state: Probation until: 2483.000s
             1889 CaseMoved case: case2 state: Probation until: 2489.000s
             2483 Undrained target: x5 by: Case(case3)
             2483 CaseMoved case: case3 state: Closed
             2483 MaintenanceMoved n_waiting: 0 n_at_work: 1 n_done: 3
             2489 Undrained target: cube2 by: Case(case2)
             2489 CaseMoved case: case2 state: Closed
             2489 MaintenanceMoved n_waiting: 0 n_at_work: 0 n_done: 4
              a attempt 2 Finished
        "#]],
    );
}

#[test]
fn a_drain_evicts_with_notice_and_the_job_goes_on_elsewhere() {
    check(
        "submit a 4x4x8 for=30m limit=1h
         run 15m
         drain ann cube1
         run 2m
         show
         run 1h",
        expect![[r#"
                5 JobSubmitted job: job0
                5 JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
                5 BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
                6 BlueprintDone plan: plan0 job: job0
               26 JobStarted job: job0 attempt: 1 waited: 21s
              905 Drained target: cube1 by: Person("ann")
              905 JobNotified job: job0 attempt: 1 why: Drained target: cube1
              910 JobStopped job: job0 attempt: 1 exit: Told kept: 884
              910 JobRequeued job: job0 why: Drained target: cube1 not_before: 910.000s
              910 JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 1
              910 BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 48 n_removed: 32 n_added: 64
              911 BlueprintDone plan: plan1 job: job0
              931 JobStarted job: job0 attempt: 2 waited: 926s
              a attempt 2 Running since: 931.000s on cube0 cube2
              out cube1 by Person("ann")
             1847 JobStopped job: job0 attempt: 2 exit: Done kept: 1800
             1847 JobFinished job: job0
        "#]],
    );
}
