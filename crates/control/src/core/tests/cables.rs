//! Who uses which cable, and who keeps what when its tasks are lost.

use expect_test::{Expect, expect};
use selvedge_model::unit::Ppm;

use super::world::World;
use crate::settings::Settings;

fn check_on(plant: &str, script: &str, expect: Expect) {
    let mut settings = Settings::simulated();
    // A few hosts are the whole plant.
    settings.breaker_share = Ppm::new(1_000_000);
    let mut world = World::new(plant, settings);
    world.play(script);
    world.replay_all();
    expect.assert_eq(&world.lines);
}

/// Three hosts in a row, and a switch that joins the last two.
const ROW: &str = r#"format = 1
name = "h"
[[pod]]
family = "hosts"
hosts = 3
[[template]]
name = "tor"
role = "packet-switch"
nodes = [{ name = "s", kind = "switch" }]
ports = [{ name = "p1", node = "s" }, { name = "p2", node = "s" }]
[[part]]
name = "tor0"
template = "tor"
[[cable]]
a = "host0/nic0/port"
b = "host1/nic1/port"
gbps = 400
[[cable]]
a = "host1/nic2/port"
b = "tor0/p1"
gbps = 400
[[cable]]
a = "host2/nic2/port"
b = "tor0/p2"
gbps = 400
"#;

#[test]
fn a_host_alone_lives_beside_a_dead_cable_and_a_dead_neighbour() {
    check_on(
        ROW,
        "submit a hosts=1 for=2h limit=3h
         run 1m
         dark host0/nic0/port
         report host0/nic0/port link_down
         run 1m
         silent host1
         report host1/m0 machine_down
         run 1m
         requeue a
         run 2m
         level observe
         requeue a
         run 2m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            20s JobStarted job: job0 attempt: 1 waited: 15s
            65s CaseOpened case: case0 target: host0/nic0/port symptom: LinkDown severity: Fatal
            65s Drained target: host0/nic0/port by: Case(case0)
            65s CaseMoved case: case0 state: Draining
            65s CaseMoved case: case0 state: Waiting
            125s CaseOpened case: case1 target: host1/m0 symptom: MachineDown severity: Fatal
            125s Drained target: host1/m0 by: Case(case1)
            125s CaseMoved case: case1 state: Draining
            125s CaseMoved case: case1 state: Waiting
            125s Undrained target: host0/nic0/port by: Case(case0)
            125s CaseMoved case: case0 state: Closed
            185s JobNotified job: job0 attempt: 1 why: Requeued
            190s JobStopped job: job0 attempt: 1 exit: Told kept: 170
            190s JobRequeued job: job0 why: Requeued not_before: 190.000s
            190s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            205s JobStarted job: job0 attempt: 2 waited: 200s
            305s LevelSet level: Observe by: "ops"
            305s JobNotified job: job0 attempt: 2 why: Requeued
            310s JobStopped job: job0 attempt: 2 exit: Told kept: 275
            310s JobRequeued job: job0 why: Requeued not_before: 310.000s
            310s JobPlaced job: job0 attempt: 3 n_parts: 1 kept_parts: 0
            325s JobStarted job: job0 attempt: 3 waited: 320s
              a attempt 3 Running since: 325.000s on host0
              out host1/m0 by Case(case1)
              case1 host1/m0 MachineDown Waiting
        "#]],
    );
}

#[test]
fn two_hosts_leave_the_cable_between_them_for_another() {
    check_on(
        ROW,
        "submit pair hosts=2 for=2h limit=3h
         run 1m
         dark host0/nic0/port
         report host0/nic0/port link_down
         run 1m
         show
         # Of what is left, host1 is joined with both others and cannot have one of them.
         submit all hosts=3 for=10m limit=1h
         run 1m
         show
         heal host0/nic0/port
         take ops case0
         finish ops case0
         run 3h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            20s JobStarted job: job0 attempt: 1 waited: 15s
            65s CaseOpened case: case0 target: host0/nic0/port symptom: LinkDown severity: Fatal
            65s Drained target: host0/nic0/port by: Case(case0)
            65s CaseMoved case: case0 state: Draining
            65s JobNotified job: job0 attempt: 1 why: Fault case: case0
            66s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            66s JobRequeued job: job0 why: Fault case: case0 not_before: 66.000s
            66s CaseMoved case: case0 state: Waiting
            66s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 1
            81s JobStarted job: job0 attempt: 2 waited: 76s
              pair attempt 2 Running since: 81.000s on host0 host2
              out host0/nic0/port by Case(case0)
              case0 host0/nic0/port LinkDown Waiting
            125s JobSubmitted job: job1
              all attempt 0 Queued since: 125.000s not_before: 125.000s held: false
              pair attempt 2 Running since: 81.000s on host0 host2
              out host0/nic0/port by Case(case0)
              case0 host0/nic0/port LinkDown Waiting
            185s CaseMoved case: case0 state: UnderRepair
            185s CaseMoved case: case0 state: Verifying
            197s CaseMoved case: case0 state: Probation until: 797.000s
            797s Undrained target: host0/nic0/port by: Case(case0)
            797s CaseMoved case: case0 state: Closed
            7281s JobStopped job: job0 attempt: 2 exit: Done kept: 7200
            7281s JobFinished job: job0
            7281s JobPlaced job: job1 attempt: 1 n_parts: 3 kept_parts: 0
            7296s JobStarted job: job1 attempt: 1 waited: 7171s
            7896s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            7896s JobFinished job: job1
              all attempt 1 Finished
              pair attempt 2 Finished
        "#]],
    );
}

#[test]
fn who_sends_over_a_switch_leaves_when_it_dies_and_one_alone_does_not() {
    check_on(
        ROW,
        "submit pair hosts=2 for=2h limit=3h
         submit one hosts=1 for=2h limit=3h
         run 1m
         show
         drain ann tor0
         run 1m
         show
         undrain ann tor0
         run 20m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            20s JobStarted job: job0 attempt: 1 waited: 15s
            20s JobStarted job: job1 attempt: 1 waited: 15s
              one attempt 1 Running since: 20.000s on host2
              pair attempt 1 Running since: 20.000s on host0 host1
            65s Drained target: tor0 by: Person("ann")
            65s JobNotified job: job0 attempt: 1 why: Drained target: tor0
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 50
            70s JobRequeued job: job0 why: Drained target: tor0 not_before: 70.000s
              one attempt 1 Running since: 20.000s on host2
              pair attempt 1 Queued since: 5.000s not_before: 70.000s held: false
              out tor0 by Person("ann")
            125s CaseOpened case: case0 target: tor0 symptom: Returned severity: Critical
            125s Drained target: tor0 by: Case(case0)
            125s CaseMoved case: case0 state: Draining
            125s CaseMoved case: case0 state: Verifying
            125s Undrained target: tor0 by: Person("ann")
            137s CaseMoved case: case0 state: Probation until: 737.000s
            737s Undrained target: tor0 by: Case(case0)
            737s CaseMoved case: case0 state: Closed
            737s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 0
            752s JobStarted job: job0 attempt: 2 waited: 747s
              one attempt 1 Running since: 20.000s on host2
              pair attempt 2 Running since: 752.000s on host0 host1
        "#]],
    );
}

const BOARDS: &str =
    "format = 1\nname = \"b\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"1x2\"\n";

/// Whoever waits behind a job whose tasks are lost does not get its boards while it is diagnosed,
/// be it of lower priority or not; what is sound is the job's again.
#[test]
fn a_job_on_boards_keeps_them_until_it_is_known_what_killed_it() {
    check_on(
        BOARDS,
        "submit first 1x2 for=1h limit=2h prio=9
         fails first lost 10m
         submit behind 1x2 for=30h limit=40h prio=0
         run 11m
         show
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s JobSubmitted job: job1
            20s JobStarted job: job0 attempt: 1 waited: 15s
            620s JobStopped job: job0 attempt: 1 exit: Lost kept: 600
            620s JobRequeued job: job0 why: Lost not_before: 680.000s
              behind attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              first attempt 1 Queued since: 5.000s not_before: 680.000s held: false on board0.0 board0.1
            680s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 2
            695s JobStarted job: job0 attempt: 2 waited: 690s
              behind attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              first attempt 2 Running since: 695.000s on board0.0 board0.1
        "#]],
    );
}

/// Where a board is at fault the job gives the others up only once that is known.
#[test]
fn a_lost_board_is_out_before_the_others_are_given_to_anybody() {
    check_on(
        BOARDS,
        "crew 10m
         submit first 1x2 for=1h limit=2h prio=9
         fails first lost 10m
         submit behind 1x1 for=3h limit=4h prio=0
         run 10m
         run 20s
         show
         report board0.1/m0 machine_down
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s JobSubmitted job: job1
            20s JobStarted job: job0 attempt: 1 waited: 15s
            620s JobStopped job: job0 attempt: 1 exit: Lost kept: 600
            620s JobRequeued job: job0 why: Lost not_before: 680.000s
              behind attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              first attempt 1 Queued since: 5.000s not_before: 680.000s held: false on board0.0 board0.1
            625s CaseOpened case: case0 target: board0.1/m0 symptom: MachineDown severity: Fatal
            625s Drained target: board0.1/m0 by: Case(case0)
            625s CaseMoved case: case0 state: Draining
            625s CaseMoved case: case0 state: Waiting
            625s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            640s JobStarted job: job1 attempt: 1 waited: 635s
            685s CaseMoved case: case0 state: UnderRepair
              behind attempt 1 Running since: 640.000s on board0.0
              first attempt 1 Queued since: 5.000s not_before: 625.000s held: false
              out board0.1/m0 by Case(case0)
              case0 board0.1/m0 MachineDown UnderRepair
        "#]],
    );
}

/// The same for hosts and for jobs within a cube.
#[test]
fn hosts_and_seats_are_kept_through_a_diagnosis_like_cubes() {
    check_on(
        "format = 1\nname = \"h\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\n",
        "submit first hosts=2 for=1h limit=2h prio=9
         fails first lost 10m
         submit behind hosts=1 for=30h limit=40h prio=0
         run 11m
         show
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s JobSubmitted job: job1
            20s JobStarted job: job0 attempt: 1 waited: 15s
            620s JobStopped job: job0 attempt: 1 exit: Lost kept: 600
            620s JobRequeued job: job0 why: Lost not_before: 680.000s
              behind attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              first attempt 1 Queued since: 5.000s not_before: 680.000s held: false on host0 host1
            680s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 2
            695s JobStarted job: job0 attempt: 2 waited: 690s
              behind attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              first attempt 2 Running since: 695.000s on host0 host1
        "#]],
    );
}
