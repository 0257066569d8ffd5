//! Hosts from topology files: what is wrong with a file keeps jobs off the host until it is mended.

use expect_test::{Expect, expect};
use selvedge_model::spec::Plant;

use super::world::World;
use crate::input::Ask;
use crate::preflight;
use crate::settings::Settings;

/// Two GPUs with NVLinks to each other; `extra` stands in the first one's <gpu>.
fn xml(extra: &str, indent: &str) -> String {
    let mut text = String::from("<system version=\"1\">\n");
    let cpu = "<cpu numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\" vendor=\"AuthenticAMD\" \
               familyid=\"175\" modelid=\"1\">";
    text.push_str(&format!("{indent}{cpu}\n"));
    for (rank, own, far) in
        [(0, "0000:03:00.0", "0000:04:00.0"), (1, "0000:04:00.0", "0000:03:00.0")]
    {
        let extra = if rank == 0 { extra } else { "" };
        text.push_str(&format!(
            "{indent}<pci busid=\"{own}\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" \
             link_width=\"16\">\n\
             {indent}<gpu dev=\"{rank}\" sm=\"80\" rank=\"{rank}\" gdr=\"1\">\n\
             {indent}<nvlink target=\"{far}\" count=\"4\" tclass=\"0x030200\"/>\n\
             {extra}{indent}</gpu>\n{indent}</pci>\n"
        ));
    }
    text.push_str(&format!("{indent}</cpu>\n</system>\n"));
    text
}

/// Three hosts, the first with a file of its own.
fn plant(own: &str) -> String {
    let text = "format = 1\nname = \"t\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 3\n\
                topology = \"two.xml\"\n\
                [[machine]]\nname = \"host0\"\ntopology = \"own.xml\"\n";
    let files = [("two.xml".to_owned(), xml("", " ")), ("own.xml".to_owned(), own.to_owned())];
    Plant::with_topologies(text, &files)
}

fn check(own: &str, script: &[(&str, Option<&str>)], expect: Expect) {
    let mut world = World::new(&plant(own), Settings::simulated());
    for (lines, applied) in script {
        world.play(lines);
        if let Some(own) = applied {
            world.ask("ops", Ask::ApplyPlant { plant: plant(own), expected: 1 });
        }
    }
    world.replay_all();
    expect.assert_eq(&world.lines);
}

#[test]
fn a_host_whose_file_is_wrong_is_kept_out_until_the_file_is_mended() {
    // A link to the GPU's own bus id: NCCL works on what is not there.
    let loop_link = " <nvlink target=\"0000:03:00.0\" count=\"4\" tclass=\"0x030200\"/>\n";
    check(
        &xml(loop_link, " "),
        &[
            ("crew 10m\nsubmit both hosts=3 for=10m limit=1h\nrun 20m\nshow", Some(&xml("", " "))),
            ("run 2h\nshow", None),
        ],
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            7s CaseOpened case: case0 target: host0 symptom: TopologyFaulty severity: Critical
            7s Drained target: host0 by: Case(case0)
            7s CaseMoved case: case0 state: Draining
            7s JobNotified job: job0 attempt: 1 why: Fault case: case0
            7s JobRequeued job: job0 why: Fault case: case0 not_before: 7.000s
            7s CaseMoved case: case0 state: Waiting
            67s CaseMoved case: case0 state: UnderRepair
            607s CaseMoved case: case0 state: Verifying
            609s CaseMoved case: case0 state: Waiting
            669s CaseMoved case: case0 state: UnderRepair
              both attempt 1 Queued since: 5.000s not_before: 7.000s held: false
              out host0 by Case(case0)
              case0 host0 TopologyFaulty UnderRepair
            1205s PlantApplied version: 2 n_parts: 3 n_added: 0 n_retired: 0
            1209s CaseMoved case: case0 state: Verifying
            1221s CaseMoved case: case0 state: Probation until: 1821.000s
            1821s Undrained target: host0 by: Case(case0)
            1821s CaseMoved case: case0 state: Closed
            1821s JobPlaced job: job0 attempt: 2 n_parts: 3 kept_parts: 0
            1836s JobStarted job: job0 attempt: 2 waited: 1831s
            2436s JobStopped job: job0 attempt: 2 exit: Done kept: 600
            2436s JobFinished job: job0
              both attempt 2 Finished
        "#]],
    );
}

#[test]
fn a_doubtful_file_is_told_once_and_stops_nobody() {
    // A link to a GPU that is not there: a warning of `topo lint`.
    let absent = " <nvlink target=\"0000:09:00.0\" count=\"4\" tclass=\"0x030200\"/>\n";
    check(
        &xml(absent, " "),
        &[(
            "submit a hosts=3 for=10m limit=1h\nrun 30m\nsubmit b hosts=3 for=10m limit=1h\nrun 1h\n\
             show",
            None,
        )],
        expect![[r#"
            5s JobSubmitted job: job0
            5s JobPlaced job: job0 attempt: 1 n_parts: 3 kept_parts: 0
            7s CaseOpened case: case0 target: host0 symptom: TopologyDoubtful severity: Transient
            20s JobStarted job: job0 attempt: 1 waited: 15s
            607s CaseMoved case: case0 state: Closed
            620s JobStopped job: job0 attempt: 1 exit: Done kept: 600
            620s JobFinished job: job0
            1805s JobSubmitted job: job1
            1805s JobPlaced job: job1 attempt: 1 n_parts: 3 kept_parts: 0
            1820s JobStarted job: job1 attempt: 1 waited: 15s
            2420s JobStopped job: job1 attempt: 1 exit: Done kept: 600
            2420s JobFinished job: job1
              a attempt 1 Finished
              b attempt 1 Finished
        "#]],
    );
}

#[test]
fn evidence_names_the_finding_and_the_fix_as_long_as_the_file_has_it() {
    let text = plant(&xml("", "\t"));
    let built = Plant::parse("t.toml", &text).expect("a plant");
    let fabric = selvedge_family::build(&built).expect("a fabric");
    let [own, other] = ["host0", "host1"].map(|it| fabric.part_named(it).expect("a host"));
    let faults = fabric.file_faults_of(own);
    assert!(faults.iter().any(|it| it.is_error && it.name == "syntax"), "{faults:?}");
    let rule = u32::from(faults[0].rule);
    let words = preflight::words_of_rule(&fabric, own, rule).expect("the file has it");
    expect![[r#"
        [syntax] 2:1: NCCL refuses a tab; indent with spaces; \
        write the file as NCCL does; `selvedge topo lint --fix` does it"#]]
    .assert_eq(&words.replace("spaces; ", "spaces; \\\n"));
    assert_eq!(preflight::words_of_rule(&fabric, other, rule), None);
}
