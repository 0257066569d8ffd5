//! Drains, repairs, maintenance and the way back into the pool.

use expect_test::expect;

use super::world::{check, check_on, pods};

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
            5s Drained target: cube0/chip0.0.0/+x by: Person("ann")
            5s Drained target: cube1 by: Person("ann")
            5s Drained target: cube2 by: Person("ann")
            5s Drained target: cube3 by: Person("ann")
            5s JobSubmitted job: job0
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            20s JobStarted job: job1 attempt: 1 waited: 15s
            20s JobStarted job: job2 attempt: 1 waited: 15s
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
            125s CaseOpened case: case0 target: cube0/chip0.0.0/+x symptom: Returned severity: Critical
            125s Drained target: cube0/chip0.0.0/+x by: Case(case0)
            125s CaseMoved case: case0 state: Draining
            125s CaseMoved case: case0 state: Verifying
            125s Undrained target: cube0/chip0.0.0/+x by: Person("ann")
            137s CaseMoved case: case0 state: Probation until: 737.000s
            620s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            620s JobFinished job: job1
            620s JobStopped job: job2 attempt: 1 exit: Done kept: 600
            620s JobFinished job: job2
            737s Undrained target: cube0/chip0.0.0/+x by: Case(case0)
            737s CaseMoved case: case0 state: Closed
            737s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            737s BlueprintAdopted plan: plan0 parent: None generation: g3 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            738s BlueprintDone plan: plan0 job: job0
            758s JobStarted job: job0 attempt: 1 waited: 753s
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
            5s Drained target: cube0 by: Person("ann")
            5s CaseOpened case: case0 target: cube0/m00 symptom: MachineDown severity: Fatal
            5s Drained target: cube0/m00 by: Case(case0)
            5s CaseMoved case: case0 state: Draining
            5s CaseMoved case: case0 state: Waiting
            5s Drained target: cube0 by: Person("bob")
            65s CaseMoved case: case0 state: UnderRepair
            605s CaseMoved case: case0 state: Verifying
            617s CaseMoved case: case0 state: Probation until: 1217.000s
            1217s Undrained target: cube0/m00 by: Case(case0)
            1217s CaseMoved case: case0 state: Closed
              out cube0 by Person("ann"), Person("bob")
            3605s Undrained target: cube0 by: Person("ann")
              out cube0 by Person("bob")
            3605s CaseOpened case: case1 target: cube0 symptom: Returned severity: Critical
            3605s Drained target: cube0 by: Case(case1)
            3605s CaseMoved case: case1 state: Draining
            3605s CaseMoved case: case1 state: Verifying
            3605s Undrained target: cube0 by: Person("bob")
            3617s CaseMoved case: case1 state: Probation until: 4217.000s
              out cube0 by Case(case1)
              case1 cube0 Returned Probation until: 4217.000s
            4217s Undrained target: cube0 by: Case(case1)
            4217s CaseMoved case: case1 state: Closed
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
            5s CaseOpened case: case0 target: cube0/m00 symptom: MachineDown severity: Fatal
            5s Drained target: cube0/m00 by: Case(case0)
            5s CaseMoved case: case0 state: Draining
            5s CaseMoved case: case0 state: Waiting
            5s CaseMoved case: case0 state: UnderRepair
              refused: case0 was taken by bob
            5s CaseMoved case: case0 state: Verifying
            7s CaseMoved case: case0 state: Waiting
              out cube0/m00 by Case(case0)
              case0 cube0/m00 MachineDown Waiting
            65s CaseMoved case: case0 state: UnderRepair
            65s CaseMoved case: case0 state: Verifying
            77s CaseMoved case: case0 state: Probation until: 677.000s
            365s CaseMoved case: case0 state: Waiting
              out cube0/m00 by Case(case0)
              case0 cube0/m00 MachineDown Waiting
            365s CaseMoved case: case0 state: UnderRepair
            365s CaseMoved case: case0 state: Verifying
            377s CaseMoved case: case0 state: Probation until: 977.000s
            977s Undrained target: cube0/m00 by: Case(case0)
            977s CaseMoved case: case0 state: Closed
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
            5s Drained target: cube2 by: Case(case2)
            5s CaseMoved case: case2 state: Draining
            5s CaseMoved case: case2 state: UnderRepair
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
            5s LevelSet level: Observe by: "ops"
            5s CaseOpened case: case0 target: cube0/x/out/3 symptom: LinkFlapped severity: Degraded
            905s CaseMoved case: case0 state: Closed
            965s CaseOpened case: case1 target: cube0/x/out/3 symptom: LinkFlapped severity: Degraded
            965s CaseGrew case: case1 severity: Critical n_seen: 3
              case1 cube0/x/out/3 LinkFlapped Observed
        "#]],
    );
}

/// A fault that is only observed stays in use; a job that fails to start on it is not put there
/// again and again while others are free.
#[test]
fn at_level_observe_a_job_goes_where_nothing_is_at_fault() {
    check_on(
        &pods(&[5]),
        "level observe
         report cube0/chip1.1.1 chip_failed
         submit a 4x4x8 for=1h
         submit b 2x2x1 for=1h
         run 1m
         submit c 4x4x8 for=1h
         run 1m
         show",
        expect![[r#"
            5s LevelSet level: Observe by: "ops"
            5s CaseOpened case: case0 target: cube0/chip1.1.1 symptom: ChipFailed severity: Fatal
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            6s BlueprintDone plan: plan0 job: job0
            20s JobStarted job: job1 attempt: 1 waited: 15s
            26s JobStarted job: job0 attempt: 1 waited: 21s
            65s JobSubmitted job: job2
            65s JobPlaced job: job2 attempt: 1 n_parts: 2 kept_parts: 0
            65s BlueprintAdopted plan: plan1 parent: None generation: g4 job: job2 n_switches: 48 n_removed: 0 n_added: 96
            66s BlueprintDone plan: plan1 job: job2
            86s JobStarted job: job2 attempt: 1 waited: 21s
              a attempt 1 Running since: 26.000s on cube1 cube2
              b attempt 1 Running since: 20.000s on cube3:33
              c attempt 1 Running since: 86.000s on cube0 cube4
              case0 cube0/chip1.1.1 ChipFailed Observed
        "#]],
    );
}

/// Its links were missed before the machine was: they are evidence of one case, where nothing is
/// done about it too.
#[test]
fn at_level_observe_a_dead_machine_is_one_case() {
    check(
        "level observe
         submit a 4x4x4 for=9h firm
         run 1m
         report cube0/z/out/0 link_down
         report cube0/z/out/1 link_down
         run 2s
         report cube0/m12 machine_down
         report cube0/z/out/4 link_down
         run 1s
         show",
        expect![[r#"
            5s LevelSet level: Observe by: "ops"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            65s CaseOpened case: case0 target: cube0/z/out/0 symptom: LinkDown severity: Fatal
            65s CaseOpened case: case1 target: cube0/z/out/1 symptom: LinkDown severity: Fatal
            67s CaseOpened case: case2 target: cube0/m12 symptom: MachineDown severity: Fatal
            67s CaseMoved case: case0 state: Closed
            67s CaseMoved case: case1 state: Closed
              a attempt 1 Running since: 26.000s on cube0
              case2 cube0/m12 MachineDown Observed
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
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            65s CaseOpened case: case0 target: cube0 symptom: Planned severity: Critical
            65s Drained target: cube0 by: Case(case0)
            65s CaseMoved case: case0 state: Draining
            65s JobNotified job: job0 attempt: 1 why: Drained target: cube0
            65s CaseOpened case: case1 target: cube1 symptom: Planned severity: Critical
            65s Drained target: cube1 by: Case(case1)
            65s CaseMoved case: case1 state: Draining
            65s CaseMoved case: case1 state: UnderRepair
            65s MaintenanceMoved n_waiting: 2 n_at_work: 2 n_done: 0
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 44
            70s JobRequeued job: job0 why: Drained target: cube0 not_before: 70.000s
            70s CaseMoved case: case0 state: UnderRepair
            70s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            70s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            71s BlueprintDone plan: plan1 job: job0
            91s JobStarted job: job0 attempt: 2 waited: 86s
              a attempt 2 Running since: 91.000s on cube3
              out cube0 by Case(case0)
              out cube1 by Case(case1)
              case0 cube0 Planned UnderRepair
              case1 cube1 Planned UnderRepair
            665s CaseMoved case: case1 state: Verifying
            670s CaseMoved case: case0 state: Verifying
            677s CaseMoved case: case1 state: Probation until: 1277.000s
            682s CaseMoved case: case0 state: Probation until: 1282.000s
            1247s JobStopped job: job0 attempt: 2 exit: Done kept: 1200
            1247s JobFinished job: job0
            1277s Undrained target: cube1 by: Case(case1)
            1277s CaseMoved case: case1 state: Closed
            1277s CaseOpened case: case2 target: cube2 symptom: Planned severity: Critical
            1277s Drained target: cube2 by: Case(case2)
            1277s CaseMoved case: case2 state: Draining
            1277s CaseMoved case: case2 state: UnderRepair
            1277s MaintenanceMoved n_waiting: 1 n_at_work: 2 n_done: 1
            1282s Undrained target: cube0 by: Case(case0)
            1282s CaseMoved case: case0 state: Closed
            1282s CaseOpened case: case3 target: x5 symptom: Planned severity: Critical
            1282s Drained target: x5 by: Case(case3)
            1282s CaseMoved case: case3 state: Draining
            1282s CaseMoved case: case3 state: UnderRepair
            1282s MaintenanceMoved n_waiting: 0 n_at_work: 2 n_done: 2
            1877s CaseMoved case: case2 state: Verifying
            1882s CaseMoved case: case3 state: Verifying
            1883s CaseMoved case: case3 state: Probation until: 2483.000s
            1889s CaseMoved case: case2 state: Probation until: 2489.000s
            2483s Undrained target: x5 by: Case(case3)
            2483s CaseMoved case: case3 state: Closed
            2483s MaintenanceMoved n_waiting: 0 n_at_work: 1 n_done: 3
            2489s Undrained target: cube2 by: Case(case2)
            2489s CaseMoved case: case2 state: Closed
            2489s MaintenanceMoved n_waiting: 0 n_at_work: 0 n_done: 4
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
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            905s Drained target: cube1 by: Person("ann")
            905s JobNotified job: job0 attempt: 1 why: Drained target: cube1
            910s JobStopped job: job0 attempt: 1 exit: Told kept: 884
            910s JobRequeued job: job0 why: Drained target: cube1 not_before: 910.000s
            910s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 1
            910s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 48 n_removed: 32 n_added: 64
            911s BlueprintDone plan: plan1 job: job0
            931s JobStarted job: job0 attempt: 2 waited: 926s
              a attempt 2 Running since: 931.000s on cube0 cube2
              out cube1 by Person("ann")
            1847s JobStopped job: job0 attempt: 2 exit: Done kept: 1800
            1847s JobFinished job: job0
        "#]],
    );
}

#[test]
fn a_crew_that_did_not_come_is_called_again() {
    check(
        "report cube0/m00 machine_down
         run 1h
         crew 10m
         run 7h
         show",
        expect![[r#"
            5s CaseOpened case: case0 target: cube0/m00 symptom: MachineDown severity: Fatal
            5s Drained target: cube0/m00 by: Case(case0)
            5s CaseMoved case: case0 state: Draining
            5s CaseMoved case: case0 state: Waiting
            21665s CaseMoved case: case0 state: UnderRepair
            22205s CaseMoved case: case0 state: Verifying
            22217s CaseMoved case: case0 state: Probation until: 22817.000s
            22817s Undrained target: cube0/m00 by: Case(case0)
            22817s CaseMoved case: case0 state: Closed
        "#]],
    );
}
