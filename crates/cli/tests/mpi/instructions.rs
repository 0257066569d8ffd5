//! Instructions that replicas cost, counted by valgrind's callgrind: no neighbour disturbs them.
//!
//! What one `MPI_Sendrecv` of a program's mean length takes in three replicas and does not take
//! plain, times the sends of a process, by the instructions of the program's own code on it: that
//! of 1 KiB, and what each byte more takes.  A call's are the difference of two
//! runs of one process that sends to itself, so that start and end do not count; replicas wait for
//! each other in it, and the middle one of the three stands for all.  How long they wait is not the
//! same twice: the middle of some such differences counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::mpi::{self, Mpi, succeed};
use crate::{LAMMPS, MELT, path_of};

/// How often a call is counted.
const COUNTS: usize = 5;

/// Calls of the two runs.
const CALLS: [u64; 2] = [200, 1200];

/// Bytes of a short call and of a long one, which is still copied by its sender.
const BYTES: [u64; 2] = [1 << 10, 48 << 10];

/// Has the C library copy by instructions of 32 bytes.  Valgrind counts each byte that `rep movsb`
/// copies as one instruction, though a processor takes the whole of it for one.
const COPIES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=0x40000000");

/// Kernels of patterns.c and how many rounds of them, since each is alike, and the programs that
/// come with the machine, with all of their words: name, source, words, and the libraries that are
/// the program's own.
const COMPUTING: [(&str, &str, &[&str], &[&str]); 6] = [
    ("cg", "patterns", &["cg", "1"], &[]),
    ("lu", "patterns", &["lu", "2"], &[]),
    ("mg", "patterns", &["mg", "2"], &[]),
    ("ft", "patterns", &["ft", "2"], &[]),
    ("is", "patterns", &["is", "1"], &[]),
    ("lammps-melt", LAMMPS, MELT, &["liblammps.so.0"]),
];

/// Instructions by the file that holds them, of one of callgrind's files.
fn by_file(path: &Path) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(path).unwrap();
    let (mut names, mut costs) = (BTreeMap::new(), BTreeMap::new());
    let (mut file, mut is_of_call) = (String::new(), false);
    for line in text.lines() {
        if let Some((word, rest)) = line.split_once('=')
            && ["ob", "cob"].contains(&word)
        {
            // `(3) /usr/lib/…` the first time, `(3)` from then on.
            let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
            if !name.is_empty() {
                names.insert(number.to_owned(), name.to_owned());
            }
            if word == "ob" {
                file = names[number].rsplit('/').next().unwrap().to_owned();
            }
        } else if line.starts_with("calls=") {
            is_of_call = true;
        } else if line.starts_with(|it: char| it.is_ascii_digit() || "+-*".contains(it)) {
            // What a call cost stands in the lines of what was called.
            if !std::mem::take(&mut is_of_call) {
                let cost: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
                *costs.entry(file.clone()).or_default() += cost;
            }
        }
    }
    costs
}

/// Runs something under callgrind; returns what each of its processes took.
fn count(folder: &Path, run: impl FnOnce(&[&str])) -> Vec<BTreeMap<String, u64>> {
    let out = folder.join("counts");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir(&out).unwrap();
    let pattern = format!("--callgrind-out-file={}/%p", out.display());
    run(&["valgrind", "--quiet", "--tool=callgrind", &pattern]);
    fs::read_dir(&out).unwrap().map(|it| by_file(&it.unwrap().path())).collect()
}

/// What one call of so many bytes takes, in a run in replicas or in a plain one.
fn of_a_call(mpi: &Mpi, folder: &Path, program: &str, bytes: u64, in_replicas: bool) -> u64 {
    let of_a_run = |calls: u64| {
        let counted = count(folder, |valgrind| {
            let [calls, bytes] = [calls, bytes].map(|it| it.to_string());
            let words = [valgrind, &[program, &calls, &bytes]].concat();
            let mut command = if in_replicas {
                let words = [&mpi.launcher_of_a_script()[..], &words].concat();
                mpi.tripled_on(1, &folder.join("summary.json"), &words)
            } else {
                mpi.plain_on(1, &words)
            };
            // The cycle counter is valgrind's own here.
            succeed(command.env("SELVEDGE_CYCLES", "own").env(COPIES.0, COPIES.1));
        });
        middle(counted.iter().map(|it| it.values().sum()).collect())
    };
    let once = |_| {
        let [few, many] = CALLS.map(of_a_run);
        many.saturating_sub(few) / (CALLS[1] - CALLS[0])
    };
    middle((0..COUNTS).map(once).collect())
}

fn middle(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all[all.len() / 2]
}

/// Counts, prints what came of it, and returns what is more than replicas may cost: a tenth of our
/// kernels, a twentieth of LAMMPS.
pub(crate) fn tell(mpi: &Mpi, folder: &Path) -> Vec<String> {
    let has_valgrind = std::process::Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        println!("not run: instructions, which are counted by valgrind");
        return Vec::new();
    }
    let mut missed = Vec::new();
    let calls = mpi.compile("calls", folder);
    let [more, more_long] = BYTES.map(|bytes| {
        let [plain, tripled] =
            [false, true].map(|it| of_a_call(mpi, folder, calls.to_str().unwrap(), bytes, it));
        let more = tripled.saturating_sub(plain);
        let of = format!("instructions of a call of {bytes} bytes");
        println!("{of}: {plain} plain, {tripled} in replicas, {more} more");
        more as f64
    });
    let by_byte = (more_long - more).max(0.0) / (BYTES[1] - BYTES[0]) as f64;
    println!("{by_byte:.3} more for each byte");
    for (name, source, args, libraries) in COMPUTING {
        let Some(program) = path_of(mpi, folder, source) else { continue };
        if source == LAMMPS && mpi.beside("lmp").is_some() {
            println!("not run: instructions of {name}, which starts LAMMPS as another process");
            continue;
        }
        let words = [&[program.to_str().unwrap()], args].concat();
        let summary = folder.join("summary.json");
        succeed(&mut mpi.tripled_on(4, &summary, &words));
        let [sends, bytes] = ["sends", "bytes"].map(|it| mpi::count(&summary, it) / 4);
        // One of the four is counted, and the others wait for it.
        let counted = count(folder, |valgrind| {
            let first = [valgrind, &words].concat();
            let rest = [&[":", "-n", "3"], &words[..]].concat();
            succeed(&mut mpi.plain_on(1, &[first, rest].concat()));
        });
        let file = program.file_name().unwrap().to_str().unwrap();
        let own: u64 = libraries.iter().chain([&file]).map(|it| counted[0][*it]).sum();
        let long = bytes.saturating_sub(sends * BYTES[0]) as f64;
        let [calls, length] = [sends as f64 * more, long * by_byte].map(|it| it / own as f64);
        let share = calls + length;
        let most = if source == LAMMPS { 0.05 } else { 0.1 };
        let is_reached = if share <= most { "reached" } else { "NOT reached" };
        println!(
            "{name:12} {sends} sends of {bytes} bytes by a process that computes {own} instructions: \
             {:+.1} %, of which {:.1} for what passes 1 KiB of each; at most {:.0} %: {is_reached}",
            share * 100.0,
            length * 100.0,
            most * 100.0
        );
        if most < share {
            missed.push(format!("{name}: {:+.1} % of its instructions", share * 100.0));
        }
    }
    missed
}
