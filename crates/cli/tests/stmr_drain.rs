//! A machine under a program in replicas is drained, on a control plane that runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

mod support;

use std::fs;

use mpi::Mpi;
use support::Up;

/// Goal: replicas on a machine that is to go lead no more when their program hears of it.  Method:
/// the program runs as a job's task and ends when it is asked to; the machine of its metas is
/// drained, and the summary says who led before and after.
#[test]
fn replicas_on_a_drained_machine_lead_no_more_before_their_program_hears_of_it() {
    let Some(mpi) = Mpi::all().into_iter().next() else { return };
    let up = Up::start();
    let folder = tempfile::tempdir().unwrap();
    let (summary, slice) = (folder.path().join("summary.json"), folder.path().join("slice.json"));
    let program = mpi.compile("signals", folder.path());
    let script = format!(
        "[ $SELVEDGE_ATTEMPT = 2 ] && exit 0; \
         if [ $SELVEDGE_TASK = 0 ]; then cp $SELVEDGE_SLICE_FILE {}; \
         exec {} mpirun -r 3 -n 2 --json-summary {} {}; fi; \
         trap 'exit 0' TERM; while :; do sleep 0.1; done",
        slice.display(),
        env!("CARGO_BIN_EXE_selvedge"),
        summary.display(),
        program.display()
    );
    let words = ["job", "submit", "--name", "lu", "--shape", "2x2x4", "--redundancy", "3", "--"];
    let id = up.json(&[&words[..], &["sh", "-c", &script]].concat())["id"].to_string();
    let log = |attempt: &str| up.text(&["job", "logs", &id, "--task", "0", "--attempt", attempt]);
    up.until_job(&id, "begun", |it| it["attempt"] == 1 && log("1").contains("begun"));
    let text = fs::read_to_string(&slice).unwrap();
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    let meta = row["clusters"][0][0].as_u64().unwrap() as usize;
    let machine = row["tasks"][meta]["machine"].as_str().unwrap();
    up.text(&["machine", "drain", machine, "--why", "a fan"]);
    up.until_job(&id, "finished", |it| it["state"] == "finished");
    let said = log("1");
    assert!(said.contains("rank 0: 0 signals\n") && said.contains("rank 1: 0 signals\n"), "{said}");
    let note = format!("{machine} is drained: 2 replicas on it lead no more");
    assert!(said.contains(&note), "{said}");
    let wanted = [("promotions", 2), ("deaths", 0), ("marks", 0), ("restarts", 0)];
    mpi::check_counts(&summary, &wanted, &said);
}
