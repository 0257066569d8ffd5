//! kill -9 of replicas of real MPI programs, at calls and between them.
//!
//! Goal: the program ends with the right output and exit code, whenever a replica dies after
//! MPI_Init, and never hangs.  Method: a library that knows nothing of the one under test is put
//! before it and kills the process at its k-th call; or the process is killed from outside at a
//! drawn time.  Of five runs three kill at a call, one between calls, one two replicas of
//! different sets and different processes.  `cargo xtask prove stmr-kills` draws more runs; what a
//! run came to is kept by seed and build, so that a proof that was stopped goes on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "a run that does not end is ended by the real clock")]

mod mpi;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use mpi::{Book, Dice, Mpi, Share};

const RANKS: u64 = 4;
const SETS: u64 = 3;

/// A run that reaches it, on a slow machine that does other work, too, has failed.
const LIMIT: Duration = Duration::from_secs(300);

/// So often is a run made, and the kill brought forward, that had ended before it.
const TRIES: u32 = 4;

/// Runs of the short form.
const RUNS_SHORT: u64 = 5;

/// A program, what it does undisturbed, and how long.
struct Victim {
    name: &'static str,
    path: PathBuf,
    args: Vec<String>,
    code: i32,
    wanted: Vec<String>,
    /// Calls of each process after MPI_Init.
    calls: Vec<u64>,
    /// From the last process's MPI_Init to the end, in milliseconds.
    lasts_ms: u64,
}

/// Programs of stmr-mpi/programs, their arguments, and how they end.
const VICTIMS: [(&str, &[&str], i32); 18] = [
    ("ring", &["150", "1000", "0"], 0),
    ("collectives", &["4"], 0),
    ("chance", &["40"], 0),
    ("ring", &["60", "20000", "7"], 7),
    ("inter", &["8"], 0),
    ("graphs", &["12"], 0),
    ("windows", &["6"], 0),
    ("locks", &["4"], 0),
    ("segments", &["12"], 0),
    ("anybody", &["6"], 0),
    ("many", &["12"], 0),
    ("polled", &["12"], 0),
    ("cancelled", &["12"], 0),
    ("heap", &["12"], 0),
    ("asked", &["12"], 0),
    ("modes", &["3"], 0),
    ("exposed", &["12"], 0),
    ("drawn", &["9", "80"], 0),
];

/// Packaged ones, which come behind them: LAMMPS, and a program in Python.
const PACKAGED: [&str; 2] = ["lammps", "mpi4py"];

/// Who is killed, and when.
struct Kill {
    rank: u64,
    set: u64,
    /// At this call; else at `after` of the run's time, in thousandths.
    call: Option<u64>,
    after: u64,
}

impl Kill {
    /// The run had ended before: a machine does other work at one time and not at another, and who
    /// polls makes another number of calls each time.
    fn bring_forward(&mut self) {
        self.call = self.call.map(|it| it.div_ceil(2));
        self.after /= 2;
    }
}

struct Bench {
    mpi: Mpi,
    folder: PathBuf,
    killer: PathBuf,
    /// Made when first drawn.
    victims: [OnceCell<Option<Victim>>; VICTIMS.len() + PACKAGED.len()],
}

/// The functions of the MPI that a program is linked with, without `MPI_`.
fn exported(program: &Path) -> BTreeSet<String> {
    let said =
        |command: &mut Command| String::from_utf8_lossy(&mpi::succeed(command).stdout).into_owned();
    let linked = said(Command::new("ldd").arg(program));
    let paths = linked.lines().filter_map(|it| it.split(" => ").nth(1)?.split(' ').next());
    let library = paths.filter(|it| it.contains("/libmpi")).map(str::to_owned);
    library
        .flat_map(|it| {
            let names = said(Command::new("nm").args(["-D", "--defined-only"]).arg(it));
            let words = names.lines().filter_map(|it| it.split(' ').nth(2));
            let own = words.filter_map(|it| it.split('@').next()?.strip_prefix("MPI_"));
            own.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

impl Bench {
    fn make(mpi: Mpi, folder: &Path) -> Self {
        let table = fs::read_to_string(mpi::sources().join("../calls.txt")).unwrap();
        let rows = table.lines().filter(|it| !it.starts_with('#') && !it.is_empty());
        // mpi4py looks at which functions there are, and calls one that is.
        let has = exported(&mpi.compile(VICTIMS[0].0, folder));
        let names = rows
            .filter_map(|it| it.split(' ').next())
            .filter(|it| has.is_empty() || has.contains(*it));
        let text = names.fold(String::new(), |mut text, name| {
            let _ = writeln!(text, "CALL({name})");
            text
        });
        fs::write(folder.join("calls.h"), text).unwrap();
        let killer = folder.join("killer.so");
        let mut command = Command::new("cc");
        command.args(["-O1", "-shared", "-fPIC", "-w", "-I"]).arg(folder).arg("-o").arg(&killer);
        mpi::succeed(command.arg(mpi::sources().join("killer.c")).arg("-ldl"));
        Self { mpi, folder: folder.to_owned(), killer, victims: Default::default() }
    }

    /// One of the programs; nothing if it is not there for this MPI.
    fn victim(&self, victim_idx: usize) -> Option<&Victim> {
        let make = || match VICTIMS.get(victim_idx) {
            Some((name, args, code)) => {
                let path = self.mpi.compile(name, &self.folder);
                Some((*name, path, args.iter().map(|it| (*it).to_owned()).collect(), *code))
            }
            None => self.packaged(PACKAGED[victim_idx - VICTIMS.len()]),
        };
        let begin = || {
            let (name, path, args, code) = make()?;
            let mut plain: Vec<&str> = args.iter().map(String::as_str).collect();
            if 0 < code {
                // What a launcher still prints after such a code is its own affair.
                plain.pop();
            }
            let row = [&[path.to_str().unwrap()], &plain[..]].concat();
            let wanted = printed(name, &mpi::succeed(&mut self.mpi.plain_command(&row)).stdout);
            assert!(!wanted.is_empty(), "{name} prints nothing");
            let victim = Victim { name, path, args, code, wanted, calls: vec![], lasts_ms: 0 };
            let (calls, lasts_ms) = self.count(&victim);
            Some(Victim { calls, lasts_ms, ..victim })
        };
        self.victims[victim_idx].get_or_init(begin).as_ref()
    }

    fn packaged(&self, name: &'static str) -> Option<(&'static str, PathBuf, Vec<String>, i32)> {
        let (path, args) = if name == "lammps" {
            let melt = format!("{}/melt/in.melt", mpi::LAMMPS_EXAMPLES);
            // That of the Python package is no program of MPI's itself.
            let path = self.mpi.lammps().filter(|_| self.mpi.name == "openmpi")?;
            (path, ["-in", &melt, "-log", "none"].map(str::to_owned).to_vec())
        } else {
            let exchange = mpi::sources().join("exchange.py").to_str().unwrap().to_owned();
            (PathBuf::from(self.mpi.mpi4py()?), vec![exchange])
        };
        Some((name, path, args, 0))
    }

    /// A run with nobody killed, which says how many calls there are.
    fn count(&self, victim: &Victim) -> (Vec<u64>, u64) {
        let scratch = self.scratch("count");
        let mut run = self.start(victim, &scratch, "");
        run.wait_for_init();
        let begun = Instant::now();
        assert!(run.wait(), "{} without a kill reached its limit", victim.name);
        let lasts_ms = begun.elapsed().as_millis() as u64;
        let told = run.judge(victim, &[]);
        assert_eq!(told, "undisturbed", "{}: {}", victim.name, run.said());
        let calls = |rank| {
            let text = fs::read_to_string(scratch.join(format!("calls.{rank}.0"))).unwrap();
            text.parse().unwrap()
        };
        ((0..RANKS).map(calls).collect(), lasts_ms)
    }

    fn scratch(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    fn start(&self, victim: &Victim, scratch: &Path, kill_at: &str) -> Run {
        let out = fs::File::create(scratch.join("out")).unwrap();
        let err = fs::File::create(scratch.join("err")).unwrap();
        let preload = "LD_PRELOAD=$KILLER:$LD_PRELOAD exec \"$@\"";
        let child = Command::new(env!("CARGO_BIN_EXE_selvedge"))
            .args(["mpirun", "-r", "3", "-n", &RANKS.to_string()])
            // It starts a shell, and cannot know what MPI that will lead to.
            .args(["--launcher", self.mpi.launcher(), "--json-summary"])
            .arg(scratch.join("summary.json"))
            .args(["sh", "-c", preload, "sh"])
            .arg(&victim.path)
            .args(&victim.args)
            .env("KILLER", &self.killer)
            .env("KILLER_AT", kill_at)
            .env("KILLER_FOLDER", scratch)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap();
        Run { child, scratch: scratch.to_owned(), begun: Instant::now(), code: None }
    }

    /// One run of the proof: what was done, and what it came to.
    fn kill(&self, seed: u64, number: u64) -> (String, String) {
        let mut dice = Dice::new(seed, number);
        let victim = loop {
            let drawn = dice.below((VICTIMS.len() + PACKAGED.len()) as u64);
            if let Some(victim) = self.victim(drawn as usize) {
                break victim;
            }
        };
        let mut kills = draw(&mut dice, victim, number % 5);
        let mut came = self.kill_those(victim, number, &kills);
        for _ in 1..TRIES {
            let is_late = came.1 == "undisturbed"
                || came.1.starts_with("outlived 0")
                || kills.len() == 2 && came.1.starts_with("outlived 1");
            if !is_late {
                break;
            }
            kills.iter_mut().for_each(Kill::bring_forward);
            came = self.kill_those(victim, number, &kills);
        }
        came
    }

    fn kill_those(&self, victim: &Victim, number: u64, kills: &[Kill]) -> (String, String) {
        let at_calls: Vec<String> = kills
            .iter()
            .filter_map(|it| Some(format!("{}.{}.{}", it.rank, it.set, it.call?)))
            .collect();
        let scratch = self.scratch(&format!("run{number}"));
        let mut run = self.start(victim, &scratch, &at_calls.join(","));
        for it in kills.iter().filter(|it| it.call.is_none()) {
            run.kill_after(it, victim.lasts_ms);
        }
        let mut what = victim.name.to_owned();
        if !run.wait() {
            run.keep_stacks();
            run.end();
            return (what, "hang".to_owned());
        }
        for it in kills {
            let name = scratch.join(format!("killed.{}.{}", it.rank, it.set));
            let call = fs::read_to_string(name).unwrap_or("-".into());
            let at = it.call.map_or(format!("{}/1000", it.after), |at| format!("{at} {call}"));
            let _ = write!(what, ", rank {} set {} at {at}", it.rank, it.set);
        }
        let outcome = run.judge(victim, kills);
        if outcome.starts_with("wrong") {
            println!("{what}: {}", run.said());
        } else {
            fs::remove_dir_all(&scratch).unwrap();
        }
        (what, outcome)
    }
}

/// What is compared of what a program prints, of each process in its order.  Lines of different
/// processes come in any order, plain as well: those that begin with a rank are that process's, and
/// the others process 0's, but in `exposed` the process's whose turn the round is.
fn printed(name: &str, text: &[u8]) -> Vec<String> {
    let mut lines = mpi::of_lammps(text);
    let rank_of = |line: &String| {
        let (word, after) = if name == "exposed" { ("round ", RANKS) } else { ("rank ", u64::MAX) };
        let digits = line.strip_prefix(word).unwrap_or_default();
        let digits = digits.split(|it: char| !it.is_ascii_digit()).next().unwrap_or_default();
        digits.parse::<u64>().map_or(0, |it| it % after)
    };
    lines.sort_by_key(rank_of);
    lines
}

fn draw(dice: &mut Dice, victim: &Victim, class: u64) -> Vec<Kill> {
    let mut kills = Vec::new();
    let (rank, set) = (dice.below(RANKS), dice.below(SETS));
    let (other, another) = (1 + dice.below(RANKS - 1), 1 + dice.below(SETS - 1));
    for (rank, set) in [(rank, set), ((rank + other) % RANKS, (set + another) % SETS)] {
        let call = 1 + dice.below(victim.calls[rank as usize]);
        let after = dice.below(1000);
        let at_call = class < 3 || (class == 4 && dice.below(2) == 0);
        kills.push(Kill { rank, set, call: at_call.then_some(call), after });
    }
    kills.truncate(if class == 4 { 2 } else { 1 });
    kills
}

struct Run {
    child: Child,
    scratch: PathBuf,
    begun: Instant,
    code: Option<i32>,
}

impl Run {
    /// Whether it ended within its limit.
    fn wait(&mut self) -> bool {
        while self.begun.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.code = status.code();
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn pid_file(&self, rank: u64, set: u64) -> PathBuf {
        self.scratch.join(format!("pid.{rank}.{set}"))
    }

    /// Waits until all have come through MPI_Init.
    fn wait_for_init(&mut self) {
        let files: Vec<PathBuf> = (0..RANKS)
            .flat_map(|rank| (0..SETS).map(move |set| (rank, set)))
            .map(|(rank, set)| self.pid_file(rank, set))
            .collect();
        let all = || files.iter().all(|it| it.is_file());
        while !all() && self.begun.elapsed() < LIMIT && self.child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Kills a replica when some time has passed since MPI_Init.
    fn kill_after(&mut self, kill: &Kill, lasts_ms: u64) {
        self.wait_for_init();
        thread::sleep(Duration::from_millis(lasts_ms * kill.after / 1000));
        let Ok(pid) = fs::read_to_string(self.pid_file(kill.rank, kill.set)) else { return };
        let mut command = Command::new("kill");
        // It may have come to its end.
        let _ = command.args(["-9", &pid]).stderr(Stdio::null()).status();
    }

    fn said(&self) -> String {
        fs::read_to_string(self.scratch.join("err")).unwrap_or_default()
    }

    fn judge(&self, victim: &Victim, kills: &[Kill]) -> String {
        if self.code != Some(victim.code) {
            return format!("wrong exit code {:?}", self.code);
        }
        let out = fs::read(self.scratch.join("out")).unwrap();
        if printed(victim.name, &out) != victim.wanted {
            return "wrong output".to_owned();
        }
        let summary = self.scratch.join("summary.json");
        let [deaths, restarts, marks] =
            ["deaths", "restarts", "marks"].map(|it| mpi::count(&summary, it));
        match (deaths, restarts, marks) {
            (_, _, 1..) => "wrong: a mark without an error".to_owned(),
            (_, 1.., _) => "started again".to_owned(),
            (0, 0, 0) => "undisturbed".to_owned(),
            (deaths, ..) => self.judge_deaths(deaths, kills),
        }
    }

    /// What it comes to that replicas died: of those that were to be killed, and of others, each of
    /// which has to say why.
    fn judge_deaths(&self, deaths: u64, kills: &[Kill]) -> String {
        let said = self.said();
        let all = || (0..RANKS).flat_map(|rank| (0..SETS).map(move |set| (rank, set)));
        let gone: Vec<(u64, u64)> = all()
            .filter(|(rank, set)| said.contains(&format!("rank {rank}: set{set} is gone")))
            .collect();
        if gone.len() as u64 != deaths {
            return format!("wrong: {deaths} deaths, and {gone:?} are gone");
        }
        let is_killed = |it: &(u64, u64)| kills.iter().any(|kill| (kill.rank, kill.set) == *it);
        let (killed, others): (Vec<_>, Vec<_>) = gone.into_iter().partition(is_killed);
        let (mut by_ucx, mut sharing) = (0, 0);
        for (rank, set) in others {
            let shares = format!("rank {rank}: set{set} ends: it shares memory with");
            if said.contains(&shares) {
                sharing += 1;
            } else if self.is_ended_by_ucx(&said, rank, set) {
                by_ucx += 1;
            } else {
                return format!("wrong: rank {rank} set {set} is gone, and was not killed");
            }
        }
        let mut outcome = format!("outlived {}", killed.len());
        for (n, why) in [(by_ucx, "ended by UCX"), (sharing, "that shared memory")] {
            if 0 < n {
                let _ = write!(outcome, ", and {n} {why}");
            }
        }
        outcome
    }

    /// Whether UCX says that it ends this replica, as it does with who reads the memory of one that
    /// has died meanwhile: its lines begin with a time and `[host:PID`.
    fn is_ended_by_ucx(&self, said: &str, rank: u64, set: u64) -> bool {
        let pid = fs::read_to_string(self.pid_file(rank, set)).unwrap_or_default();
        let of_line = |line: &str| {
            let words = line.split(" cma_ep.c:").next()?.rsplit('[').next()?;
            words.split(':').nth(1).map(|it| it.trim().to_owned())
        };
        let of_ucx = said.lines().filter(|it| it.contains(" cma_ep.c:"));
        of_ucx.filter_map(of_line).any(|it| it == pid)
    }

    /// Where all its processes stand, for whoever looks for the cause of a hang.
    fn keep_stacks(&self) {
        let mut text = String::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            let folder = format!("KILLER_FOLDER={}", self.scratch.display());
            let mut rows = environ.split(|it| *it == 0);
            if !rows.any(|it| it == folder.as_bytes()) {
                continue;
            }
            let pid = entry.file_name().into_string().unwrap();
            let own: Vec<_> = environ
                .split(|it| *it == 0)
                .filter(|it| it.starts_with(b"SELVEDGE_SET") || it.starts_with(b"SELVEDGE_RANK="))
                .map(String::from_utf8_lossy)
                .collect();
            let wchan = fs::read_to_string(entry.path().join("wchan")).unwrap_or_default();
            let _ = writeln!(text, "== {pid} {own:?} in {wchan}");
            let mut gdb = Command::new("gdb");
            gdb.args(["-p", &pid, "-batch", "-ex", "thread apply all bt 24"]);
            if let Ok(out) = gdb.stdin(Stdio::null()).stderr(Stdio::null()).output() {
                text.push_str(&String::from_utf8_lossy(&out.stdout));
            }
        }
        let path = self.scratch.join("stacks");
        fs::write(&path, text).unwrap();
        println!("the stacks are in {}", path.display());
    }

    fn end(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        thread::sleep(Duration::from_millis(500));
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Replicas end when their launcher's link does.
    }
}

/// Those that were killed, whoever went beside them.
fn outlived_both(outcome: &str) -> bool {
    outcome.starts_with("outlived 2")
}

#[test]
fn a_replica_killed_at_any_call_or_between_calls_is_outlived() {
    let Some(mpi) = Mpi::chosen() else { return };
    let (runs, seed) = mpi::proof(RUNS_SHORT);
    let mut book = Book::open("stmr-kills", &mpi, seed);
    let bench = Bench::make(mpi, book.folder());
    if mpi::is_full() {
        // What is missing is named before hours have passed.
        PACKAGED.iter().for_each(|it| drop(bench.packaged(it)));
    }
    for number in 0..runs {
        book.run(number, || bench.kill(seed, number));
    }
    let classes = |number: u64| match number % 5 {
        0..3 => "at a call",
        3 => "between calls",
        _ => "two, in different sets",
    };
    // So it is in a short form, too, which is too short for shares.
    assert!(book.outcomes(runs).any(|it| it.starts_with("outlived")), "none was outlived");
    // Where processes share memory, those of other sets may go with one that is killed.
    let outlived: fn(&str) -> bool = |outcome| outcome.starts_with("outlived");
    let both: fn(&str) -> bool = |outcome| outlived_both(outcome);
    let shares = [
        ("at a call", "outlived", outlived, 95),
        ("between calls", "outlived", outlived, 90),
        ("two, in different sets", "both outlived", both, 75),
    ]
    .map(|(class, what, is, at_least)| Share { class, what, is, at_least });
    book.close(runs, classes, &shares);
}
