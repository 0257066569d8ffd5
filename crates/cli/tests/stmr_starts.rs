//! What keeps a program from being started in replicas is named before anything starts, how all
//! come through MPI_Init, and how one ends that has no replicas.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use mpi::{Mpi, told};

/// `selvedge mpirun` with these arguments.
fn selvedge(args: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args([mpi::limit_s(), env!("CARGO_BIN_EXE_selvedge"), "mpirun"]).args(args);
    command.stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    selvedge(args).output().unwrap()
}

/// Goal: `-r 1` takes no death for an end.  Method: a shell that ends itself, alone and as two
/// processes, in one replica and in three.
#[test]
fn a_program_that_dies_has_failed_in_however_many_replicas() {
    for mpi in Mpi::in_turn("a death") {
        let sizes = [
            (["-n", "1", "-r", "1"], "1 process x 1 replica,"),
            (["-n", "2", "-r", "1"], "2 processes x 1 replica,"),
            (["-n", "1", "-r", "3"], "1 process x 3 replicas,"),
        ];
        for (size, named) in sizes {
            let die = ["/bin/sh", "-c", "kill -9 $$"];
            let out = run(&[&size[..], &["--launcher", mpi.launcher()], &die].concat());
            let said = format!("{} {size:?}: {}", mpi.name, told(&out));
            assert_eq!(out.status.code(), Some(2), "{said}");
            assert!(said.contains("is gone") && said.contains("error: rank"), "{said}");
            assert!(said.contains(named), "{said}");
        }
    }
}

/// Goal: no process goes on from MPI_Init before all have come through it, so that whoever dies
/// after it is outlived.  Method: each set is a job, and one is long in MPI_Init; see begins.c.
#[test]
fn who_dies_once_it_goes_on_is_outlived_however_late_others_come() {
    for mpi in Mpi::in_turn("a late set") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("begins", folder.path());
        let wanted = mpi.plain(&program, &[]);
        let words = ["--sets", "jobs", program.to_str().unwrap()];
        let out = mpi.tripled(&summary, &words).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(mpi::lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
        mpi::check_counts(&summary, &[("deaths", 1), ("restarts", 0), ("marks", 0)], &said);
    }
}

/// Goal: a program without MPI runs to its end however far apart its processes end.  Method: one of
/// two works for longer than is waited for those that stay in MPI_Init.
#[test]
fn a_program_without_mpi_is_not_cut_off_when_one_of_its_processes_ends() {
    for mpi in Mpi::in_turn("no MPI") {
        let script = "grep -q SELVEDGE_RANK=1 /proc/self/environ && sleep 12; echo over";
        let words = [&mpi.launcher_args()[..], &["/bin/sh", "-c", script]].concat();
        let out = run(&[&["-n", "2"], &words[..]].concat());
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), "over\nover\n", "{said}");
    }
}

/// Goal: one replica alone that ends before MPI_Init, whatever it did until then, neither ends the
/// program nor holds it up: it starts again.  Method: see unbegun.c.
#[test]
fn one_replica_that_ends_before_mpi_init_is_not_the_programs_end() {
    for mpi in Mpi::in_turn("an early end") {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("unbegun", folder.path());
        for (opens, marks, deaths) in [(false, 0, 0), (true, 1, 1)] {
            let (sign, file) = (at(&format!("sign{opens}")), at("file"));
            let args = if opens { vec![&*sign, &*file] } else { vec![&*sign] };
            let words = [&[program.to_str().unwrap()], &args[..]].concat();
            let out = mpi.tripled(&summary, &words).output().unwrap();
            let said = format!("{}, {opens}: {}", mpi.name, told(&out));
            assert!(out.status.success(), "{said}");
            let printed = mpi::lines(&String::from_utf8_lossy(&out.stdout));
            assert_eq!(printed, "rank 0\nrank 1\nrank 2\nrank 3", "{said}");
            let counts = [("restarts", 1), ("marks", marks), ("deaths", deaths)];
            mpi::check_counts(&summary, &counts, &said);
            assert!(!Path::new(&file).exists(), "one replica alone has opened it: {said}");
        }
    }
}

/// Goal: a library that ends the program when it is loaded is not taken for a crash, and the code
/// is the one that it gives.  Method: see constructed.c.
#[test]
fn a_program_that_ends_before_it_begins_has_its_own_code() {
    for mpi in Mpi::in_turn("constructors") {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (summary, program, here) = (at("summary.json"), at("program"), folder.path());
        let source = mpi::sources().join("constructed.c");
        let words = ["-DLIBRARY", "-shared", "-fPIC", "-o"];
        mpi::succeed(Command::new("cc").args(words).args([&at("libfound.so"), &source]));
        let [from, found] = ["-L", "-Wl,-rpath,"].map(|it| format!("{it}{}", here.display()));
        mpi.compile_with("constructed", &program, &[&from, &found, "-lfound"]);
        for code in [0, 7] {
            let mut command = mpi.tripled(&summary, &[program.to_str().unwrap()]);
            let out = command.env("LACKS", code.to_string()).output().unwrap();
            let said = format!("{} {code}: {}", mpi.name, told(&out));
            assert_eq!(out.status.code(), Some(code), "{said}");
            let (lines, printed) =
                ("nothing is there\n".repeat(4), String::from_utf8_lossy(&out.stdout));
            // At the first code that is not 0 the MPI's launcher ends the others, which may not
            // have printed yet.
            let least = if code == 0 { lines.len() } else { 1 };
            assert!(least <= printed.len() && lines.starts_with(&*printed), "{said}");
            mpi::check_counts(&summary, &[("deaths", 0), ("restarts", 0)], &said);
        }
    }
}

/// A library beside a program, of the same source.
fn compile_library(mpi: &Mpi, name: &str, to: &Path) {
    mpi.compile_with(name, to, &["-DLIBRARY", "-shared", "-fPIC"]);
}

/// Goal: a tool that counts calls through MPI's profiling interface counts those of the program,
/// and what it calls is compared; whether it is preloaded or the program is linked with it.
/// Method: see profiled.c.
#[test]
fn a_tool_between_a_program_and_mpi_is_called() {
    for mpi in Mpi::in_turn("tools") {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (summary, alone, linked, tool) =
            (at("summary.json"), at("alone"), at("linked"), at("libtool.so"));
        compile_library(&mpi, "profiled", &tool);
        let second = at("libsecond.so");
        mpi.compile_with("profiled", &second, &["-DSECOND", "-shared", "-fPIC"]);
        mpi.compile_with("profiled", &alone, &[]);
        let [from, found] =
            ["-L", "-Wl,-rpath,"].map(|it| format!("{it}{}", folder.path().display()));
        mpi.compile_with(
            "profiled",
            &linked,
            &["-Wl,--no-as-needed", &from, &found, "-ltool", "-lsecond"],
        );
        // A busy machine's plain run may lose what is printed last.
        let plain = || mpi.plain_command(&[linked.to_str().unwrap()]).output().unwrap().stdout;
        let mut runs = (0..3).map(|_| String::from_utf8_lossy(&plain()).into_owned());
        let is_whole = |it: &String| it.ends_with("200 sends, 200 sums, 200 receives\n");
        let wanted = runs.find(is_whole).expect("one plain run of three prints to its end");
        assert!(wanted.contains("the second hears of 50\n"), "{wanted}");
        for program in [&alone, &linked] {
            let mut command = mpi.tripled(&summary, &[program.to_str().unwrap()]);
            if program == &alone {
                command.env("LD_PRELOAD", format!("{}:{}", tool.display(), second.display()));
            }
            let out = command.output().unwrap();
            let said = format!("{} {program:?}: {}", mpi.name, told(&out));
            assert_eq!(out.status.code(), Some(0), "{said}");
            assert_eq!(String::from_utf8_lossy(&out.stdout), wanted, "{said}");
            mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("sends", 404)], &said);
        }
    }
}

/// Goal: what a library calls of MPI when the program loads it is served, also where it would find
/// what is its own first.  Method: see plugin.c.
#[test]
fn a_library_that_calls_mpi_when_it_is_loaded_is_served() {
    for mpi in Mpi::in_turn("plugins") {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (summary, program, library) = (at("summary.json"), at("program"), at("plugin.so"));
        compile_library(&mpi, "plugin", &library);
        mpi.compile_with("plugin", &program, &["-ldl"]);
        let library = library.to_str().unwrap();
        // Open MPI 4 does not bear it, plain.
        let hows: &[&[&str]] = if mpi.is_open_mpi() { &[&[]] } else { &[&[], &["deep"]] };
        for how in hows {
            let words = [&[program.to_str().unwrap(), library], *how].concat();
            let out = mpi.tripled(&summary, &words).output().unwrap();
            let said = format!("{} {how:?}: {}", mpi.name, told(&out));
            assert_eq!(out.status.code(), Some(0), "{said}");
            let lines = "adds to 6\nadds to 10\nadds to 14\n";
            assert_eq!(String::from_utf8_lossy(&out.stdout), lines, "{said}");
            mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
        }
    }
}

/// A file that may be executed.
fn write(path: &Path, bytes: &[u8]) -> String {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_is_no_program_is_refused_by_name_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let check = |words: &[&str], wanted: &str| {
        let out = run(&[&["-n", "2"], words].concat());
        let said = told(&out);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted) && out.stdout.is_empty(), "{words:?}: {said}");
    };
    check(&[folder.path().to_str().unwrap()], "is a folder; name a program");
    let script = write(&at("script"), b"#! /nowhere/sh -e\nexit 0\n");
    check(&[&script], "a script that \"/nowhere/sh\" is to run, and there is no such program");
    check(&[&write(&at("cut"), b"\x7fELF\x02\x01\x01")], "neither a whole ELF file nor a script");
    check(&[&write(&at("noise"), b"\x01\x02\x00\n")], "neither a whole ELF file nor a script");
    let text = write(&at("text"), b"echo told; exit 7\n");
    for mpi in ["openmpi", "mpich"].into_iter().filter_map(Mpi::named) {
        let words = ["--launcher", mpi.launcher(), &text];
        if mpi.is_open_mpi() {
            check(&words, "neither a whole ELF file nor a script");
            continue;
        }
        let out = run(&[&["-n", "2"], &words[..]].concat());
        assert_eq!(out.status.code(), Some(7), "{}: {}", mpi.name, told(&out));
        assert_eq!(String::from_utf8_lossy(&out.stdout), "told\ntold\n", "{}", mpi.name);
    }
}

#[test]
fn where_there_is_no_launcher_that_is_said() {
    let said = |program: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.args(["mpirun", "-n", "2", program]).env("PATH", "/nowhere");
        told(&command.stdin(Stdio::null()).output().unwrap())
    };
    let missing = said("/bin/true");
    assert!(missing.contains("no launcher is in PATH: there is no mpirun"), "{missing}");
    if let Some(mpi) = Mpi::named("openmpi") {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile("differ", folder.path());
        let missing = said(program.to_str().unwrap());
        assert!(missing.contains("and no launcher of that MPI is in PATH"), "{missing}");
    }
}

/// Goal: the name of the folder for temporary files keeps nothing from being preloaded.
/// Method: names that the dynamic linker takes for several, or changes, in each way of starting.
#[test]
fn the_job_runs_whatever_the_folder_for_temporary_files_is_called() {
    for mpi in Mpi::in_turn("a folder's name") {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile("ring", folder.path());
        let words = [&mpi.launcher_args()[..], &[program.to_str().unwrap(), "5"]].concat();
        let ways: [&[&str]; 4] =
            [&[], &["--sets", "jobs"], &["--between-hosts", "yes"], &["--check-determinism"]];
        for (way, name) in ways.into_iter().zip(["a b", "a:b", "$ORIGIN", "a\tb"]) {
            let files = folder.path().join(name);
            fs::create_dir(&files).unwrap();
            let mut command = selvedge(&[&["-n", "2"], way, &words].concat());
            let out = command.env("TMPDIR", &files).output().unwrap();
            let said = format!("{} {way:?} in {name:?}: {}", mpi.name, told(&out));
            assert!(out.status.success() && !said.contains("never called"), "{said}");
            assert_eq!(fs::read_dir(&files).unwrap().count(), 0, "{said}");
        }
    }
}

/// Goal: however many replicas there are to be, `selvedge mpirun` does not crash of that, and they
/// have as many files as plain.  Method: limits that are lower than what they take.
#[test]
fn more_replicas_than_there_may_be_files_for_are_refused_and_fewer_get_them() {
    for mpi in Mpi::in_turn("files") {
        let limited = |limit: &str| {
            let launcher = mpi.launcher();
            let line = format!(
                "ulimit {limit}; exec {} mpirun -n 30 --launcher {launcher} /bin/sh -c 'ulimit -n'",
                env!("CARGO_BIN_EXE_selvedge")
            );
            Command::new("bash").args(["-c", &line]).stdin(Stdio::null()).output().unwrap()
        };
        let out = limited("-Sn 200");
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), "200\n".repeat(30), "{said}");
        let out = limited("-n 200");
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(out.status.code(), Some(2), "{said}");
        let wanted = "90 replicas take 334 open files of selvedge mpirun, and it may have 200";
        assert!(said.contains(wanted) && out.stdout.is_empty(), "{said}");
    }
}
