//! Bits flipped in the memory of replicas of real MPI programs, by a program that knows nothing of
//! the library.
//!
//! Goal: no wrong result.  Method: `flipper` writes to /proc/PID/mem of a drawn replica at a
//! drawn time, in every second run at the data that a kernel computes with, else in any
//! writable private page that is in memory, of a kernel or of a program of Debian's.  Each run
//! is classed by what was noticed of it.  `cargo xtask prove stmr-flips` draws more runs; what
//! a run came to is kept by seed and build, so that a proof that was stopped goes on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "a run that does not end is ended by the real clock")]

mod mpi;

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use mpi::{Book, Dice, Mask, Mpi, Share};

const RANKS: u64 = 4;
const SETS: u64 = 3;

/// A run that reaches it has failed.
const LIMIT: Duration = Duration::from_secs(150);

/// A run that was over before it was hit tells how long it lasts now, and is made again, so often.
const TRIES: u64 = 4;

/// Runs of the short form.
const RUNS_SHORT: u64 = 3;

const VICTIMS: [(&str, &[&str]); 5] = [
    ("kernels", &["600"]),
    ("ring", &["1200"]),
    ("kernels", &["400"]),
    ("collectives", &["20"]),
    ("exposed", &["100"]),
];

/// What is hit, and how it is run.
struct Program {
    name: &'static str,
    path: PathBuf,
    args: Vec<String>,
    /// What lies in the folder in which it runs.
    input: Option<PathBuf>,
    /// What is compared of what it prints.
    mask: Mask,
    /// Files that it leaves.
    leaves: &'static [&'static str],
}

struct Victim {
    program: Program,
    /// Where the data lies in the file, and how long it is.
    data: Option<(String, String)>,
    /// Known when first drawn.
    plain: OnceCell<Plain>,
    /// How long it lasted in replicas when it was last run without a flip; known when first drawn.
    lasts_ms: Cell<Option<u64>>,
}

/// What a program prints and leaves without replicas.
#[derive(PartialEq, Eq)]
struct Plain {
    printed: Vec<String>,
    left: Vec<Vec<u8>>,
}

struct Bench {
    mpi: Mpi,
    folder: PathBuf,
    flipper: PathBuf,
    victims: Vec<Victim>,
}

impl Bench {
    fn make(mpi: Mpi, folder: &Path) -> Self {
        let flipper = folder.join("flipper");
        let mut command = Command::new("cc");
        command.args(["-O1", "-w", "-o"]).arg(&flipper).arg(mpi::sources().join("flipper.c"));
        mpi::succeed(&mut command);
        let mut bench = Self { mpi, folder: folder.to_owned(), flipper, victims: Vec::new() };
        for (name, args) in VICTIMS {
            let path = bench.mpi.compile(name, folder);
            let args = args.iter().map(|it| (*it).to_owned()).collect();
            bench.add(Program { name, path, args, input: None, mask: mpi::whole, leaves: &[] });
        }
        packaged(&bench.mpi).into_iter().for_each(|it| bench.add(it));
        bench
    }

    fn add(&mut self, program: Program) {
        let data = place_of_data(&program.path);
        let (plain, lasts_ms) = Default::default();
        self.victims.push(Victim { program, data, plain, lasts_ms });
    }

    fn plain<'v>(&self, victim: &'v Victim) -> &'v Plain {
        victim.plain.get_or_init(|| {
            let program = &victim.program;
            let scratch = self.scratch(program);
            let path = program.path.to_str().unwrap();
            let row: Vec<&str> =
                [path].into_iter().chain(program.args.iter().map(|it| &**it)).collect();
            let out = mpi::succeed(self.mpi.plain_command(&row).current_dir(&scratch));
            let left = program.leaves.iter().map(|it| fs::read(scratch.join(it)).unwrap());
            let plain = Plain { printed: program.printed(&out.stdout), left: left.collect() };
            assert!(!plain.printed.concat().is_empty(), "{} prints nothing", program.name);
            plain
        })
    }

    /// How long a run without a flip lasts.
    fn lasts_ms(&self, victim: &Victim) -> u64 {
        victim.lasts_ms.get().unwrap_or_else(|| {
            // What it does plain is looked at before the time runs.
            self.plain(victim);
            let begun = Instant::now();
            let outcome = self.run(victim, |_, _| String::new()).1;
            assert_eq!(outcome, "dead value", "{} without a flip", victim.program.name);
            let lasts_ms = begun.elapsed().as_millis() as u64;
            victim.lasts_ms.set(Some(lasts_ms));
            lasts_ms
        })
    }

    /// The folder for a run, with nothing in it but the program's input.
    fn scratch(&self, program: &Program) -> PathBuf {
        let scratch = self.folder.join("run");
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir(&scratch).unwrap();
        if let Some(input) = &program.input {
            fs::copy(input, scratch.join(input.file_name().unwrap())).unwrap();
        }
        scratch
    }

    /// One run: what was hit, and what it came to.
    fn flip(&self, seed: u64, number: u64) -> (String, String) {
        let mut dice = Dice::new(seed, number);
        let aimed = number.is_multiple_of(2);
        let victims: Vec<&Victim> =
            self.victims.iter().filter(|it| !aimed || it.data.is_some()).collect();
        let victim = victims[dice.below(victims.len() as u64) as usize];
        let (rank, set) = (dice.below(RANKS), dice.below(SETS));
        // Before that the processes start, and have no data yet.
        let (after, flip_seed) = (300 + dice.below(600), dice.below(1 << 32));
        let flip = |begun: Instant, child: &mut Child| {
            let at = Duration::from_millis(self.lasts_ms(victim) * after / 1000);
            let mut found = None;
            let is_over = |it: &mut Child| it.try_wait().unwrap().is_some();
            while found.is_none() && !is_over(child) && begun.elapsed() < LIMIT {
                thread::sleep(Duration::from_millis(5));
                if at <= begun.elapsed() {
                    found = mpi::replica(&victim.program.path, set, rank);
                }
            }
            let Some(pid) = found else { return String::new() };
            let mut command = Command::new(&self.flipper);
            command.args([&pid, &flip_seed.to_string()]);
            if let (true, Some((offset, length))) = (aimed, &victim.data) {
                command.arg(&victim.program.path).args([offset, length]);
            }
            let out = command.output().unwrap();
            let hit = String::from_utf8_lossy(&out.stdout);
            hit.trim().rsplit('/').next().unwrap_or_default().to_owned()
        };
        // Measured before the run's own time begins.
        self.lasts_ms(victim);
        let mut tries = 1;
        let (hit, outcome) = loop {
            let begun = Instant::now();
            let (hit, outcome) = self.run(victim, flip);
            if !hit.is_empty() || tries == TRIES || outcome != "dead value" {
                break (hit, outcome);
            }
            victim.lasts_ms.set(Some(begun.elapsed().as_millis() as u64));
            tries += 1;
        };
        let others: Vec<_> = self.marked().into_iter().filter(|it| *it != [rank, set]).collect();
        let outcome = match outcome {
            outcome if hit.is_empty() && outcome == "dead value" => "no process to hit".to_owned(),
            outcome if hit.is_empty() => format!("wrong: {outcome}, without a flip"),
            _ if !others.is_empty() => format!("wrong: [rank, set] {others:?} are marked"),
            outcome => outcome,
        };
        let what = format!("{} rank {rank} set {set} at {after}/1000: {hit}", victim.program.name);
        (what, outcome)
    }

    /// Rank and set of each replica that was marked in the last run.
    fn marked(&self) -> Vec<[u64; 2]> {
        let text = fs::read_to_string(self.folder.join("run/summary.json")).unwrap_or_default();
        let row: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let words = |it: &serde_json::Value| {
            ["rank", "set"].map(|word| it[word].as_u64().unwrap_or(u64::MAX))
        };
        row["marked"].as_array().map_or_else(Vec::new, |all| all.iter().map(words).collect())
    }

    fn run(
        &self,
        victim: &Victim,
        flip: impl Fn(Instant, &mut Child) -> String,
    ) -> (String, String) {
        let plain = self.plain(victim);
        let scratch = self.scratch(&victim.program);
        let summary = scratch.join("summary.json");
        let mut child = Command::new(env!("CARGO_BIN_EXE_selvedge"))
            .args(["mpirun", "-r", "3", "-n", &RANKS.to_string()])
            .args(self.mpi.launcher_args())
            .arg("--json-summary")
            .arg(&summary)
            .arg(&victim.program.path)
            .args(&victim.program.args)
            .current_dir(&scratch)
            .stdin(Stdio::null())
            .stdout(fs::File::create(scratch.join("out")).unwrap())
            .stderr(fs::File::create(scratch.join("err")).unwrap())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let hit = flip(begun, &mut child);
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if LIMIT < begun.elapsed() {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            thread::sleep(Duration::from_millis(5));
        };
        let Some(status) = ended else { return (hit, "hang".to_owned()) };
        let out = fs::read(scratch.join("out")).unwrap();
        let leaves = victim.program.leaves.iter();
        let left = leaves.map(|it| fs::read(scratch.join(it)).unwrap_or_default()).collect();
        let right = *plain == Plain { printed: victim.program.printed(&out), left };
        let outcome = match (status.code(), right) {
            (Some(0), true) => class(&summary),
            (Some(0), false) => "wrong: the result, with exit code 0".to_owned(),
            (code, _) => format!("wrong: exit code {code:?}"),
        };
        if outcome.starts_with("wrong") {
            println!("{}", fs::read_to_string(scratch.join("err")).unwrap_or_default());
        }
        (hit, outcome)
    }
}

impl Program {
    /// Lines of different processes come in any order, plain as well.
    fn printed(&self, text: &[u8]) -> Vec<String> {
        let mut lines = (self.mask)(text);
        lines.sort_unstable();
        lines
    }
}

/// Programs of Debian's packages for an MPI of Debian's.
fn packaged(mpi: &Mpi) -> Vec<Program> {
    let mut all = Vec::new();
    if mpi.name == "openmpi" {
        let input = mpi::sources().join("in.restart");
        all.extend(mpi.lammps().map(|path| Program {
            name: "lammps",
            path,
            args: ["-in", input.to_str().unwrap(), "-log", "none"].map(str::to_owned).to_vec(),
            input: None,
            mask: mpi::of_lammps,
            leaves: mpi::RESTART_FILES,
        }));
    }
    all.extend(mpi.scalapack().map(|tests| Program {
        name: "xddblu",
        path: tests.join("xddblu"),
        args: Vec::new(),
        input: Some(tests.join("BLU.dat")),
        mask: mpi::of_scalapack,
        leaves: &[],
    }));
    all
}

/// Where `data` lies in the loaded program, and its length; nowhere in one without symbols.
fn place_of_data(path: &Path) -> Option<(String, String)> {
    let out = Command::new("nm").arg("-S").arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [offset, length, _, "data"] = words[..] else { return None };
        Some((format!("0x{offset}"), format!("0x{length}")))
    })
}

/// What was noticed in a run that ended right.  A dead value is one of which nothing was: no mark,
/// no death, no start and no note that says that something is wrong.
fn class(summary: &Path) -> String {
    let text = fs::read_to_string(summary).unwrap();
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    let notes: Vec<&str> =
        row["notes"].as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
    let noted = |words: &str| notes.iter().any(|it| it.contains(words));
    let [marks, deaths, restarts] = ["marks", "deaths", "restarts"].map(|it| row[it].as_u64());
    if 0 < restarts.unwrap() {
        println!("{notes:?}");
        return "started again".to_owned();
    }
    let class = if ["differs in MPI_Finalize", "differs in its end", "printed something else"]
        .into_iter()
        .any(noted)
    {
        "detected at the final compare"
    } else if noted("differs in") {
        "detected at send"
    } else if noted("makes other calls") || noted("without end") || noted("does not go on") {
        "divergence"
    } else if noted("changed on its way") {
        "detected at receive"
    } else if 0 < deaths.unwrap() {
        "crash"
    } else if 0 < marks.unwrap() {
        println!("{notes:?}");
        "wrong: a mark that no note explains"
    } else {
        "dead value"
    };
    class.to_owned()
}

#[test]
fn a_bit_flipped_anywhere_in_a_replica_changes_no_result() {
    let Some(mpi) = Mpi::chosen() else { return };
    let (runs, seed) = mpi::proof(RUNS_SHORT);
    let mut book = Book::open("stmr-flips", &mpi, seed);
    let bench = Bench::make(mpi, book.folder());
    for number in 0..runs {
        book.run(number, || bench.flip(seed, number));
    }
    let classes = |number: u64| if number.is_multiple_of(2) { "aimed at data" } else { "any page" };
    let hit = |class| Share {
        class,
        what: "a process was hit",
        is: |outcome| outcome != "no process to hit",
        at_least: 98,
    };
    // Most of what a kernel holds it computes anew before it sends it.
    let noticed = Share {
        class: "aimed at data",
        what: "detected at send",
        is: |outcome| outcome == "detected at send",
        at_least: 25,
    };
    // One flip is one error.
    let outvoted = |class| Share {
        class,
        what: "not started again",
        is: |outcome| outcome != "started again",
        at_least: 95,
    };
    let shares = ["aimed at data", "any page"].map(|it| [hit(it), outvoted(it)]);
    book.close(runs, classes, &[&shares.concat()[..], &[noticed]].concat());
}
