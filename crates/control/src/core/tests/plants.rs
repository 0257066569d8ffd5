//! Several pods, hosts, moves between them, and plants that change under running jobs.

use expect_test::expect;
use selvedge_model::spec::Plant;
use selvedge_model::unit::Ppm;

use super::world::{World, check_on, pods};
use crate::input::Ask;
use crate::note::Owner;
use crate::settings::Settings;

const HOSTS: &str = "format = 1\nname = \"h\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\n";

#[test]
fn two_hosts_serve_and_heal_like_any_plant() {
    check_on(
        HOSTS,
        "crew 10m
         submit a hosts=1 for=30m limit=1h
         submit shape 4x4x4
         run 5m
         show
         report host0/gpu3 chip_failed
         run 5m
         show
         submit both hosts=2 for=10m limit=1h
         run 2h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
              refused: 4x4x4 does not fit this plant: its largest pool has 0 parts for it
            20s JobStarted job: job0 attempt: 1 waited: 15s
              a attempt 1 Running since: 20.000s on host0
            305s CaseOpened case: case0 target: host0/gpu3 symptom: ChipFailed severity: Fatal
            305s Drained target: host0/gpu3 by: Case(case0)
            305s CaseMoved case: case0 state: Draining
            305s JobNotified job: job0 attempt: 1 why: Fault case: case0
            306s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            306s JobRequeued job: job0 why: Fault case: case0 not_before: 306.000s
            306s CaseMoved case: case0 state: Waiting
            306s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            321s JobStarted job: job0 attempt: 2 waited: 316s
            366s CaseMoved case: case0 state: UnderRepair
              a attempt 2 Running since: 321.000s on host1
              out host0/gpu3 by Case(case0)
              case0 host0/gpu3 ChipFailed UnderRepair
            605s JobSubmitted job: job1
            906s CaseMoved case: case0 state: Verifying
            918s CaseMoved case: case0 state: Probation until: 1518.000s
            1518s Undrained target: host0/gpu3 by: Case(case0)
            1518s CaseMoved case: case0 state: Closed
            2121s JobStopped job: job0 attempt: 2 exit: Done kept: 1800
            2121s JobFinished job: job0
            2121s JobPlaced job: job1 attempt: 1 n_parts: 2 kept_parts: 0
            2136s JobStarted job: job1 attempt: 1 waited: 1531s
            2736s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            2736s JobFinished job: job1
              a attempt 2 Finished
              both attempt 1 Finished
        "#]],
    );
}

#[test]
fn jobs_within_cubes_are_packed_so_that_a_whole_cube_fits() {
    check_on(
        &pods(&[2]),
        "submit a 2x4x4 for=2h
         submit b 2x4x4 for=2h
         submit c 2x4x4 for=2h
         run 1m
         cancel a
         run 1m
         show
         submit whole 4x4x4 for=10m limit=1h
         run 5m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            20s JobStarted job: job0 attempt: 1 waited: 15s
            20s JobStarted job: job1 attempt: 1 waited: 15s
            20s JobStarted job: job2 attempt: 1 waited: 15s
            65s JobNotified job: job0 attempt: 1 why: Cancelled
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 50
            70s JobCancelled job: job0
              a attempt 1 Cancelled
              b attempt 1 Running since: 20.000s on cube0:ffffffff00000000
              c attempt 1 Running since: 20.000s on cube1:ffffffff
            125s JobSubmitted job: job3
            125s MovesProposed plan: plan0 job: job3 n_moved: 1 lost_chip_hours: 8
            125s MovesAdopted plan: plan0 job: job3
            125s JobNotified job: job1 attempt: 1 why: Moved plan: plan0
            130s JobStopped job: job1 attempt: 1 exit: Told kept: 110
            130s JobRequeued job: job1 why: Moved plan: plan0 not_before: 130.000s
            130s JobPlaced job: job1 attempt: 2 n_parts: 1 kept_parts: 0
            130s JobPlaced job: job3 attempt: 1 n_parts: 1 kept_parts: 0
            130s BlueprintAdopted plan: plan1 parent: None generation: g4 job: job3 n_switches: 48 n_removed: 0 n_added: 48
            131s BlueprintDone plan: plan1 job: job3
            145s JobStarted job: job1 attempt: 2 waited: 140s
            151s JobStarted job: job3 attempt: 1 waited: 26s
              a attempt 1 Cancelled
              b attempt 2 Running since: 145.000s on cube1:ffffffff00000000
              c attempt 1 Running since: 20.000s on cube1:ffffffff
              whole attempt 1 Running since: 151.000s on cube0
        "#]],
    );
}

const MOVES: &str = "submit a 4x4x12 for=3h
     submit c 4x4x8 for=3h owner=r
     submit d 4x4x4 for=3h owner=q
     run 1m
     cancel a
     run 1m
     show
     level drain
     submit big 4x4x16 for=10m limit=1h
     run 5m
     show
     defragment 99
     defragment 3
     defragment 3
     run 5m
     show
     run 1h";

#[test]
fn nobody_is_moved_who_has_lost_its_share_already() {
    let mut settings = Settings::simulated();
    settings.moves_share = Ppm::new(0);
    let mut world = World::new(&pods(&[4, 4]), settings);
    world.play(MOVES);
    world.replay_all();
    assert!(!world.lines.contains("MovesProposed"), "{}", world.lines);
    assert!(world.core.state().moves.is_empty());
}

#[test]
fn a_whole_job_is_moved_to_another_pod_when_it_may() {
    check_on(
        &pods(&[4, 4]),
        MOVES,
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 144
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan1 parent: None generation: g2 job: job1 n_switches: 48 n_removed: 0 n_added: 96
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan2 parent: None generation: g3 job: job2 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            6s BlueprintDone plan: plan1 job: job1
            6s BlueprintDone plan: plan2 job: job2
            26s JobStarted job: job0 attempt: 1 waited: 21s
            26s JobStarted job: job1 attempt: 1 waited: 21s
            26s JobStarted job: job2 attempt: 1 waited: 21s
            65s JobNotified job: job0 attempt: 1 why: Cancelled
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 44
            70s JobCancelled job: job0
              a attempt 1 Cancelled
              c attempt 1 Running since: 26.000s on cube4 cube5
              d attempt 1 Running since: 26.000s on cube3
            125s LevelSet level: Drain by: "ops"
            125s JobSubmitted job: job3
            125s MovesProposed plan: plan3 job: job3 n_moved: 1 lost_chip_hours: 17
              a attempt 1 Cancelled
              big attempt 0 Queued since: 125.000s not_before: 125.000s held: false
              c attempt 1 Running since: 26.000s on cube4 cube5
              d attempt 1 Running since: 26.000s on cube3
              refused: no moves that can still be made are proposed under this number
            425s MovesAdopted plan: plan3 job: job3
            425s JobNotified job: job2 attempt: 1 why: Moved plan: plan3
              refused: no moves that can still be made are proposed under this number
            430s JobStopped job: job2 attempt: 1 exit: Told kept: 404
            430s JobRequeued job: job2 why: Moved plan: plan3 not_before: 430.000s
            430s JobPlaced job: job2 attempt: 2 n_parts: 1 kept_parts: 0
            430s BlueprintAdopted plan: plan4 parent: Some(plan2) generation: g7 job: job2 n_switches: 48 n_removed: 0 n_added: 48
            430s JobPlaced job: job3 attempt: 1 n_parts: 4 kept_parts: 0
            430s BlueprintAdopted plan: plan5 parent: None generation: g8 job: job3 n_switches: 16 n_removed: 32 n_added: 32
            431s BlueprintDone plan: plan4 job: job2
            431s BlueprintDone plan: plan5 job: job3
            451s JobStarted job: job2 attempt: 2 waited: 446s
            451s JobStarted job: job3 attempt: 1 waited: 326s
              a attempt 1 Cancelled
              big attempt 1 Running since: 451.000s on cube0 cube1 cube3 cube2
              c attempt 1 Running since: 26.000s on cube4 cube5
              d attempt 2 Running since: 451.000s on cube6
            1051s JobStopped job: job3 attempt: 1 exit: Done kept: 600
            1051s JobFinished job: job3
        "#]],
    );
}

#[test]
fn a_plant_is_changed_by_whoever_saw_the_newest_version() {
    let mut world = World::new(&with_deployed("0-1"), Settings::simulated());
    world.play("submit a 4x4x8 for=20m limit=1h\n run 1m");
    world.apply(&pods(&[4]), 7);
    world.apply(&with_deployed("0"), 1);
    world.apply("format = 1\nname = 3", 1);
    world.apply(&with_deployed("0-2"), 1);
    world.play("submit b 4x4x4 for=10m limit=1h\n run 1m\n show\n run 1h");
    world.play("drain ann cube2\n drain ann cube1/x/out/3\n report cube2/m00 machine_down");
    world.apply(&with_deployed("0-1"), 2);
    world.play("show");
    world.apply(&with_deployed("0-2"), 3);
    // It is still ann's, and tested before anything else; her word alone does not bring it back.
    world.play("submit c 4x4x12 for=10m limit=1h\n run 1m\n show");
    world.play("undrain ann cube1/x/out/3\n run 11m\n show");
    world.play("undrain ann cube2\n run 15m\n show");
    world.replay_all();
    expect![[r#"
        5s JobSubmitted job: job0
        5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
        5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
        6s BlueprintDone plan: plan0 job: job0
        26s JobStarted job: job0 attempt: 1 waited: 21s
          refused: the plant is at version 1, the change was made from 7; fetch it and make the change anew
          refused: the change would touch cube1, which job0 uses; cancel it or wait
          refused: the plant cannot be used: plant:2:8: name is a whole number
         2 | name = 3
           |        ^
           right: a text in quotes
        plant:2:8: the plant has no hardware
         2 | name = 3
           |        ^
           right: add a [[pod]] with a family, or a [[part]]
        65s PlantApplied version: 2 n_parts: 51 n_added: 1 n_retired: 0
        65s JobSubmitted job: job1
        65s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
        65s BlueprintAdopted plan: plan1 parent: None generation: g3 job: job1 n_switches: 48 n_removed: 0 n_added: 48
        66s BlueprintDone plan: plan1 job: job1
        86s JobStarted job: job1 attempt: 1 waited: 21s
          a attempt 1 Running since: 26.000s on cube0 cube1
          b attempt 1 Running since: 86.000s on cube2
        686s JobStopped job: job1 attempt: 1 exit: Done kept: 600
        686s JobFinished job: job1
        1226s JobStopped job: job0 attempt: 1 exit: Done kept: 1200
        1226s JobFinished job: job0
        3725s Drained target: cube2 by: Person("ann")
        3725s Drained target: cube1/x/out/3 by: Person("ann")
        3725s CaseOpened case: case0 target: cube2/m00 symptom: MachineDown severity: Fatal
        3725s Drained target: cube2/m00 by: Case(case0)
        3725s CaseMoved case: case0 state: Draining
        3725s CaseMoved case: case0 state: Waiting
        3725s CaseRetired case: case0
        3725s CaseMoved case: case0 state: Closed
        3725s PlantApplied version: 3 n_parts: 51 n_added: 0 n_retired: 1
          a attempt 1 Finished
          b attempt 1 Finished
          out cube1/x/out/3 by Person("ann")
        3725s PlantApplied version: 4 n_parts: 52 n_added: 1 n_retired: 0
        3725s Drained target: cube2 by: Person("ann")
        3725s CaseOpened case: case1 target: cube2 symptom: Returned severity: Critical
        3725s Drained target: cube2 by: Case(case1)
        3725s CaseMoved case: case1 state: Draining
        3725s CaseMoved case: case1 state: Verifying
        3725s JobSubmitted job: job2
        3737s CaseMoved case: case1 state: Probation until: 4337.000s
          a attempt 1 Finished
          b attempt 1 Finished
          c attempt 0 Queued since: 3725.000s not_before: 3725.000s held: false
          out cube2 by Person("ann"), Case(case1)
          out cube1/x/out/3 by Person("ann")
          case1 cube2 Returned Probation until: 4337.000s
        3785s CaseOpened case: case2 target: cube1/x/out/3 symptom: Returned severity: Critical
        3785s Drained target: cube1/x/out/3 by: Case(case2)
        3785s CaseMoved case: case2 state: Draining
        3785s CaseMoved case: case2 state: Verifying
        3785s Undrained target: cube1/x/out/3 by: Person("ann")
        3797s CaseMoved case: case2 state: Probation until: 4397.000s
        4337s Undrained target: cube2 by: Case(case1)
        4337s CaseMoved case: case1 state: Closed
        4397s Undrained target: cube1/x/out/3 by: Case(case2)
        4397s CaseMoved case: case2 state: Closed
          a attempt 1 Finished
          b attempt 1 Finished
          c attempt 0 Queued since: 3725.000s not_before: 3725.000s held: false
          out cube2 by Person("ann")
        4445s CaseOpened case: case3 target: cube2 symptom: Returned severity: Critical
        4445s Drained target: cube2 by: Case(case3)
        4445s CaseMoved case: case3 state: Draining
        4445s CaseMoved case: case3 state: Verifying
        4445s Undrained target: cube2 by: Person("ann")
        4457s CaseMoved case: case3 state: Probation until: 5057.000s
        5057s Undrained target: cube2 by: Case(case3)
        5057s CaseMoved case: case3 state: Closed
        5057s JobPlaced job: job2 attempt: 1 n_parts: 3 kept_parts: 0
        5057s BlueprintAdopted plan: plan2 parent: None generation: g5 job: job2 n_switches: 16 n_removed: 32 n_added: 32
        5058s BlueprintDone plan: plan2 job: job2
        5078s JobStarted job: job2 attempt: 1 waited: 1353s
          a attempt 1 Finished
          b attempt 1 Finished
          c attempt 1 Running since: 5078.000s on cube0 cube2 cube1
    "#]].assert_eq(&world.lines);
}

fn with_deployed(slots: &str) -> String {
    format!(
        "format = 1\nname = \"t\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 4\ndeployed = \"{slots}\"\n"
    )
}

#[test]
fn a_moved_fibre_takes_its_drains_with_it_and_is_wired_anew() {
    check_on(
        &pods(&[2]),
        "submit a 4x4x8 for=10m limit=1h
         run 1m
         move x3/n0 x3/n64
         run 15m
         drain ann cube0/x/out/3
         report x3/n0 port_failed
         move x3/n0 x3/s64
         move x3/n0 y3/n64
         move x3/n1 x3/n0
         move x3/n0 x3/n64
         show
         take bob case0
         finish bob case0
         run 1m
         undrain ann cube0/x/out/3
         run 15m
         show
         submit b 4x4x8 for=10m limit=1h
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
              refused: the change would touch cube0, which job0 uses; cancel it or wait
            626s JobStopped job: job0 attempt: 1 exit: Done kept: 600
            626s JobFinished job: job0
            965s Drained target: cube0/x/out/3 by: Person("ann")
            965s CaseOpened case: case0 target: cube0/x/out/3 symptom: PortFailed severity: Critical
            965s Drained target: cube0/x/out/3 by: Case(case0)
            965s CaseMoved case: case0 state: Draining
            965s CaseMoved case: case0 state: Waiting
              refused: x3/n0 cannot be re-patched to x3/s64: both must be on one side of the switch
              refused: x3/n0 cannot be re-patched to y3/n64: both must be ports of one switch
              refused: x3/n1 cannot be re-patched to x3/n0: there is a fibre on the second already
            965s PlantApplied version: 2 n_parts: 50 n_added: 0 n_retired: 0
            965s PortMoved switch: x3 from: 0 to: 128
              a attempt 1 Finished
              out cube0/x/out/3 by Person("ann"), Case(case0)
              case0 cube0/x/out/3 PortFailed Waiting
            965s CaseMoved case: case0 state: UnderRepair
            965s CaseMoved case: case0 state: Verifying
            977s CaseMoved case: case0 state: Probation until: 1577.000s
            1025s Undrained target: cube0/x/out/3 by: Person("ann")
            1577s Undrained target: cube0/x/out/3 by: Case(case0)
            1577s CaseMoved case: case0 state: Closed
              a attempt 1 Finished
            1925s JobSubmitted job: job1
            1925s JobPlaced job: job1 attempt: 1 n_parts: 2 kept_parts: 0
            1925s BlueprintAdopted plan: plan1 parent: None generation: g3 job: job1 n_switches: 1 n_removed: 1 n_added: 1
            1926s BlueprintDone plan: plan1 job: job1
            1946s JobStarted job: job1 attempt: 1 waited: 21s
              a attempt 1 Finished
              b attempt 1 Running since: 1946.000s on cube0 cube1
        "#]],
    );
}

#[test]
fn a_fibre_moved_there_and_back_leaves_the_plant_as_it_was() {
    let lossy = "[[cable]]\nend = \"cube1/x/out/3\"\nloss_db = 1.25\n";
    let text = format!("{}{lossy}", pods(&[4]));
    let mut world = World::new(&text, Settings::simulated());
    let plants = |world: &World| world.core.state().plants.clone();
    let parsed = |text: &str| Plant::parse("plant", text).unwrap();
    // The second fibre keeps what it loses, wherever it leads.
    world.play("move x3/n0 x3/n64\n move x3/n1 x3/n65\n move x3/n64 x3/n66\n run 1m");
    let moved = parsed(plants(&world).last().unwrap()).patches;
    assert_eq!(moved.len(), 2, "{moved:?}");
    assert!(moved.iter().any(|it| it.loss.is_some() && it.port.is_some()), "{moved:?}");
    // Its place is taken by another fibre, and free again.
    world.play("move x3/n66 x3/n1\n move x3/n1 x3/n0\n move x3/n65 x3/n1\n run 1m");
    assert_eq!(parsed(plants(&world).last().unwrap()), parsed(&text));
    world.replay_all();
}

/// Goal: what has left is still one's own to give back.  Method: two people have drained a cube
/// that is retired; one takes it back meanwhile.
#[test]
fn a_drain_of_what_has_left_the_plant_is_taken_back_by_whoever_made_it() {
    let mut world = World::new(&with_deployed("0-2"), Settings::simulated());
    world.play("drain ann cube2\n drain bob cube2");
    world.apply(&with_deployed("0-1"), 1);
    let by = |world: &World| {
        let drains = world.core.set_aside_as("cube2").map(|it| format!("{:?}", it.by));
        drains.collect::<Vec<_>>()
    };
    assert_eq!(by(&world), ["Person(\"ann\")", "Person(\"bob\")"]);
    let retired = || Ask::UndrainRetired { path: "cube2".to_owned() };
    world.ask("ann", retired());
    world.ask("ann", retired());
    assert!(
        world.lines.ends_with("  refused: cube2 is not drained by ann; it is drained by bob\n")
    );
    world.apply(&with_deployed("0-2"), 2);
    world.ask("bob", retired());
    assert!(
        world.lines.ends_with("  refused: cube2 is not drained by bob; it is drained by nobody\n")
    );
    let cube = world.find("cube2");
    let drains = &world.core.state().drains[&cube];
    assert_eq!(drains.iter().filter(|it| matches!(it.by, Owner::Person(_))).count(), 1);
    world.replay_all();
}
