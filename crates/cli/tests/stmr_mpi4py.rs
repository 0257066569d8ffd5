//! mpi4py's own tests in replicas, counted one by one.
//!
//! Goal: of the tests that pass plain, 95 of 100 pass in replicas, and those that do not are tests
//! of what is not served.  Method: each module runs plain and in replicas, on four processes in
//! the proof and two else, or as many as `SELVEDGE_RANKS` says; a test has passed if it did in all
//! of them, in each run of the module that it came to, and nothing was taken for an error there.
//! A call that is not served ends the program, so the module is begun again without the test, or
//! its class; where the module makes it as it is loaded, it finds that MPI has no such call.  The
//! tests are those of the source package of the mpi4py that is here, of the same version, which
//! `cargo xtask prove stmr-mpi4py` and `cargo xtask test --install` get by name and unpack in
//! `mpi4py` of the target folder.  Without `SELVEDGE_PROOF=full`, which the proof sets, a few
//! modules run.  What each module came to is kept until all are done.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "how long a run took is told")]

mod mpi;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use mpi::{Book, Mpi};

/// The modules of the short form: errors, collectives, and what needs no other process.
const QUICK: [&str; 5] =
    ["test_exceptions", "test_errhandler", "test_status", "test_cco_obj", "test_threads"];

/// So often is a module begun again without what is not served.
const TURNS_MAX: usize = 24;

/// No run of a module takes longer, in seconds; on four processes in three replicas each, and a
/// machine that does other work, windows take some minutes.
fn limit_s() -> &'static str {
    if mpi::is_full() { mpi::limit_s() } else { "280" }
}

/// What is not served, by beginnings of the names of calls.  Those of MPI's own extensions for
/// failures are no part of the standard.
const KINDS: [(&str, &[&str]); 4] = [
    ("sessions", &["MPI_Session", "MPI_Group_from_session", "MPI_Comm_create_from"]),
    (
        "dynamic processes",
        &[
            "MPI_Comm_spawn",
            "MPI_Comm_accept",
            "MPI_Comm_connect",
            "MPI_Comm_join",
            "MPI_Open_port",
            "MPI_Close_port",
            "MPI_Publish_name",
            "MPI_Unpublish_name",
            "MPI_Lookup_name",
        ],
    ),
    ("MPI_T", &["MPI_T"]),
    ("failures", &["MPIX_"]),
];

/// What modules ask for as they are loaded: the call, and mpi4py's name of it, which is taken for
/// one that MPI has not in the next run.
const ASKS: [(&str, &str); 1] = [("MPI_Session", "MPI.Session.Init")];

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn mpi4pys_own_tests_pass_in_replicas_but_for_what_is_not_served() {
    let chosen = env::var("SELVEDGE_MPI").unwrap_or("openmpi".into());
    let is_full = mpi::is_full();
    let Some(mpi) = Mpi::named(&chosen) else { return };
    let python = mpi.python().unwrap_or_default();
    let Some(version) = version_of(&python) else {
        return mpi::missing(&format!("mpi4py for {chosen}"));
    };
    let Some(tests) = tests(&version) else {
        return mpi::missing(&format!(
            "the source of mpi4py {version}, which `cargo xtask prove stmr-mpi4py` gets"
        ));
    };
    let ranks = env::var("SELVEDGE_RANKS").ok().and_then(|it| it.parse().ok());
    let ranks = ranks.unwrap_or(if is_full { 4 } else { 2 });
    let modules: Vec<String> = if is_full { modules(&tests) } else { QUICK.map(Into::into).into() };
    let kept = format!("mpi4py-{version}-{ranks}");
    let mut book = Book::open(&kept, &mpi, u64::from(is_full));
    let mut all = Vec::new();
    for (number, module) in modules.iter().enumerate() {
        let outcome = book.keep(number as u64, || {
            let begun = Instant::now();
            let suite = Suite { mpi: &mpi, python: &python, tests: &tests, module, ranks };
            let outcome = suite.compare();
            println!("{module} took {} s", begun.elapsed().as_secs());
            outcome
        });
        let rows = || outcome.split(' ').filter(|it| !it.is_empty());
        let n_ok = rows().filter(|it| it.starts_with("ok:")).count();
        println!("{module}: {n_ok} of {} that pass plain", rows().count());
        all.extend(outcome.split(' ').filter(|it| !it.is_empty()).map(str::to_owned));
    }
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for it in &all {
        let (kind, name) = it.split_once(':').unwrap();
        kinds.entry(kind).or_default().push(name);
    }
    let n_ok = kinds.remove("ok").map_or(0, |it| it.len());
    let n_all = all.len();
    println!(
        "mpi4py {version}, {chosen}, {ranks} processes: {n_all} tests pass plain, {n_ok} in replicas"
    );
    for (kind, names) in &kinds {
        println!("{:6}  {kind}", names.len());
        names.iter().for_each(|name| println!("        {name}"));
    }
    let is_served = |kind: &&&str| KINDS.iter().all(|it| slug(it.0) != **kind);
    let wrong: Vec<&&str> = kinds.keys().filter(is_served).collect();
    assert!(wrong.is_empty(), "tests of what is served do not pass: {wrong:?}");
    // The short form has too few of the others to say something about their share.
    assert!(!is_full || n_all * 95 <= n_ok * 100, "fewer than 95 of 100");
    book.forget();
}

/// The version of a Python's mpi4py, if it has one.
fn version_of(python: &str) -> Option<String> {
    let mut command = Command::new(python);
    command.args(["-c", "import mpi4py; print(mpi4py.__version__)"]);
    let out = command.output().ok().filter(|it| it.status.success())?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
}

/// A kind in one word.
fn slug(kind: &str) -> String {
    kind.replace(' ', "-")
}

/// Where the tests of this version of mpi4py are.
fn tests(version: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let tests = target.join("mpi4py").join(format!("mpi4py-{version}")).join("test");
    tests.is_dir().then_some(tests)
}

fn modules(tests: &Path) -> Vec<String> {
    let names = fs::read_dir(tests).unwrap().flatten().map(|it| it.file_name().into_string());
    let names = names.map(Result::unwrap).filter(|it| it.starts_with("test_"));
    let all: BTreeSet<String> =
        names.filter_map(|it| Some(it.strip_suffix(".py")?.to_owned())).collect();
    all.into_iter().collect()
}

/// One module of tests.
struct Suite<'s> {
    mpi: &'s Mpi,
    python: &'s str,
    tests: &'s Path,
    module: &'s str,
    ranks: u32,
}

/// What a run of it came to.
struct Outcome {
    passed: BTreeSet<String>,
    /// What the first process says did not.
    failed: BTreeSet<String>,
    /// What the first process had begun and not ended.
    broken: Option<String>,
    /// What the summary says of a run in replicas.
    result: String,
    ended: bool,
}

impl Suite<'_> {
    /// Of each test that passes plain, what it comes to in replicas, as `kind:name`.
    fn compare(&self) -> String {
        let plain = self.run(&[], None);
        let mut left_out: Vec<String> = Vec::new();
        let mut kinds: BTreeMap<String, String> = BTreeMap::new();
        let mut of_module = None;
        let (mut passed, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..TURNS_MAX {
            let summary = tempfile::NamedTempFile::new().unwrap();
            let run = self.run(&left_out, Some(summary.path()));
            let told = row(summary.path());
            let is_zero = |name: &str| told[name].as_u64().unwrap_or(0) == 0;
            if !is_zero("marks") || !is_zero("restarts") {
                println!("{}: taken for an error: {}", self.module, run.result);
                of_module = Some("other".to_owned());
                break;
            }
            let refused = run.result.strip_suffix(" is not served with replicas");
            // Another run has the tests that came after what is left out.
            if run.ended || refused.is_some() {
                passed.extend(run.passed.iter().cloned());
                failed.extend(run.failed.iter().cloned());
            }
            if run.ended {
                // They came to their end, and nothing that they asked for was refused.
                break;
            }
            let Some(test) = run.broken else {
                // The module asks for something as it is loaded, to know what there is.
                let kind = refused.map_or("other".into(), kind_of);
                let Some(asks) =
                    ASKS.iter().find(|it| refused.is_some_and(|call| call.starts_with(it.0)))
                else {
                    of_module = refused.map(kind_of).or(of_module);
                    break;
                };
                if left_out.iter().any(|it| it == asks.1) {
                    break;
                }
                left_out.push(asks.1.to_owned());
                of_module = Some(kind);
                continue;
            };
            let class = test.rsplit_once('.').map_or(&*test, |it| it.0).to_owned();
            let kind = refused.map_or("other".into(), kind_of);
            if run.passed.iter().any(|it| it.starts_with(&format!("{class}."))) {
                kinds.insert(test.clone(), kind);
                left_out.push(test);
            } else {
                kinds.insert(class.clone(), kind);
                left_out.push(class);
            }
        }
        let kind = |name: &String| {
            // Which failed once has failed, whatever it did when the module was begun again.
            if failed.contains(name) {
                return "other".to_owned();
            }
            if passed.contains(name) {
                return "ok".to_owned();
            }
            let class = name.rsplit_once('.').map_or("", |it| it.0);
            let known = kinds.get(name).or(kinds.get(class)).or(of_module.as_ref());
            known.cloned().unwrap_or("other".into())
        };
        let rows: Vec<String> =
            plain.passed.iter().map(|it| format!("{}:{it}", kind(it))).collect();
        rows.join(" ")
    }

    /// Runs it plain, or in replicas where there is a file for a summary.
    fn run(&self, left_out: &[String], summary: Option<&Path>) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi::sources().join("mpi4py_tests.py");
        let paths = [&*program, self.tests].map(|it| it.to_str().unwrap());
        let mut words = vec![self.python, paths[0], paths[1], self.module];
        words.push(folder.path().to_str().unwrap());
        words.extend(left_out.iter().map(|it| &**it));
        let mut command = match summary {
            None => self.mpi.plain_on(self.ranks, &words),
            Some(summary) => self.mpi.tripled_on(self.ranks, summary, &words),
        };
        let command = limited(&mut command);
        let out = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
        let mut rows = (0..self.ranks).map(|rank| {
            fs::read_to_string(folder.path().join(format!("rank.{rank}"))).unwrap_or_default()
        });
        let tests = |text: &str, word: &str| -> BTreeSet<String> {
            text.lines().filter_map(|it| it.strip_prefix(word)).map(str::to_owned).collect()
        };
        let first = rows.next().unwrap();
        let all = rows.fold(tests(&first, "ok "), |all, text| &all & &tests(&text, "ok "));
        let broken = first.lines().last().and_then(|it| it.strip_prefix("begins "));
        Outcome {
            passed: all,
            failed: tests(&first, "failed "),
            broken: broken.map(str::to_owned),
            result: summary.map_or(String::new(), result),
            ended: out.status.success(),
        }
    }
}

/// How a run in replicas ended, in words.
fn result(summary: &Path) -> String {
    row(summary)["result"].as_str().unwrap_or("no summary").to_owned()
}

/// What a summary says, if a run came to one.
fn row(summary: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(summary).unwrap()).unwrap_or_default()
}

/// The same command with the limit of a module.
fn limited(command: &mut Command) -> &mut Command {
    let args: Vec<_> = command.get_args().skip(1).map(std::ffi::OsStr::to_owned).collect();
    let envs: Vec<_> =
        command.get_envs().filter_map(|it| Some((it.0.to_owned(), it.1?.to_owned()))).collect();
    *command = Command::new("timeout");
    command.arg(limit_s()).args(args).envs(envs)
}

/// What kind of thing a call that is not served belongs to.
fn kind_of(call: &str) -> String {
    let found = KINDS.iter().find(|it| it.1.iter().any(|beginning| call.starts_with(beginning)));
    found.map_or("other".to_owned(), |it| slug(it.0))
}
