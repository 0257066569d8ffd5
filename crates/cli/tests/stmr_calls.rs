//! Every call of MPI that is served in replicas is made by a program of ours, and answers there as
//! it does plain.
//!
//! Goal: a call that nobody makes is one of which nobody knows whether it is right.  Method: what
//! the programs in crates/stmr-mpi/programs refer to, as their compiled form says, is held against
//! the table of calls, for each MPI as far as it has them.  Those that are about forms of calls run
//! here, the others in other tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use mpi::{Mpi, lines, told};

/// Programs that call nothing of MPI's.
const BESIDE: [&str; 2] = ["flipper", "killer"];

/// What is not in the headers of any MPI here, or ends a plain run under each MPI that has it.
const NOT_MADE: [&str; 7] = [
    "MPIX_Comm_ack_failed",
    "MPIX_Comm_agree",
    "MPIX_Comm_failure_ack",
    "MPIX_Comm_failure_get_acked",
    "MPIX_Comm_is_revoked",
    "MPIX_Comm_ishrink",
    "MPIX_Comm_shrink",
];

/// Programs that check what calls answer, each in all its forms.
const FORMS: [&str; 12] = [
    "messages",
    "forms",
    "neighbors",
    "types",
    "packs",
    "handles",
    "settings",
    "comms",
    "winforms",
    "fileforms",
    "tools",
    "graphs",
];

/// The same with counts of 64 bits, where MPI has them.
const LARGE_FORMS: [&str; 5] =
    ["bigmessages", "largecounts", "largeneighbors", "bigwinforms", "bigfileforms"];

/// The names that `nm` gives for a file, in lines that have this word.
fn symbols(file: &Path, words: &[&str]) -> BTreeSet<String> {
    let out = mpi::succeed(Command::new("nm").args(words).arg(file));
    let text = String::from_utf8(out.stdout).unwrap();
    let names = text.lines().filter_map(|it| it.split_whitespace().last());
    let name = |it: &str| it.split('@').next().unwrap_or(it).to_owned();
    names.map(name).filter(|it| it.starts_with("MPI")).collect()
}

/// What is served, by its whole name.  MPICH 4.0.2 loses data in persistent collectives: they are
/// made where a later MPI is, one of the fifth standard.
fn served(is_fifth: bool) -> BTreeSet<String> {
    let table = fs::read_to_string(mpi::sources().join("../calls.txt")).unwrap();
    let is_persistent = |it: &str| {
        let mut words = it.split_whitespace();
        let [name, args] = [(); 2].map(|()| words.next().unwrap_or_default());
        name.contains("_init") && args.ends_with("c..") && !name.starts_with('P')
    };
    let rows = table.lines().filter(|it| !it.starts_with('#') && !it.ends_with(" refuse"));
    let rows = rows.filter(|it| is_fifth || !is_persistent(it));
    let names = rows.filter_map(|it| it.split_whitespace().next());
    names.map(|it| if it.starts_with("MPI") { it.into() } else { format!("MPI_{it}") }).collect()
}

/// The MPI library that a program is linked with.
fn library_of(program: &Path) -> String {
    let out = mpi::succeed(Command::new("ldd").arg(program));
    let text = String::from_utf8(out.stdout).unwrap();
    let is_it =
        |it: &&str| ["libmpi.", "libmpich.", "libmpi_abi."].iter().any(|name| it.contains(name));
    let line = text.lines().find(is_it).unwrap_or_else(|| panic!("no MPI library in {text}"));
    line.split_whitespace().nth(2).unwrap().to_owned()
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn every_call_that_is_served_is_made_by_a_program() {
    let (mut made, mut there) = (BTreeSet::new(), BTreeSet::new());
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(mpi::sources()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.extension().is_some_and(|it| it == "c") && !BESIDE.contains(&&*name) {
                let object = folder.path().join(&name).with_extension("o");
                mpi.compile_with(&name, &object, &["-c"]);
                made.extend(symbols(&object, &["--undefined-only"]));
            }
        }
        let library = library_of(&mpi.compile("ring", folder.path()));
        there.extend(symbols(Path::new(&library), &["--dynamic", "--defined-only"]));
    }
    if there.is_empty() {
        mpi::missing("the library of an MPI");
        return;
    }
    let is_due = |it: &&String| there.contains(*it) && !NOT_MADE.contains(&it.as_str());
    let served = served(there.contains("MPI_Abi_get_version"));
    let due: Vec<&String> = served.iter().filter(is_due).collect();
    assert!(300 < due.len(), "MPI has only {} of the calls that are served", due.len());
    let missing: Vec<&&String> = due.iter().filter(|it| !made.contains(**it)).collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn every_form_of_a_call_answers_as_it_does_plain() {
    for name in &FORMS {
        Mpi::in_turn(name).iter().for_each(|mpi| answer_alike(name, mpi));
    }
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn so_does_every_form_with_large_counts() {
    for mpi in Mpi::all().iter().filter(|it| !it.is_open_mpi()) {
        LARGE_FORMS.iter().for_each(|name| answer_alike(name, mpi));
    }
}

fn answer_alike(name: &str, mpi: &Mpi) {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let program = mpi.compile(name, folder.path());
    let words = [program.to_str().unwrap()];
    let [plain, tripled] = ["plain", "tripled"].map(|it| folder.path().join(it));
    for path in [&plain, &tripled] {
        fs::create_dir(path).unwrap();
    }
    let wanted = mpi::succeed(mpi.plain_command(&words).current_dir(&plain));
    let out = mpi.tripled(&summary, &words).current_dir(&tripled).output().unwrap();
    let said = format!("{name} under {}: {}", mpi.name, told(&out));
    assert!(out.status.success(), "{said}");
    let [wanted, got] = [&wanted, &out].map(|it| lines(&String::from_utf8_lossy(&it.stdout)));
    assert!(!wanted.is_empty(), "{said}");
    assert_eq!(wanted, got, "{said}");
    mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
}

/// Goal: where another replica leads in one process alone, and windows are served beside
/// collectives, all of those end.  Method: who leads gives a wrong value once; see gates.c.
#[test]
fn collectives_end_beside_a_window_where_another_leads_in_one_process() {
    for mpi in Mpi::in_turn("gates") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("gates", folder.path());
        let words = [program.to_str().unwrap()];
        let wanted = mpi::succeed(&mut mpi.plain_command(&words));
        let out = mpi.tripled(&summary, &words).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(out.status.code(), Some(0), "{said}");
        let lines = |it: &[u8]| mpi::lines(&String::from_utf8_lossy(it));
        assert_eq!(lines(&out.stdout), lines(&wanted.stdout), "{said}");
        mpi::check_counts(&summary, &[("marks", 1), ("deaths", 0), ("restarts", 0)], &said);
        // Who waits alone serves as well, and when makes no difference between two runs.
        for way in [&["-r", "1"][..], &["--check-determinism"]] {
            let mut alone = Command::new("timeout");
            alone.args(["100", env!("CARGO_BIN_EXE_selvedge"), "mpirun", "-n", "4"]).args(way);
            let out = mpi::succeed(alone.args(mpi.launcher_args()).args(words));
            let (printed, wanted) = (lines(&out.stdout), lines(&wanted.stdout));
            let rows = printed.lines().filter(|it| !it.contains("sends differ"));
            assert!(rows.eq(wanted.lines()), "{} {way:?}: {printed}", mpi.name);
        }
    }
}
