//! Circuit switches that do not answer, and what becomes of the jobs that are wired through them.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use selvedge_model::fault::Severity;

use super::world::{World, check, pods};
use crate::note::{CaseState, StopWhy};
use crate::settings::Settings;
use crate::state::{Event, JobState};

/// All switches of a pod, each in a line after `verb`.
fn all_switches(verb: &str) -> String {
    let mut script = String::new();
    for dim in ["x", "y", "z"] {
        for index in 0..16 {
            writeln!(script, "{verb} {dim}{index}").unwrap();
        }
    }
    script
}

/// Plays a script on a pod of sixteen cubes, so that the breaker has nothing to say.
fn check_large(script: &str, expect: Expect) {
    let mut world = World::new(&pods(&[16]), Settings::simulated());
    world.play(script);
    world.replay_all();
    expect.assert_eq(&world.lines);
}

#[test]
fn who_runs_through_a_silent_switch_stays_and_who_comes_waits_until_it_answers() {
    check(
        "submit a 4x4x8 for=5h limit=6h
         run 5m
         silent z5
         run 150s
         submit early 1x1x1 for=1m limit=2m
         run 2m
         submit b 4x4x4 for=10m limit=1h
         run 10m
         show
         heal z5
         run 20m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            455s JobSubmitted job: job1
            455s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            470s JobStarted job: job1 attempt: 1 waited: 15s
            485s CaseOpened case: case0 target: z5 symptom: Silent severity: Degraded
            485s Drained target: z5 by: Case(case0)
            485s CaseMoved case: case0 state: Waiting
            530s JobStopped job: job1 attempt: 1 exit: Done kept: 60
            530s JobFinished job: job1
            575s JobSubmitted job: job2
              a attempt 1 Running since: 26.000s on cube0 cube1
              b attempt 0 Queued since: 575.000s not_before: 575.000s held: false
              early attempt 1 Finished
              out z5 by Case(case0)
              case0 z5 Silent Waiting
            1206s CaseMoved case: case0 state: Verifying
            1207s CaseMoved case: case0 state: Probation until: 1807.000s
            1807s Undrained target: z5 by: Case(case0)
            1807s CaseMoved case: case0 state: Closed
            1807s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            1807s BlueprintAdopted plan: plan1 parent: None generation: g4 job: job2 n_switches: 48 n_removed: 0 n_added: 48
            1808s BlueprintDone plan: plan1 job: job2
            1828s JobStarted job: job2 attempt: 1 waited: 1253s
              a attempt 1 Running since: 26.000s on cube0 cube1
              b attempt 1 Running since: 1828.000s on cube2
              early attempt 1 Finished
        "#]],
    );
}

#[test]
fn a_silent_switch_is_repaired_while_jobs_run_through_it() {
    check(
        "crew 30m
         submit a 4x4x16 for=5h limit=6h
         run 5m
         silent x0
         run 4h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 4 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 192
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            485s CaseOpened case: case0 target: x0 symptom: Silent severity: Degraded
            485s Drained target: x0 by: Case(case0)
            485s CaseMoved case: case0 state: Waiting
            545s CaseMoved case: case0 state: UnderRepair
            2285s CaseMoved case: case0 state: Verifying
            2286s CaseMoved case: case0 state: Probation until: 2886.000s
            2886s Undrained target: x0 by: Case(case0)
            2886s CaseMoved case: case0 state: Closed
              a attempt 1 Running since: 26.000s on cube0 cube1 cube2 cube3
        "#]],
    );
}

/// Goal: what makes every switch silent at once is the way to them, not all of them; no job pays
/// for it.  Method: a full pod, four minutes without an answer from any switch.
#[test]
fn when_all_switches_fall_silent_no_job_leaves_its_place() {
    let mut world = World::new(&pods(&[4]), Settings::simulated());
    world.play(
        "submit a 4x4x8 for=2h limit=6h
         submit b 4x4x4 for=2h limit=6h
         submit c 4x4x4 for=2h limit=6h
         submit d 4x4x4 for=10m limit=1h
         run 5m",
    );
    world.play(&all_switches("silent"));
    world.play("run 4m");
    let state = world.core.state();
    assert!(state.switches.values().all(|it| it.silent.is_some()));
    assert_eq!(state.open_cases.len(), 48);
    assert!(state.open_cases.values().all(|it| {
        let case = &state.cases[*it];
        case.severity == Severity::Degraded && case.state == CaseState::Waiting
    }));
    world.play(&all_switches("heal"));
    world.play("run 3h");
    let state = world.core.state();
    assert!(state.open_cases.is_empty() && state.drains.is_empty(), "{:?}", state.open_cases);
    for job in ["a", "b", "c", "d"] {
        let known = &state.jobs[world.jobs[job]];
        assert_eq!((&known.state, known.attempt), (&JobState::Finished, 1), "{job}");
    }
    // Nobody has repaired anything.
    assert!(state.cases.iter().all(|it| it.n_repairs == 0 && it.n_tests == 1));
    world.replay_all();
}

#[test]
fn a_silent_switch_more_than_two_of_whose_fibres_fail_is_left() {
    check_large(
        "submit a 4x4x4 for=5h limit=6h
         submit b 4x4x4 for=5h limit=6h
         submit c 4x4x4 for=5h limit=6h
         submit d 4x4x4 for=5h limit=6h
         run 5m
         silent z5
         run 4m
         report cube0/z/out/5 link_down
         report cube1/z/out/5 link_down
         show
         report cube2/z/in/5 link_down
         run 1m
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
            5s JobSubmitted job: job3
            5s JobPlaced job: job3 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan3 parent: None generation: g4 job: job3 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            6s BlueprintDone plan: plan1 job: job1
            6s BlueprintDone plan: plan2 job: job2
            6s BlueprintDone plan: plan3 job: job3
            26s JobStarted job: job0 attempt: 1 waited: 21s
            26s JobStarted job: job1 attempt: 1 waited: 21s
            26s JobStarted job: job2 attempt: 1 waited: 21s
            26s JobStarted job: job3 attempt: 1 waited: 21s
            485s CaseOpened case: case0 target: z5 symptom: Silent severity: Degraded
            485s Drained target: z5 by: Case(case0)
            485s CaseMoved case: case0 state: Waiting
            545s CaseOpened case: case1 target: cube0/z/out/5 symptom: LinkDown severity: Fatal
            545s Drained target: cube0/z/out/5 by: Case(case1)
            545s CaseMoved case: case1 state: Draining
            545s JobNotified job: job0 attempt: 1 why: Fault case: case1
            545s CaseOpened case: case2 target: cube1/z/out/5 symptom: LinkDown severity: Fatal
            545s Drained target: cube1/z/out/5 by: Case(case2)
            545s CaseMoved case: case2 state: Draining
            545s JobNotified job: job1 attempt: 1 why: Fault case: case2
              a attempt 1 Stopping why: Fault case: case1 kill_at: 545.000s killed: true on cube0
              b attempt 1 Stopping why: Fault case: case2 kill_at: 545.000s killed: true on cube1
              c attempt 1 Running since: 26.000s on cube2
              d attempt 1 Running since: 26.000s on cube3
              out z5 by Case(case0)
              out cube0/z/out/5 by Case(case1)
              out cube1/z/out/5 by Case(case2)
              case0 z5 Silent Waiting
              case1 cube0/z/out/5 LinkDown Draining
              case2 cube1/z/out/5 LinkDown Draining
            545s CaseOpened case: case3 target: cube2/z/in/5 symptom: LinkDown severity: Fatal
            545s Drained target: cube2/z/in/5 by: Case(case3)
            545s CaseMoved case: case3 state: Draining
            545s JobNotified job: job2 attempt: 1 why: Fault case: case3
            545s CaseGrew case: case0 severity: Critical n_seen: 2
            545s JobNotified job: job3 attempt: 1 why: Fault case: case0
            545s Undrained target: cube0/z/out/5 by: Case(case1)
            545s CaseMoved case: case1 state: Closed
            545s Undrained target: cube1/z/out/5 by: Case(case2)
            545s CaseMoved case: case2 state: Closed
            545s Undrained target: cube2/z/in/5 by: Case(case3)
            545s CaseMoved case: case3 state: Closed
            546s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            546s JobRequeued job: job0 why: Fault case: case1 not_before: 546.000s
            546s JobStopped job: job1 attempt: 1 exit: Told kept: 0
            546s JobRequeued job: job1 why: Fault case: case2 not_before: 546.000s
            546s JobStopped job: job2 attempt: 1 exit: Told kept: 0
            546s JobRequeued job: job2 why: Fault case: case3 not_before: 546.000s
            550s JobStopped job: job3 attempt: 1 exit: Told kept: 524
            550s JobRequeued job: job3 why: Fault case: case0 not_before: 550.000s
              a attempt 1 Queued since: 5.000s not_before: 546.000s held: false
              b attempt 1 Queued since: 5.000s not_before: 546.000s held: false
              c attempt 1 Queued since: 5.000s not_before: 546.000s held: false
              d attempt 1 Queued since: 5.000s not_before: 550.000s held: false
              out z5 by Case(case0)
              case0 z5 Silent Waiting
        "#]],
    );
}

#[test]
fn a_silent_switch_that_is_reported_dead_is_left_at_once() {
    check(
        "submit a 4x4x8 for=5h limit=6h
         run 5m
         silent z5
         run 4m
         report z5 switch_down
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            485s CaseOpened case: case0 target: z5 symptom: Silent severity: Degraded
            485s Drained target: z5 by: Case(case0)
            485s CaseMoved case: case0 state: Waiting
            545s CaseGrew case: case0 severity: Fatal n_seen: 2
            545s JobNotified job: job0 attempt: 1 why: Fault case: case0
            546s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            546s JobRequeued job: job0 why: Fault case: case0 not_before: 546.000s
              a attempt 1 Queued since: 5.000s not_before: 546.000s held: false
              out z5 by Case(case0)
              case0 z5 Silent Waiting
        "#]],
    );
}

#[test]
fn at_level_observe_a_job_waits_for_a_silent_switch_and_is_not_failed() {
    check(
        "level observe
         silent z5
         submit a 4x4x8 for=10m limit=1h
         run 3h
         show
         heal z5
         run 5m
         show
         run 1h",
        expect![[r#"
            5s LevelSet level: Observe by: "ops"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            95s CaseOpened case: case0 target: z5 symptom: Silent severity: Degraded
            95s JobNotified job: job0 attempt: 1 why: Fault case: case0
            95s JobRequeued job: job0 why: Fault case: case0 not_before: 95.000s
              a attempt 1 Queued since: 5.000s not_before: 95.000s held: false
              case0 z5 Silent Observed
            10866s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 0
            10866s BlueprintAdopted plan: plan1 parent: None generation: g2 job: job0 n_switches: 1 n_removed: 0 n_added: 2
            10867s BlueprintDone plan: plan1 job: job0
            10887s JobStarted job: job0 attempt: 2 waited: 10882s
            10895s CaseMoved case: case0 state: Closed
              a attempt 2 Running since: 10887.000s on cube0 cube1
            11487s JobStopped job: job0 attempt: 2 exit: Done kept: 600
            11487s JobFinished job: job0
        "#]],
    );
}

#[test]
fn a_job_that_loses_a_cube_while_a_switch_is_silent_waits_for_both() {
    check(
        "submit a 4x4x8 for=5h limit=6h
         run 5m
         silent z5
         run 4m
         report cube1/m03 machine_down
         run 10m
         show
         heal z5
         run 20m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            485s CaseOpened case: case0 target: z5 symptom: Silent severity: Degraded
            485s Drained target: z5 by: Case(case0)
            485s CaseMoved case: case0 state: Waiting
            545s CaseOpened case: case1 target: cube1/m03 symptom: MachineDown severity: Fatal
            545s Drained target: cube1/m03 by: Case(case1)
            545s CaseMoved case: case1 state: Draining
            545s JobNotified job: job0 attempt: 1 why: Fault case: case1
            546s JobStopped job: job0 attempt: 1 exit: Told kept: 0
            546s JobRequeued job: job0 why: Fault case: case1 not_before: 546.000s
            546s CaseMoved case: case1 state: Waiting
              a attempt 1 Queued since: 5.000s not_before: 546.000s held: false
              out z5 by Case(case0)
              out cube1/m03 by Case(case1)
              case0 z5 Silent Waiting
              case1 cube1/m03 MachineDown Waiting
            1206s CaseMoved case: case0 state: Verifying
            1207s CaseMoved case: case0 state: Probation until: 1807.000s
            1807s Undrained target: z5 by: Case(case0)
            1807s CaseMoved case: case0 state: Closed
            1807s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 0
            1807s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 48 n_removed: 32 n_added: 64
            1808s BlueprintDone plan: plan1 job: job0
            1828s JobStarted job: job0 attempt: 2 waited: 1823s
              a attempt 2 Running since: 1828.000s on cube0 cube2
              out cube1/m03 by Case(case1)
              case1 cube1/m03 MachineDown Waiting
        "#]],
    );
}

#[test]
fn a_wiring_that_one_switch_refuses_and_another_never_answers_is_made_later() {
    check(
        "broken x3/n1
         silent y5
         submit a 4x4x8 for=10m limit=1h
         run 5m
         show
         heal y5
         run 15m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s SwitchRefused switch: x3 plan: plan0 n_ports: 1
            95s CaseOpened case: case0 target: y5 symptom: Silent severity: Degraded
            95s Drained target: y5 by: Case(case0)
            95s CaseMoved case: case0 state: Waiting
            95s JobNotified job: job0 attempt: 1 why: Fault case: case0
            95s JobRequeued job: job0 why: Fault case: case0 not_before: 95.000s
              a attempt 1 Queued since: 5.000s not_before: 95.000s held: false
              out y5 by Case(case0)
              case0 y5 Silent Waiting
            366s CaseMoved case: case0 state: Verifying
            367s CaseMoved case: case0 state: Probation until: 967.000s
            967s Undrained target: y5 by: Case(case0)
            967s CaseMoved case: case0 state: Closed
            967s JobPlaced job: job0 attempt: 2 n_parts: 2 kept_parts: 0
            967s BlueprintAdopted plan: plan1 parent: None generation: g2 job: job0 n_switches: 2 n_removed: 0 n_added: 4
            968s SwitchRefused switch: x3 plan: plan1 n_ports: 1
            968s BlueprintAdopted plan: plan2 parent: Some(plan1) generation: g3 job: job0 n_switches: 1 n_removed: 2 n_added: 0
            968s JobNotified job: job0 attempt: 2 why: StartFailed stage: Wiring
            968s CaseOpened case: case1 target: cube1/x/out/3 symptom: PortFailed severity: Critical
            968s Drained target: cube1/x/out/3 by: Case(case1)
            968s CaseMoved case: case1 state: Draining
            969s JobRequeued job: job0 why: Fault case: case1 not_before: 969.000s
            969s CaseMoved case: case1 state: Waiting
            969s JobPlaced job: job0 attempt: 3 n_parts: 2 kept_parts: 1
            969s BlueprintAdopted plan: plan3 parent: None generation: g4 job: job0 n_switches: 48 n_removed: 32 n_added: 66
            970s BlueprintDone plan: plan3 job: job0
            990s JobStarted job: job0 attempt: 3 waited: 985s
              a attempt 3 Running since: 990.000s on cube0 cube2
              out cube1/x/out/3 by Case(case1)
              case1 cube1/x/out/3 PortFailed Waiting
        "#]],
    );
}

#[test]
fn polls_are_counted_over_a_restart_and_one_answer_begins_the_count_anew() {
    let mut world = World::new(&pods(&[4]), Settings::simulated());
    let n_missed = |world: &World| world.core.state().switches.values().map(|it| it.n_missed).max();
    world.play("silent z5\nrun 130s");
    assert_eq!(n_missed(&world), Some(2));
    world.play("restart\nrun 31s");
    // The first read after a restart was not answered either.
    assert_eq!(n_missed(&world), Some(3));
    assert_eq!(world.core.state().open_cases.len(), 1);

    let mut world = World::new(&pods(&[4]), Settings::simulated());
    world.play("silent z5\nrun 130s\nheal z5\nrun 1m\nsilent z5\nrun 2m");
    assert_eq!(n_missed(&world), Some(2));
    assert!(world.core.state().cases.is_empty());
    world.replay_all();
}

/// Goal: no number of silences makes a job fail.  Method: whenever the switch has answered again
/// for long enough, it falls silent just before the job is wired.
#[test]
fn a_job_that_meets_a_silent_switch_again_and_again_is_never_lost() {
    let mut world = World::new(&pods(&[4]), Settings::simulated());
    world.play("silent y0\nsubmit a 4x4x16 for=10m limit=1h\nrun 4m");
    for _ in 1..12 {
        world.play("heal y0\nrun 10m\nsilent y0\nrun 4m");
    }
    world.play("heal y0\nrun 1h");
    let known = &world.core.state().jobs[world.jobs["a"]];
    assert_eq!((&known.state, known.attempt), (&JobState::Finished, 13));
    let is_failed = |it: &Event| matches!(it, Event::Notified(StopWhy::StartFailed { .. }));
    assert!(!known.timeline.iter().any(|it| is_failed(&it.1)), "{:?}", known.timeline);
    world.replay_all();
}

/// What is with the fibres of a switch that does not answer speaks against no machine at their
/// other end; what is with those of one that answers does.
#[test]
fn a_repaired_machine_is_not_blamed_for_a_silent_switch() {
    for (switch, comes_back) in [("x0", true), ("x1", false)] {
        let mut world = World::new(&pods(&[16]), Settings::simulated());
        world.play(&format!(
            "silent {switch}
             run 3m
             dark cube0/x/in/0
             report cube0/m00 machine_down
             take bob case1
             finish bob case1
             run 1m"
        ));
        let case = world.core.state().cases.iter().last().unwrap();
        let is_back = matches!(case.state, CaseState::Probation { .. });
        assert_eq!(is_back, comes_back, "{}", world.lines);
    }
}
