//! Jobs in replicas: what their marks say of machines.

use expect_test::{Expect, expect};
use selvedge_model::fault::Target;
use selvedge_model::id::PoolId;
use selvedge_model::job::{Hold, Place};

use super::world::World;
use crate::family;
use crate::settings::Settings;

const HOSTS: &str = "format = 1\nname = \"mpi\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 6\n";
const BOARDS: &str = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\n\
                      groups = \"3x4\"\n";

fn check(script: &str, expect: Expect) {
    let mut world = World::new(HOSTS, Settings::simulated());
    world.play(script);
    world.replay_all();
    expect.assert_eq(&world.lines);
}

#[test]
fn a_third_mark_within_a_day_keeps_new_jobs_off_the_machine_and_the_old_one_runs_on() {
    check(
        "
        crew 10m
        submit a hosts=6 for=6h limit=9h redundancy=3
        run 5m
        mark mpirun host1 2 1 4711
        run 30m
        mark mpirun host1/gpu3 2 1 5000
        run 1h
        mark mpirun host1 2 1 9000
        run 1h
        show
        submit b hosts=6 for=1h limit=2h redundancy=3
        run 10h
        show
        ",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 6 kept_parts: 0
            20s JobStarted job: job0 attempt: 1 waited: 15s
            305s ReplicaMarked target: host1 job: Some(job0) rank: 2 set: 1 call: 4711
            305s CaseOpened case: case0 target: host1 symptom: Marked severity: Transient
            905s CaseMoved case: case0 state: Closed
            2105s ReplicaMarked target: host1 job: Some(job0) rank: 2 set: 1 call: 5000
            2105s CaseOpened case: case1 target: host1 symptom: Marked severity: Transient
            2705s CaseMoved case: case1 state: Closed
            5705s ReplicaMarked target: host1 job: Some(job0) rank: 2 set: 1 call: 9000
            5705s CaseOpened case: case2 target: host1 symptom: Marked severity: Degraded
            5705s Drained target: host1 by: Case(case2)
            5705s CaseMoved case: case2 state: Draining
              a attempt 1 Running since: 20.000s on host0 host1 host2 host3 host4 host5
              out host1 by Case(case2)
              case2 host1 Marked Draining
            9305s JobSubmitted job: job1
            21620s JobStopped job: job0 attempt: 1 exit: Done kept: 21600
            21620s CaseMoved case: case2 state: Waiting
            21620s JobFinished job: job0
            21680s CaseMoved case: case2 state: UnderRepair
            22220s CaseMoved case: case2 state: Verifying
            22232s CaseMoved case: case2 state: Probation until: 22832.000s
            22832s Undrained target: host1 by: Case(case2)
            22832s CaseMoved case: case2 state: Closed
            22832s JobPlaced job: job1 attempt: 1 n_parts: 6 kept_parts: 0
            22847s JobStarted job: job1 attempt: 1 waited: 13542s
            26447s JobStopped job: job1 attempt: 1 exit: Done kept: 3600
            26447s JobFinished job: job1
              a attempt 1 Finished
              b attempt 1 Finished
        "#]],
    );
}

#[test]
fn marks_a_day_apart_are_told_and_take_nothing_out() {
    check(
        "
        mark mpirun host0 0 0 1
        run 13h
        mark mpirun host0 0 0 2
        run 13h
        mark mpirun host0 0 0 3
        run 1h
        show
        ",
        expect![[r#"
            5s ReplicaMarked target: host0 job: None rank: 0 set: 0 call: 1
            5s CaseOpened case: case0 target: host0 symptom: Marked severity: Transient
            605s CaseMoved case: case0 state: Closed
            46805s ReplicaMarked target: host0 job: None rank: 0 set: 0 call: 2
            46805s CaseOpened case: case1 target: host0 symptom: Marked severity: Transient
            47405s CaseMoved case: case1 state: Closed
            93605s ReplicaMarked target: host0 job: None rank: 0 set: 0 call: 3
            93605s CaseOpened case: case2 target: host0 symptom: Marked severity: Transient
            94205s CaseMoved case: case2 state: Closed
        "#]],
    );
}

#[test]
fn what_is_no_machine_cannot_be_marked_and_what_is_no_redundancy_is_refused() {
    check(
        "
        mark mpirun host0 0 0 1
        mark mpirun host0/nic0/port 0 0 1
        mark mpirun host0 0 3 2
        submit a hosts=3 for=1h redundancy=2
        submit a hosts=1 for=1h redundancy=3
        ",
        expect![[r#"
            5s ReplicaMarked target: host0 job: None rank: 0 set: 0 call: 1
            5s CaseOpened case: case0 target: host0 symptom: Marked severity: Transient
              refused: host0/nic0/port is no machine; replicas run on machines, hosts and boards
              refused: replicas are 0, 1 and 2; there is no 3
              refused: redundancy is 1 or 3, not 2
              refused: replicas run on three machines at least; 1 host has 1
        "#]],
    );
}

/// Method: a mark that is said twice is one, a third that is not of the job none.
#[test]
fn a_job_s_marks_are_of_its_own_machines_and_each_counts_once() {
    check(
        "
        crew 10m
        submit a hosts=3 for=6h limit=9h redundancy=3
        run 5m
        mark mpirun host1 2 1 4711
        run 30s
        mark mpirun host1 2 1 4711
        mark mpirun host5 2 1 4711
        run 1m
        mark mpirun host1 2 1 4711
        show
        run 10h
        mark mpirun host1 2 1 4712
        ",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            20s JobStarted job: job0 attempt: 1 waited: 15s
            305s ReplicaMarked target: host1 job: Some(job0) rank: 2 set: 1 call: 4711
            305s CaseOpened case: case0 target: host1 symptom: Marked severity: Transient
              refused: job0 does not run on host5
            395s ReplicaMarked target: host1 job: Some(job0) rank: 2 set: 1 call: 4711
              a attempt 1 Running since: 20.000s on host0 host1 host2
              case0 host1 Marked Observed
            995s CaseMoved case: case0 state: Closed
            21620s JobStopped job: job0 attempt: 1 exit: Done kept: 21600
            21620s JobFinished job: job0
              refused: job0 does not run on host1
        "#]],
    );
    check(
        "
        submit a hosts=3 for=6h limit=9h
        run 5m
        mark mpirun host1 2 1 4711
        ",
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            20s JobStarted job: job0 attempt: 1 waited: 15s
              refused: job0 does not run in replicas
        "#]],
    );
}

/// Method: the clusters of eight boards held in two rows: within two hops, as many as there can be;
/// those of hosts without cables are taken in their order.
#[test]
fn the_machines_of_a_place_make_as_many_clusters_as_they_can() {
    let found = |plant: &str, n: usize| {
        let world = World::new(plant, Settings::simulated());
        let fabric = world.core.fabric();
        let hold = |part| Hold { part, seats: fabric.template_of(part).all_seats() };
        let holds = fabric.parts().ids().take(n).map(hold).collect();
        let place = Place::of(PoolId::new(0), holds);
        let found = family::clusters(fabric, &place);
        let named = |it: &[Target; 3]| it.map(|it| fabric.path(it)).join(" ");
        let lines: Vec<String> = found.machines.iter().map(named).collect();
        (lines.join(", "), [found.n_near, found.n_joined], found.hops_max, found.n_left)
    };
    expect![[r#"
        (
            "board0.0 board0.1 board1.0, board0.2 board0.3 board1.2",
            [
                2,
                2,
            ],
            2,
            2,
        )
    "#]]
    .assert_debug_eq(&found(BOARDS, 8));
    expect![[r#"
        (
            "host0 host1 host2, host3 host4 host5",
            [
                0,
                0,
            ],
            0,
            0,
        )
    "#]]
    .assert_debug_eq(&found(HOSTS, 6));
}
