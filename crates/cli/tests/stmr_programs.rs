//! Programs that others wrote, unmodified and from Debian's packages, in replicas.
//!
//! Goal: what they print in replicas is what they print plain, and nothing is taken for an error.
//! Method: both runs on four processes; columns of times, and numbers on lines that tell times, are
//! left out.  One that prints nothing is compared by its files, and where plain runs differ from
//! each other, by the energies in them; a program of which nothing is compared has failed.  Without
//! `SELVEDGE_PROOF=full`, which `cargo xtask prove stmr-programs` sets, only our own programs and
//! one quick example of each package are run, part of them as a long test.  What is not installed
//! is named, and fails the proof.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use mpi::{Mask, Mpi};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

/// In which tests a program is run, beside the proof, which has all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Always,
    WithLong,
    InProof,
}

/// A program and how it is run.
struct Program {
    /// What it is called in the table.
    name: &'static str,
    /// What is copied into the folder in which it runs.
    files: Option<PathBuf>,
    words: Vec<String>,
    /// What is compared of what it prints.
    mask: Mask,
    made: Made,
    /// Files that it leaves, which are those of a plain run to the last byte.
    leaves: &'static [&'static str],
    /// A file of energies that it leaves, which are near those of a plain run.
    energies: Option<&'static str>,
}

const LAMMPS: [(&str, &str); 6] = [
    ("melt", "in.melt"),
    ("min", "in.min"),
    ("crack", "in.crack"),
    ("micelle", "in.micelle"),
    ("rigid", "in.rigid"),
    ("peptide", "in.peptide"),
];

const SCALAPACK: [&str; 8] = ["xdlu", "xdqr", "xdllt", "xdinv", "xdls", "xdsep", "xdbrd", "xddblu"];

/// Intel's benchmarks, which come with its MPI: each measures all that it can, in few turns.
const IMB: [(&str, &[&str]); 3] = [
    ("IMB-MPI1", &["-npmin", "4", "-iter", "3", "-msglog", "2:12"]),
    ("IMB-NBC", &["-npmin", "4", "-iter", "3", "-msglog", "2:8"]),
    ("IMB-P2P", &["-npmin", "4", "-iter", "3", "-msglog", "2:8"]),
];

fn programs(mpi: &Mpi, folder: &Path) -> Vec<Program> {
    let words = |row: &[&str]| row.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let mut programs = Vec::new();
    let forms = [("-DHEADER", "mpif.h"), ("-DMODULE", "use mpi"), ("-DNEW", "mpi_f08")];
    for (flag, name) in forms {
        let Some(compiler) = mpi.fortran() else { break };
        let path = folder.join(format!("fortran{flag}"));
        let mut command = Command::new(compiler);
        command.args([flag, "-O1", "-o"]).arg(&path).arg(mpi::sources().join("fortran.F90"));
        // Its module is written to where the compiler runs.
        command.current_dir(folder);
        if mpi.name == "mpich" && name == "mpi_f08" {
            // Plain as well, MPICH 4.0.2 counts the index of MPI_Waitany from 0 there.
            command.arg("-DNO_INDEX");
        }
        match command.output() {
            Ok(out) if out.status.success() => programs.push(Program {
                name,
                files: None,
                words: vec![path.to_str().unwrap().to_owned()],
                mask: mpi::whole,
                made: if is_its_turn(mpi, name) { Made::Always } else { Made::WithLong },
                leaves: &[],
                energies: None,
            }),
            _ => mpi::missing(&format!("a working {compiler} (gfortran), for {name}")),
        }
    }
    let exchange = mpi::sources().join("exchange.py");
    programs.extend(mpi.mpi4py().map(|python| Program {
        name: "mpi4py",
        files: None,
        words: words(&[&python, exchange.to_str().unwrap()]),
        mask: mpi::whole,
        made: Made::WithLong,
        leaves: &[],
        energies: None,
    }));
    programs.extend(lammps(mpi));
    programs.extend(benchmarks(mpi));
    programs.extend(gromacs(mpi, folder));
    programs.extend(scalapack(mpi));
    programs
}

/// Eight of ScaLAPACK's testers.
fn scalapack(mpi: &Mpi) -> Vec<Program> {
    let Some(tests) = mpi.scalapack() else { return Vec::new() };
    // Plain as well, xdllt computes on and on under MPICH 4.0.2.
    let ends = |name: &&str| mpi.name != "mpich" || *name != "xdllt";
    let program = |name| Program {
        name,
        files: Some(tests.clone()),
        words: vec![tests.join(name).to_str().unwrap().to_owned()],
        mask: match name {
            "xdsep" | "xdbrd" => mpi::of_scalapack_sums,
            _ => mpi::of_scalapack,
        },
        // MPICH's processes wait without yielding.
        made: match name {
            "xddblu" if mpi.is_open_mpi() => Made::Always,
            "xddblu" => Made::WithLong,
            _ => Made::InProof,
        },
        leaves: &[],
        energies: None,
    };
    SCALAPACK.into_iter().filter(ends).map(program).collect()
}

/// Whether what is made under one MPI, by turns, is made under this one.
fn is_its_turn(mpi: &Mpi, name: &str) -> bool {
    Mpi::in_turn(name).iter().any(|it| it.name == mpi.name)
}

/// LAMMPS: six of its examples, and a run that goes on from a restart file.
fn lammps(mpi: &Mpi) -> Vec<Program> {
    let Some(path) = mpi.lammps() else { return Vec::new() };
    let program = |name, input: &str, log: &str| Program {
        name,
        files: None,
        words: [path.to_str().unwrap(), "-in", input, "-log", log].map(str::to_owned).to_vec(),
        mask: mpi::of_lammps,
        made: Made::InProof,
        leaves: &[],
        energies: None,
    };
    let example = |(name, input)| Program {
        files: Some(Path::new(mpi::LAMMPS_EXAMPLES).join(name)),
        made: if name == "melt" { Made::WithLong } else { Made::InProof },
        ..program(name, input, "none")
    };
    let restart = mpi::sources().join("in.restart");
    let restart = Program {
        made: Made::Always,
        leaves: mpi::RESTART_FILES,
        ..program("restart", restart.to_str().unwrap(), "log.restart")
    };
    LAMMPS.into_iter().map(example).chain([restart]).collect()
}

/// Intel's benchmarks.
fn benchmarks(mpi: &Mpi) -> Vec<Program> {
    let words = |row: &[&str]| row.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let mut programs = Vec::new();
    for (name, options) in IMB {
        let Some(path) = mpi.beside(name) else {
            // They come with Intel's package alone.
            if mpi.name.starts_with("impi") && !mpi.name.ends_with("abi") {
                mpi::missing(&format!("{name} (impi-rt)"));
            }
            continue;
        };
        programs.push(Program {
            name,
            files: None,
            words: [vec![path.to_str().unwrap().to_owned()], words(options)].concat(),
            mask: |text| mpi::without_times(&[" "], text),
            made: Made::InProof,
            leaves: &[],
            energies: None,
        });
    }
    programs
}

/// GROMACS with a box of water, which Debian links with Open MPI: once as users ask it for the same
/// result twice, with all its files compared, and once as it comes, when it measures by the cycle
/// counter who has how much to do and moves work between processes: plain runs differ from each
/// other then, by another order of adding first and by all that follows from that.
fn gromacs(mpi: &Mpi, folder: &Path) -> Vec<Program> {
    const GROMACS: &str = "/usr/bin/gmx_mpi";
    const BOX: &str = "/usr/share/gromacs/top/spc216.gro";
    let words = |row: &[&str]| row.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    if mpi.name != "openmpi" {
        return Vec::new();
    }
    let inputs = folder.join("water");
    fs::create_dir_all(&inputs).unwrap();
    for name in ["water.mdp", "water.top"] {
        fs::copy(mpi::sources().join(name), inputs.join(name)).unwrap();
    }
    let prepare = |row: &[&str]| {
        let mut command = Command::new("gmx");
        command.args(row).current_dir(&inputs).output().is_ok_and(|it| it.status.success())
    };
    let is_ready = prepare(&["genconf", "-f", BOX, "-nbox", "2", "2", "2", "-o", "water.gro"])
        && prepare(&["grompp", "-f", "water.mdp", "-c", "water.gro", "-p", "water.top"]);
    if !is_ready {
        mpi::missing("a GROMACS that prepares its input (gromacs)");
        return Vec::new();
    }
    if !Path::new(GROMACS).is_file() {
        mpi::missing(&format!("{GROMACS} (gromacs)"));
        return Vec::new();
    }
    let program = |name, options: &[&str], made, leaves, energies| Program {
        name,
        files: Some(inputs.clone()),
        words: [words(&[GROMACS, "mdrun", "-ntomp", "1"]), words(options)].concat(),
        mask: mpi::whole,
        made,
        leaves,
        energies,
    };
    let same = ["-reprod", "-dlb", "no", "-pin", "off", "-deffnm", "out", "-s", "topol.tpr"];
    let as_is = ["-npme", "1", "-nsteps", "400", "-deffnm", "out", "-s", "topol.tpr"];
    vec![
        program("gromacs", &same, Made::WithLong, &["out.gro", "out.trr", "out.edr"], None),
        program("gromacs as is", &as_is, Made::InProof, &[], Some("out.edr")),
    ]
}

impl Program {
    /// A folder with its inputs, of which each run has its own.
    fn prepare(&self, folder: &Path, run: &str) -> PathBuf {
        let scratch = folder.join(run);
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir(&scratch).unwrap();
        for entry in self.files.iter().flat_map(|it| fs::read_dir(it).unwrap().flatten()) {
            let is_input =
                fs::metadata(entry.path()).is_ok_and(|it| it.is_file() && it.len() < 1 << 20);
            let to = scratch.join(entry.file_name());
            if is_input {
                fs::copy(entry.path(), &to).unwrap();
            }
            if to.extension().is_some_and(|it| it == "gz") {
                let _ = Command::new("gunzip").arg(&to).status();
            }
        }
        scratch
    }

    /// A run without replicas.  ScaLAPACK's testers hang in one now and then, in a broadcast of
    /// Open MPI's; so who does not end is run again.
    fn plain(&self, mpi: &Mpi, folder: &Path, words: &[&str]) -> Result<Output, String> {
        const TRIES: usize = 3;
        for _ in 0..TRIES {
            let mut command = mpi.plain_command(words);
            let out = command.current_dir(self.prepare(folder, "plain")).output().unwrap();
            if out.status.success() {
                return Ok(out);
            }
            if out.status.code() != Some(mpi::OVER_LIMIT) {
                return Err(format!("plain: {}", mpi::told(&out)));
            }
            println!("{}: a plain run does not end, and is made again", self.name);
        }
        Err(format!("plain: {TRIES} runs that do not end"))
    }

    /// What it came to.
    fn run(&self, mpi: &Mpi, folder: &Path) -> Result<String, String> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let plain = self.plain(mpi, folder, &words)?;
        let summary = folder.join("summary.json");
        let mut command = mpi.tripled(&summary, &words);
        let out = command.current_dir(self.prepare(folder, "run")).output().unwrap();
        if !out.status.success() {
            return Err(mpi::told(&out));
        }
        let text = self.mask;
        let (mut plains, got) = (vec![text(&plain.stdout)], text(&out.stdout));
        let prints = plains[0].iter().any(|it| !it.trim().is_empty());
        if !prints && self.leaves.is_empty() && self.energies.is_none() {
            return Err("it prints nothing, so there is nothing to compare".to_owned());
        }
        // ScaLAPACK's xdsep now and then fails one of its own tests, plain: so plain runs differ.
        let others = if self.name == "xdsep" { OTHERS_MAX } else { 0 };
        while plains.len() <= others && !plains.contains(&got) {
            let again = text(&self.plain(mpi, folder, &words)?.stdout);
            if !plains.contains(&again) {
                println!("{}: plain runs differ from each other", self.name);
            }
            plains.push(again);
        }
        if !plains.contains(&got) {
            return Err(difference(&plains[0], &got));
        }
        for name in self.leaves {
            let read = |run: &str| fs::read(folder.join(run).join(name)).unwrap_or_default();
            let (wanted, got) = (read("plain"), read("run"));
            if wanted.is_empty() || wanted != got {
                let (n, m) = (wanted.len(), got.len());
                return Err(format!("{name} differs: {n} bytes plain, {m} bytes in replicas"));
            }
        }
        if let Some(name) = self.energies {
            let [plain, got] = ["plain", "run"].map(|it| energies(&folder.join(it), name));
            are_near(&plain?, &got?)?;
        }
        for count in ["marks", "restarts", "deaths"] {
            if mpi::count(&summary, count) != 0 {
                return Err(format!("{count} without an error: {}", mpi::told(&out)));
            }
        }
        Ok(format!("{} sends", mpi::count(&summary, "sends")))
    }
}

/// What of energies is compared where plain runs differ from each other, as they do by another
/// order of adding: the first three in the first half of the run, for what is added otherwise grows
/// with time, and the last, which does not change, in all of it.
const ENERGIES: [&str; 4] = ["Potential", "Kinetic-En.", "Total-Energy", "Conserved-En."];

/// So far they may differ, by what they are.  In the run the first three change by more.
const NEAR_MAX: f64 = 1e-3;

/// The rows of a file of energies: a time, and each of [`ENERGIES`].
fn energies(folder: &Path, name: &str) -> Result<Vec<Vec<f64>>, String> {
    let mut command = Command::new("gmx");
    command.args(["energy", "-xvg", "none", "-f", name, "-o", "energies.xvg"]).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("gmx energy: {e}"))?;
    let wanted = ENERGIES.join("\n") + "\n\n";
    child.stdin.take().unwrap().write_all(wanted.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    if !out.status.success() {
        return Err(format!("gmx energy of {name}: {}", mpi::told(&out)));
    }
    let text = fs::read_to_string(folder.join("energies.xvg")).unwrap();
    let row = |line: &str| line.split_whitespace().map(|it| it.parse().unwrap()).collect();
    Ok(text.lines().map(row).collect())
}

/// Says which are not.
fn are_near(plain: &[Vec<f64>], got: &[Vec<f64>]) -> Result<(), String> {
    if plain.len() < 4 || plain.len() != got.len() {
        return Err(format!("{} rows of energies plain, {} in replicas", plain.len(), got.len()));
    }
    for (idx, (plain_row, got_row)) in plain.iter().zip(got).enumerate() {
        let lengths = [plain_row, got_row].map(Vec::len);
        if lengths != [1 + ENERGIES.len(); 2] || plain_row[0] != got_row[0] {
            return Err(format!("row {idx} of energies: {plain_row:?} plain, {got_row:?}"));
        }
        let is_early = idx <= plain.len() / 2;
        for (name, (a, b)) in ENERGIES.iter().zip(plain_row.iter().zip(got_row).skip(1)) {
            let is_held = is_early || *name == "Conserved-En.";
            // What is no number is near nothing.
            let is_near = (a - b).abs() <= NEAR_MAX * a.abs();
            if is_held && !is_near {
                return Err(format!("{name} at {} ps: {a} plain, {b} in replicas", plain_row[0]));
            }
        }
    }
    Ok(())
}

/// So many plain runs more are made of one whose plain runs differ, where replicas print something
/// else than the first.
const OTHERS_MAX: usize = 4;

fn difference(wanted: &[String], got: &[String]) -> String {
    match wanted.iter().zip(got).find(|(a, b)| a != b) {
        Some((a, b)) => format!("plain it prints `{a}`, in replicas `{b}`"),
        None => format!("{} lines plain, {} in replicas", wanted.len(), got.len()),
    }
}

#[test]
fn programs_of_others_print_in_replicas_what_they_print_plain() {
    compare(Made::Always);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn so_do_the_others() {
    compare(Made::WithLong);
}

fn compare(made: Made) {
    let mut failed = Vec::new();
    // Of all that are here, or of the one that is asked for.
    let chosen = env::var("SELVEDGE_MPI").ok().and_then(|_| Mpi::chosen());
    for mpi in chosen.map_or_else(Mpi::all, |it| vec![it]) {
        println!("{}:", mpi.name);
        failed.extend(compare_all(&mpi, made));
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// Who printed something else.
fn compare_all(mpi: &Mpi, made: Made) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut failed = Vec::new();
    for program in programs(mpi, folder.path()) {
        if program.made != made && !mpi::is_full() {
            continue;
        }
        match program.run(mpi, folder.path()) {
            Ok(told) => println!("{:10} the same, {told}", program.name),
            Err(why) => {
                println!("{:10} FAILED: {why}", program.name);
                failed.push(format!("{} under {}", program.name, mpi.name));
            }
        }
    }
    failed
}

#[test]
fn columns_of_times_are_left_out_and_residuals_are_compared() {
    let text = b"TIME M  P Q BRD Time MFLOPS Residual CHECK\n\
                 ---- -- - - -------- ------ -------- ------\n\n\
                 WALL  4 2 2     0.01   1.25     1.11 PASSED\n\
                 WALL 13 1 4     0.02   0.50     0.36 PASSED\n\
                 WALL 13 1 4     0.02   0.50     9.75\n\n\
                 Finished 2 tests in 0.5 s.\n";
    let kept = |residual: &str| {
        [
            "WALL 4 2 2 * * 1.11 PASSED".to_owned(),
            format!("WALL 13 1 4 * * {} PASSED", residual.replace('?', "0.36")),
            format!("WALL 13 1 4 * * {}", residual.replace('?', "9.75")),
        ]
    };
    for (mask, residual) in [(mpi::of_scalapack as Mask, "?"), (mpi::of_scalapack_sums, "*")] {
        let lines = mask(text);
        assert_eq!(lines[3..6], kept(residual), "{lines:?}");
        assert_eq!(lines[7], "Finished 2 tests in 0.5 s.");
    }
}
