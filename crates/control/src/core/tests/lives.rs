//! Jobs from submit to their end.

use expect_test::expect;
use selvedge_model::id::JobId;
use selvedge_model::job::Demand;

use super::world::{World, check, pods, spec};
use crate::core::Refused;
use crate::input::{Ask, Input};
use crate::limits;
use crate::settings::Settings;

#[test]
fn a_job_goes_through_every_stage_and_finishes() {
    check(
        "stages on
         submit a 4x4x8 for=10m limit=1h
         run 1h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s JobStaged job: job0 attempt: 1 stage: Wiring
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job0
            6s JobStaged job: job0 attempt: 1 stage: Training
            11s JobStaged job: job0 attempt: 1 stage: Inspecting
            13s JobStaged job: job0 attempt: 1 stage: Exercising
            23s JobStaged job: job0 attempt: 1 stage: Discovering
            24s JobStaged job: job0 attempt: 1 stage: Programming
            25s JobStaged job: job0 attempt: 1 stage: Dispatching
            26s JobStarted job: job0 attempt: 1 waited: 21s
            626s JobStopped job: job0 attempt: 1 exit: Done kept: 600
            626s JobFinished job: job0
              a attempt 1 Finished
        "#]],
    );
}

#[test]
fn a_job_within_a_cube_needs_no_wiring_and_shares_its_cube() {
    check(
        "stages on
         submit a 2x2x1 for=10m
         submit b 2x2x4 for=10m
         run 1m
         show
         run 1h",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobStaged job: job0 attempt: 1 stage: Inspecting
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 1 kept_parts: 0
            5s JobStaged job: job1 attempt: 1 stage: Inspecting
            7s JobStaged job: job0 attempt: 1 stage: Exercising
            7s JobStaged job: job1 attempt: 1 stage: Exercising
            17s JobStaged job: job0 attempt: 1 stage: Discovering
            17s JobStaged job: job1 attempt: 1 stage: Discovering
            18s JobStaged job: job0 attempt: 1 stage: Programming
            18s JobStaged job: job1 attempt: 1 stage: Programming
            19s JobStaged job: job0 attempt: 1 stage: Dispatching
            19s JobStaged job: job1 attempt: 1 stage: Dispatching
            20s JobStarted job: job0 attempt: 1 waited: 15s
            20s JobStarted job: job1 attempt: 1 waited: 15s
              a attempt 1 Running since: 20.000s on cube0:33
              b attempt 1 Running since: 20.000s on cube0:ff00ff00
            620s JobStopped job: job0 attempt: 1 exit: Done kept: 600
            620s JobFinished job: job0
            620s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            620s JobFinished job: job1
        "#]],
    );
}

#[test]
fn sides_in_any_order_name_one_shape_and_bad_ones_are_refused() {
    check(
        "submit a 8x4x4 for=1m
         submit b 3x4x4
         submit c 16x16x16
         submit d hosts=1
         submit e hosts=0
         submit f 4x4x4 prio=12
         submit g 4x4x4 limit=0s
         run 5m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
              refused: 3x4x4 is neither whole cubes (each side a multiple of 4) nor one of 1x1x1, 2x2x1, 2x2x2, 2x2x4 and 2x4x4; nearest are 2x4x4 and 4x4x4
              refused: 16x16x16 does not fit this plant: its largest pool has 4 parts for it
              refused: 1 host does not fit this plant: its largest pool has 0 parts for it
              refused: a job needs at least one host
              refused: priority 12 is above 9
              refused: limit must be longer than nothing
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            86s JobStopped job: job0 attempt: 1 exit: Done kept: 60
            86s JobFinished job: job0
              a attempt 1 Finished
        "#]],
    );
}

#[test]
fn work_of_no_length_is_done_at_once() {
    check(
        "submit a 4x4x4 for=0s",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobFinished job: job0
        "#]],
    );
}

#[test]
fn a_key_makes_a_repeated_submit_the_same() {
    check(
        "submit a 4x4x4 for=1m key=k
         submit a 4x4x4 for=1m key=k
         run 10m",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
              refused: this key was used for job0
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            86s JobStopped job: job0 attempt: 1 exit: Done kept: 60
            86s JobFinished job: job0
        "#]],
    );
}

#[test]
fn a_job_at_its_limit_gets_its_notice_and_fails() {
    check(
        "submit a 4x4x4 for=1h limit=10m
         run 20m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            626s JobNotified job: job0 attempt: 1 why: Limit
            631s JobStopped job: job0 attempt: 1 exit: Told kept: 605
            631s JobFailed job: job0 why: Limit
              a attempt 1 Failed why: Limit
        "#]],
    );
}

#[test]
fn tasks_that_ignore_the_notice_are_killed_after_it() {
    check(
        "submit a 4x4x4 for=1h limit=10m
         stubborn a
         run 20m",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            626s JobNotified job: job0 attempt: 1 why: Limit
            687s JobStopped job: job0 attempt: 1 exit: Told kept: 600
            687s JobFailed job: job0 why: Limit
        "#]],
    );
}

#[test]
fn the_limit_counts_anew_after_each_interruption() {
    check(
        "submit a 4x4x4 for=15m limit=10m
         run 8m
         requeue a
         run 20m",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            485s JobNotified job: job0 attempt: 1 why: Requeued
            490s JobStopped job: job0 attempt: 1 exit: Told kept: 464
            490s JobRequeued job: job0 why: Requeued not_before: 490.000s
            490s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            490s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            490s BlueprintDone plan: plan1 job: job0
            510s JobStarted job: job0 attempt: 2 waited: 505s
            946s JobStopped job: job0 attempt: 2 exit: Done kept: 900
            946s JobFinished job: job0
        "#]],
    );
}

#[test]
fn a_job_that_fails_by_itself_is_retried_with_back_off_and_then_given_up() {
    check(
        "submit a 2x2x1 for=1h retries=2
         fails a 3 1m
         run 20m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            20s JobStarted job: job0 attempt: 1 waited: 15s
            80s JobStopped job: job0 attempt: 1 exit: Failed(3) kept: 0
            80s JobRequeued job: job0 why: Failed status: 3 not_before: 110.000s
            110s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            125s JobStarted job: job0 attempt: 2 waited: 2m
            185s JobStopped job: job0 attempt: 2 exit: Failed(3) kept: 0
            185s JobRequeued job: job0 why: Failed status: 3 not_before: 245.000s
            245s JobPlaced job: job0 attempt: 3 n_parts: 1 kept_parts: 0
            260s JobStarted job: job0 attempt: 3 waited: 255s
            320s JobStopped job: job0 attempt: 3 exit: Failed(3) kept: 0
            320s JobFailed job: job0 why: Exit status: 3
              a attempt 3 Failed why: Exit status: 3
        "#]],
    );
}

#[test]
fn a_job_whose_tasks_are_lost_goes_on_from_its_last_checkpoint() {
    check(
        "submit a 4x4x4 for=1h
         fails a lost 25m
         run 30m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            1526s JobStopped job: job0 attempt: 1 exit: Lost kept: 1200
            1526s JobRequeued job: job0 why: Lost not_before: 1586.000s
            1586s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 1
            1586s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            1586s BlueprintDone plan: plan1 job: job0
            1606s JobStarted job: job0 attempt: 2 waited: 1601s
              a attempt 2 Running since: 1606.000s on cube0
        "#]],
    );
}

#[test]
fn orders_are_obeyed_while_a_job_waits_or_starts() {
    check(
        "submit q 16x16x16
         submit a 4x4x16 for=1h
         submit b 4x4x4 for=1h
         hold b
         hold b
         release a
         requeue b
         release b
         hold b
         cancel b
         cancel b
         cancel a
         run 1m
         show",
        expect![[r#"
              refused: 16x16x16 does not fit this plant: its largest pool has 4 parts for it
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 4 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 192
            5s JobSubmitted job: job1
            5s JobHeld job: job1 by: "ops"
              refused: job1 is held; it cannot be held
              refused: job0 is starting; it cannot be released
              refused: job1 is held; it cannot be requeued
            5s JobReleased job: job1 by: "ops"
            5s JobHeld job: job1 by: "ops"
            5s JobCancelled job: job1
              refused: job1 is cancelled; it cannot be cancelled
            5s JobNotified job: job0 attempt: 1 why: Cancelled
            6s JobCancelled job: job0
              a attempt 1 Cancelled
              b attempt 0 Cancelled
        "#]],
    );
}

#[test]
fn a_job_starts_when_the_one_that_it_waited_behind_is_cancelled() {
    check(
        "submit a 4x4x8 for=9h
         submit b 4x4x16 for=1h
         submit c 4x4x8 for=9h
         run 1m
         cancel b
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            5s JobSubmitted job: job1
            5s JobSubmitted job: job2
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            65s JobCancelled job: job1
            65s JobPlaced job: job2 attempt: 1 n_parts: 2 kept_parts: 0
            65s BlueprintAdopted plan: plan1 parent: None generation: g3 job: job2 n_switches: 48 n_removed: 0 n_added: 96
              a attempt 1 Running since: 26.000s on cube0 cube1
              b attempt 0 Cancelled
              c attempt 1 Starting stage: Wiring since: 65.000s asks: 1 on cube2 cube3
        "#]],
    );
}

#[test]
fn orders_are_obeyed_while_a_job_runs_or_stops() {
    check(
        "submit c 4x4x4 for=1h
         run 1m
         hold c
         requeue c
         run 1m
         requeue c
         hold c
         run 5m
         cancel c
         cancel c
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
              refused: job0 is running; it cannot be held
            65s JobNotified job: job0 attempt: 1 why: Requeued
            70s JobStopped job: job0 attempt: 1 exit: Told kept: 44
            70s JobRequeued job: job0 why: Requeued not_before: 70.000s
            70s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 0
            70s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g3 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            70s BlueprintDone plan: plan1 job: job0
            90s JobStarted job: job0 attempt: 2 waited: 85s
            125s JobNotified job: job0 attempt: 2 why: Requeued
              refused: job0 is stopping; it cannot be held
            130s JobStopped job: job0 attempt: 2 exit: Told kept: 84
            130s JobRequeued job: job0 why: Requeued not_before: 130.000s
            130s JobPlaced job: job0 attempt: 3 n_parts: 1 kept_parts: 0
            130s BlueprintAdopted plan: plan2 parent: Some(plan1) generation: g5 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            130s BlueprintDone plan: plan2 job: job0
            150s JobStarted job: job0 attempt: 3 waited: 145s
            425s JobNotified job: job0 attempt: 3 why: Cancelled
            430s JobStopped job: job0 attempt: 3 exit: Told kept: 364
            430s JobCancelled job: job0
              c attempt 3 Cancelled
        "#]],
    );
}

#[test]
fn nothing_that_would_delay_the_promised_head_passes_it() {
    check(
        "submit a 4x4x8 for=30m limit=1h firm
         submit head 4x4x16 for=10m limit=30m
         submit short 4x4x4 for=10m limit=30m
         submit long 4x4x4 for=10m limit=2h
         submit endless 2x2x1 for=1m
         run 1m
         show
         run 2h",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            5s JobSubmitted job: job1
            5s JobSubmitted job: job2
            5s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan1 parent: None generation: g2 job: job2 n_switches: 48 n_removed: 0 n_added: 48
            5s JobSubmitted job: job3
            5s JobSubmitted job: job4
            6s BlueprintDone plan: plan0 job: job0
            6s BlueprintDone plan: plan1 job: job2
            26s JobStarted job: job0 attempt: 1 waited: 21s
            26s JobStarted job: job2 attempt: 1 waited: 21s
              a attempt 1 Running since: 26.000s on cube0 cube1
              endless attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              head attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              long attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              short attempt 1 Running since: 26.000s on cube2
            626s JobStopped job: job2 attempt: 1 exit: Done kept: 600
            626s JobFinished job: job2
            1826s JobStopped job: job0 attempt: 1 exit: Done kept: 1800
            1826s JobFinished job: job0
            1826s JobPlaced job: job1 attempt: 1 n_parts: 4 kept_parts: 0
            1826s BlueprintAdopted plan: plan2 parent: None generation: g5 job: job1 n_switches: 48 n_removed: 32 n_added: 80
            1827s BlueprintDone plan: plan2 job: job1
            1847s JobStarted job: job1 attempt: 1 waited: 1842s
            2447s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            2447s JobFinished job: job1
            2447s JobPlaced job: job3 attempt: 1 n_parts: 1 kept_parts: 0
            2447s BlueprintAdopted plan: plan3 parent: None generation: g7 job: job3 n_switches: 16 n_removed: 32 n_added: 16
            2447s JobPlaced job: job4 attempt: 1 n_parts: 1 kept_parts: 0
            2448s BlueprintDone plan: plan3 job: job3
            2462s JobStarted job: job4 attempt: 1 waited: 2457s
            2468s JobStarted job: job3 attempt: 1 waited: 2463s
            2522s JobStopped job: job4 attempt: 1 exit: Done kept: 60
            2522s JobFinished job: job4
            3068s JobStopped job: job3 attempt: 1 exit: Done kept: 600
            3068s JobFinished job: job3
        "#]],
    );
}

#[test]
fn nothing_passes_a_head_that_waits_for_a_job_without_limit() {
    check(
        "submit a 4x4x8 for=30m firm
         submit head 4x4x16 for=10m limit=30m
         submit short 2x2x1 for=1m limit=2m
         run 1m
         show
         run 1h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            5s JobSubmitted job: job1
            5s JobSubmitted job: job2
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
              a attempt 1 Running since: 26.000s on cube0 cube1
              head attempt 0 Queued since: 5.000s not_before: 5.000s held: false
              short attempt 0 Queued since: 5.000s not_before: 5.000s held: false
            1826s JobStopped job: job0 attempt: 1 exit: Done kept: 1800
            1826s JobFinished job: job0
            1826s JobPlaced job: job1 attempt: 1 n_parts: 4 kept_parts: 0
            1826s BlueprintAdopted plan: plan1 parent: None generation: g3 job: job1 n_switches: 48 n_removed: 16 n_added: 112
            1827s BlueprintDone plan: plan1 job: job1
            1847s JobStarted job: job1 attempt: 1 waited: 1842s
            2447s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            2447s JobFinished job: job1
            2447s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            2462s JobStarted job: job2 attempt: 1 waited: 2457s
            2522s JobStopped job: job2 attempt: 1 exit: Done kept: 60
            2522s JobFinished job: job2
              a attempt 1 Finished
              head attempt 1 Finished
              short attempt 1 Finished
        "#]],
    );
}

#[test]
fn aging_lets_an_old_job_pass_a_new_one_of_higher_priority() {
    check(
        "submit a 4x4x16 for=7h limit=9h firm
         submit old 4x4x16 for=1m limit=1h
         run 410m
         submit new 4x4x16 for=1m limit=1h prio=1
         run 1h
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 4 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 192
            5s JobSubmitted job: job1
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            24605s JobSubmitted job: job2
            25226s JobStopped job: job0 attempt: 1 exit: Done kept: 25200
            25226s JobFinished job: job0
            25226s JobPlaced job: job1 attempt: 1 n_parts: 4 kept_parts: 0
            25226s BlueprintAdopted plan: plan1 parent: None generation: g3 job: job1 n_switches: 0 n_removed: 0 n_added: 0
            25226s BlueprintDone plan: plan1 job: job1
            25246s JobStarted job: job1 attempt: 1 waited: 25241s
            25306s JobStopped job: job1 attempt: 1 exit: Done kept: 60
            25306s JobFinished job: job1
            25306s JobPlaced job: job2 attempt: 1 n_parts: 4 kept_parts: 0
            25306s BlueprintAdopted plan: plan2 parent: None generation: g5 job: job2 n_switches: 0 n_removed: 0 n_added: 0
            25306s BlueprintDone plan: plan2 job: job2
            25326s JobStarted job: job2 attempt: 1 waited: 721s
            25386s JobStopped job: job2 attempt: 1 exit: Done kept: 60
            25386s JobFinished job: job2
              a attempt 1 Finished
              new attempt 1 Finished
              old attempt 1 Finished
        "#]],
    );
}

#[test]
fn a_preempted_job_does_not_come_back_before_whom_it_made_room_for() {
    check(
        "submit low 4x4x16 for=1h limit=2h
         run 15m
         submit high 4x4x8 for=10m limit=1h prio=5
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
            905s JobSubmitted job: job1
            905s JobNotified job: job0 attempt: 1 why: Preempted by: job1
            910s JobStopped job: job0 attempt: 1 exit: Told kept: 884
            910s JobRequeued job: job0 why: Preempted by: job1 not_before: 910.000s
            910s JobPlaced job: job1 attempt: 1 n_parts: 2 kept_parts: 0
            910s BlueprintAdopted plan: plan1 parent: None generation: g3 job: job1 n_switches: 16 n_removed: 32 n_added: 16
            911s BlueprintDone plan: plan1 job: job1
            931s JobStarted job: job1 attempt: 1 waited: 26s
              high attempt 1 Running since: 931.000s on cube0 cube3
              low attempt 1 Queued since: 910.000s not_before: 910.000s held: false
            1531s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            1531s JobFinished job: job1
            1531s JobPlaced job: job0 attempt: 2 n_parts: 4 kept_parts: 0
            1531s BlueprintAdopted plan: plan2 parent: Some(plan0) generation: g5 job: job0 n_switches: 16 n_removed: 16 n_added: 32
            1532s BlueprintDone plan: plan2 job: job0
            1552s JobStarted job: job0 attempt: 2 waited: 1547s
            4268s JobStopped job: job0 attempt: 2 exit: Done kept: 3600
            4268s JobFinished job: job0
              high attempt 1 Finished
              low attempt 2 Finished
        "#]],
    );
}

#[test]
fn a_firm_job_and_one_of_equal_priority_are_not_preempted() {
    check(
        "submit firm 4x4x8 for=1h limit=2h firm
         submit equal 4x4x8 for=1h limit=2h prio=5
         run 1m
         submit high 4x4x4 for=10m limit=1h prio=5
         run 1m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 96
            5s JobSubmitted job: job1
            5s JobPlaced job: job1 attempt: 1 n_parts: 2 kept_parts: 0
            5s BlueprintAdopted plan: plan1 parent: None generation: g2 job: job1 n_switches: 48 n_removed: 0 n_added: 96
            6s BlueprintDone plan: plan0 job: job0
            6s BlueprintDone plan: plan1 job: job1
            26s JobStarted job: job0 attempt: 1 waited: 21s
            26s JobStarted job: job1 attempt: 1 waited: 21s
            65s JobSubmitted job: job2
              equal attempt 1 Running since: 26.000s on cube2 cube3
              firm attempt 1 Running since: 26.000s on cube0 cube1
              high attempt 0 Queued since: 65.000s not_before: 65.000s held: false
        "#]],
    );
}

#[test]
fn a_job_that_starts_nowhere_is_tried_with_back_off_and_given_up() {
    check(
        "level observe
         dark cube0/x/out/3
         dark cube1/x/out/3
         dark cube2/x/out/3
         dark cube3/x/out/3
         submit a 4x4x4
         run 2h
         show",
        expect![[r#"
            5s LevelSet level: Observe by: "ops"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 1 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            6s BlueprintDone plan: plan0 job: job0
            11s CaseOpened case: case0 target: cube0/x/out/3 symptom: LinkDown severity: Fatal
            11s JobNotified job: job0 attempt: 1 why: StartFailed stage: Training
            11s JobRequeued job: job0 why: StartFailed stage: Training not_before: 11.000s
            11s JobPlaced job: job0 attempt: 2 n_parts: 1 kept_parts: 1
            11s BlueprintAdopted plan: plan1 parent: Some(plan0) generation: g2 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            11s BlueprintDone plan: plan1 job: job0
            16s JobNotified job: job0 attempt: 2 why: StartFailed stage: Training
            16s JobRequeued job: job0 why: StartFailed stage: Training not_before: 16.000s
            16s JobPlaced job: job0 attempt: 3 n_parts: 1 kept_parts: 1
            16s BlueprintAdopted plan: plan2 parent: Some(plan1) generation: g3 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            16s BlueprintDone plan: plan2 job: job0
            21s JobNotified job: job0 attempt: 3 why: StartFailed stage: Training
            21s JobRequeued job: job0 why: StartFailed stage: Training not_before: 51.000s
            51s JobPlaced job: job0 attempt: 4 n_parts: 1 kept_parts: 0
            51s BlueprintAdopted plan: plan3 parent: Some(plan2) generation: g4 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            52s BlueprintDone plan: plan3 job: job0
            57s CaseOpened case: case1 target: cube1/x/out/3 symptom: LinkDown severity: Fatal
            57s JobNotified job: job0 attempt: 4 why: StartFailed stage: Training
            57s JobRequeued job: job0 why: StartFailed stage: Training not_before: 117.000s
            117s JobPlaced job: job0 attempt: 5 n_parts: 1 kept_parts: 0
            117s BlueprintAdopted plan: plan4 parent: Some(plan3) generation: g5 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            118s BlueprintDone plan: plan4 job: job0
            123s CaseOpened case: case2 target: cube2/x/out/3 symptom: LinkDown severity: Fatal
            123s JobNotified job: job0 attempt: 5 why: StartFailed stage: Training
            123s JobRequeued job: job0 why: StartFailed stage: Training not_before: 243.000s
            243s JobPlaced job: job0 attempt: 6 n_parts: 1 kept_parts: 0
            243s BlueprintAdopted plan: plan5 parent: Some(plan4) generation: g6 job: job0 n_switches: 48 n_removed: 0 n_added: 48
            244s BlueprintDone plan: plan5 job: job0
            249s CaseOpened case: case3 target: cube3/x/out/3 symptom: LinkDown severity: Fatal
            249s JobNotified job: job0 attempt: 6 why: StartFailed stage: Training
            249s JobRequeued job: job0 why: StartFailed stage: Training not_before: 489.000s
            489s JobPlaced job: job0 attempt: 7 n_parts: 1 kept_parts: 0
            489s BlueprintAdopted plan: plan6 parent: Some(plan5) generation: g7 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            489s BlueprintDone plan: plan6 job: job0
            494s JobNotified job: job0 attempt: 7 why: StartFailed stage: Training
            494s JobRequeued job: job0 why: StartFailed stage: Training not_before: 974.000s
            974s JobPlaced job: job0 attempt: 8 n_parts: 1 kept_parts: 0
            974s BlueprintAdopted plan: plan7 parent: Some(plan6) generation: g8 job: job0 n_switches: 0 n_removed: 0 n_added: 0
            974s BlueprintDone plan: plan7 job: job0
            979s JobNotified job: job0 attempt: 8 why: StartFailed stage: Training
            979s JobFailed job: job0 why: Starts n: 8
              a attempt 8 Failed why: Starts n: 8
              case0 cube0/x/out/3 LinkDown Observed
              case1 cube1/x/out/3 LinkDown Observed
              case2 cube2/x/out/3 LinkDown Observed
              case3 cube3/x/out/3 LinkDown Observed
        "#]],
    );
}

#[test]
fn a_job_that_lost_what_was_freed_for_it_keeps_nobody_waiting() {
    check(
        "submit low 4x4x16 for=1h
         run 15m
         submit high 4x4x16 for=10m prio=5
         run 2s
         report cube0 machine_down
         run 2m
         submit small 4x4x4 for=10m
         run 5m
         show",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 4 kept_parts: 0
            5s BlueprintAdopted plan: plan0 parent: None generation: g1 job: job0 n_switches: 48 n_removed: 0 n_added: 192
            6s BlueprintDone plan: plan0 job: job0
            26s JobStarted job: job0 attempt: 1 waited: 21s
            905s JobSubmitted job: job1
            905s JobNotified job: job0 attempt: 1 why: Preempted by: job1
            907s CaseOpened case: case0 target: cube0 symptom: MachineDown severity: Fatal
            907s Drained target: cube0 by: Case(case0)
            907s CaseMoved case: case0 state: Draining
            908s JobStopped job: job0 attempt: 1 exit: Told kept: 884
            908s JobRequeued job: job0 why: Fault case: case0 not_before: 908.000s
            908s CaseMoved case: case0 state: Waiting
            1027s JobSubmitted job: job2
            1027s JobPlaced job: job2 attempt: 1 n_parts: 1 kept_parts: 0
            1027s BlueprintAdopted plan: plan1 parent: None generation: g3 job: job2 n_switches: 16 n_removed: 32 n_added: 16
            1028s BlueprintDone plan: plan1 job: job2
            1048s JobStarted job: job2 attempt: 1 waited: 21s
              high attempt 0 Queued since: 905.000s not_before: 905.000s held: false
              low attempt 1 Queued since: 5.000s not_before: 908.000s held: false
              small attempt 1 Running since: 1048.000s on cube1
              out cube0 by Case(case0)
              case0 cube0 MachineDown Waiting
        "#]],
    );
}

#[test]
fn a_full_queue_refuses_another_job() {
    let mut world = World::new(&pods(&[1]), Settings::simulated());
    world.play("submit a 4x4x4 firm\n submit b 4x4x4");
    let (key, _) = world.core.state.queue.pop_first().unwrap();
    let jobs = (0..limits::QUEUE_MAX).map(|it| (key, JobId::at(it)));
    world.core.state.queue = jobs.collect();
    let what = Ask::Submit { key: None, spec: spec("c", Demand::Shape("4x4x4".to_owned())) };
    let told = world.core.handle(world.now, Input::Ask { by: "me".to_owned(), what });
    assert!(matches!(told, Err(Refused::QueueFull { n: limits::QUEUE_MAX })), "{told:?}");
}
