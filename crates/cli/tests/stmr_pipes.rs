//! MPI programs in replicas between pipes of which the other end is slow, or does nothing.
//!
//! Goal: the launcher keeps no more than it has to of what comes in and goes out, as in a plain
//! run, and goes on deciding meanwhile.  Method: input without an end for a program that reads
//! none; output that nobody reads for some time, while a replica is killed or the launcher is
//! asked to end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "a pipe is left alone for a while in real time")]

mod mpi;

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use mpi::{Mpi, lines, replica, told};

/// More than the launcher keeps of what waits for somebody, in MiB of its memory.
const MEMORY_MAX_MIB: u64 = 96;

#[test]
fn input_that_no_process_reads_is_left_where_it_is() {
    for mpi in Mpi::in_turn("ring") {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile("ring", folder.path());
        let words = [program.to_str().unwrap(), "400"];
        let mut command = mpi.tripled(&folder.path().join("summary.json"), &words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let writer = thread::spawn(move || {
            let mut n = 0;
            while input.write_all(&[b'y'; 1 << 16]).is_ok() {
                n += 1 << 16;
            }
            n
        });
        let out = child.wait_with_output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let n: u64 = writer.join().unwrap();
        assert!(n <= 4 << 20, "{n} bytes were read: {said}");
    }
}

/// Goal: a replica of the process that reads holds up nobody when it is gone, and a program that
/// starts again reads all of it again.  Method: one is killed in the middle; see reader.c.
#[test]
fn input_goes_on_without_a_replica_that_is_gone() {
    const N: u64 = 400_000;
    let input: String = (1..=N).map(|it| format!("{it}\n")).collect();
    let (first, second) = input.split_at(input.len() / 2);
    for mpi in Mpi::in_turn("reader") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("reader", folder.path());
        let was = folder.path().join("was");
        let words = [program.to_str().unwrap(), was.to_str().unwrap()];
        let mut command = mpi.tripled(&summary, &words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(first.as_bytes()).unwrap();
        kill(&program, 1, 0);
        pipe.write_all(second.as_bytes()).unwrap();
        drop(pipe);
        let out = child.wait_with_output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let printed = lines(&String::from_utf8_lossy(&out.stdout));
        assert!(printed.contains(&format!("rank 0: {}", N * (N + 1) / 2)), "{printed}\n{said}");
        mpi::check_counts(&summary, &[("restarts", 1), ("marks", 0)], &said);
    }
}

/// Goal: a program that is steered by what comes in finds it at the same step in all replicas,
/// whichever way it looks for it, and also when who leads has died.  Method: see steered.c; a
/// command is written while it makes steps.
#[test]
fn what_comes_in_is_found_at_the_same_step_by_all_replicas() {
    let all = Mpi::in_turn("steered").into_iter();
    for (mpi, kills) in all.flat_map(|it| [(it.clone(), false), (it, true)]) {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("steered", folder.path());
        let mut command = mpi.tripled(&summary, &[program.to_str().unwrap()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let mut first = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        for text in ["turn left\n", "turn right\n", "quit\n"] {
            pipe.write_all(text.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(150));
            if kills && text.starts_with("turn left") {
                kill(&program, 0, 0);
            }
        }
        let out = child.wait_with_output().unwrap();
        let said = format!("{}, killed: {kills}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let printed = [&first[..], &out.stdout].concat();
        let wanted = "steps are made\nit was told: turn left\nturn right\nquit\n";
        assert_eq!(String::from_utf8_lossy(&printed), wanted, "{said}");
        let deaths = u64::from(kills);
        mpi::check_counts(&summary, &[("restarts", 0), ("marks", 0), ("deaths", deaths)], &said);
    }
}

/// Goal: an alarm ends a wait for what does not come in, its handler has run then, and it does not
/// come once more where a replica has set its own later.  Method: see steered.c, which waits in
/// each way before it makes steps.
#[test]
fn an_alarm_ends_a_wait_for_what_does_not_come_in() {
    for mpi in Mpi::in_turn("alarms") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("steered", folder.path());
        let mut command = mpi.tripled(&summary, &[program.to_str().unwrap(), "alarms"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // What is left of the time is select's to say.
        let waited = |it| i32::from(it == 2 || it == 3);
        let way = |it: i32| {
            let n = it + 1;
            format!("way {it}: -1, interrupted: 1, waited: {}, {n} alarms\n", waited(it))
        };
        let wanted: String = (0..5).map(way).chain(["once: -1, 6 alarms\n".into()]).collect();
        let mut heard = vec![0; wanted.len()];
        child.stdout.as_mut().unwrap().read_exact(&mut heard).unwrap();
        pipe.write_all(b"quit\n").unwrap();
        let out = child.wait_with_output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&heard), wanted, "{said}");
        mpi::check_counts(&summary, &[("restarts", 0), ("marks", 0), ("deaths", 0)], &said);
    }
}

/// Goal: what a program asks of its standard input is answered as in a plain run.  Method: see
/// inputs.c; a signal that it ignores and then input come after it has said that it has heard none.
#[test]
fn what_is_asked_of_input_is_answered_as_in_a_plain_run() {
    for mpi in Mpi::in_turn("inputs") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = folder.path().join("inputs");
        mpi.compile_with("inputs", &program, &["-pthread"]);
        let mut command = mpi.tripled(&summary, &[program.to_str().unwrap()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let mut heard = [0; 7];
        let is_silent = child.stdout.as_mut().unwrap().read_exact(&mut heard).is_ok();
        if is_silent {
            mpi::succeed(Command::new("kill").args(["-USR1", &selvedge(&child)]));
            thread::sleep(Duration::from_millis(400));
            pipe.write_all(b"word\n").unwrap();
            pipe.write_all(&[b'x'; 100]).unwrap();
        }
        let out = child.wait_with_output().unwrap();
        drop(pipe);
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(is_silent && out.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), "12 bytes\n".repeat(5), "{said}");
        mpi::check_counts(&summary, &[("restarts", 0), ("marks", 0), ("deaths", 0)], &said);
    }
}

/// Goal: a program of which one thread calls MPI for long while another waits for input ends with
/// the names of both.  Method: see inputs.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn a_call_beside_a_wait_for_input_ends_the_program_with_the_names_of_both() {
    for mpi in Mpi::in_turn("beside") {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("inputs");
        mpi.compile_with("inputs", &program, &["-pthread"]);
        let words = [program.to_str().unwrap(), "beside"];
        let mut command = mpi.tripled(&folder.path().join("summary.json"), &words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let pipe = child.stdin.take();
        let out = child.wait_with_output().unwrap();
        drop(pipe);
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(out.status.code(), Some(2), "{said}");
        let wanted = "MPI_Barrier of a thread while another is in a wait for standard input";
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn a_program_whose_output_nobody_reads_waits_and_outlives_a_death_meanwhile() {
    Mpi::in_turn("chatty").iter().for_each(|it| leave_output(it, Duration::from_secs(5)));
}

/// A replica that sleeps for 30 s while its siblings wait for it is ended otherwise.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn so_it_does_however_long_that_takes() {
    Mpi::in_turn("patience").iter().for_each(|it| leave_output(it, Duration::from_secs(45)));
}

fn leave_output(mpi: &Mpi, pause: Duration) {
    const ROUNDS: usize = 400;
    const LINES: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let program = mpi.compile("chatty", folder.path());
    let mut child = start(mpi, &summary, &program, [ROUNDS, LINES]);
    let mut text = vec![0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut text).unwrap();
    thread::sleep(pause / 2);
    kill(&program, 1, 2);
    thread::sleep(pause / 2);
    let memory = memory_mib(&selvedge(&child));
    let out = child.wait_with_output().unwrap();
    let said = format!("{}, {memory} MiB: {}", mpi.name, told(&out));
    assert!(out.status.success(), "{said}");
    text.extend(&out.stdout);
    for rank in 0..4 {
        let start = format!("{rank} ");
        let text = String::from_utf8_lossy(&text);
        let own: Vec<&str> = text.lines().filter(|it| it.starts_with(&start)).collect();
        let wanted = (0..ROUNDS)
            .flat_map(|round| (0..LINES).map(move |line| format!("{rank} {round} {line:<990}")));
        assert!(own.iter().copied().eq(wanted), "{} lines of rank {rank}: {said}", own.len());
    }
    mpi::check_counts(&summary, &[("deaths", 1), ("marks", 0), ("restarts", 0)], &said);
    assert!(memory < MEMORY_MAX_MIB, "{said}");
}

#[test]
fn a_signal_ends_a_program_whose_output_nobody_reads() {
    for mpi in Mpi::in_turn("chatter") {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile("chatty", folder.path());
        let summary = folder.path().join("summary.json");
        let mut child = start(&mpi, &summary, &program, [1_000_000, 50]);
        let mut text = vec![0; 1];
        child.stdout.as_mut().unwrap().read_exact(&mut text).unwrap();
        thread::sleep(Duration::from_secs(3));
        mpi::succeed(Command::new("kill").args(["-TERM", &selvedge(&child)]));
        let until = Instant::now() + Duration::from_secs(20);
        let is_there = |set| (0..4).any(|rank| replica(&program, set, rank).is_some());
        while (0..3).any(is_there) {
            assert!(Instant::now() < until, "{}: replicas go on", mpi.name);
            thread::sleep(Duration::from_millis(100));
        }
        // What was let out is still there to be read.
        let out = child.wait_with_output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(out.status.code(), Some(143), "{said}");
        assert!(1 << 20 < out.stdout.len(), "{} bytes: {said}", out.stdout.len());
    }
}

fn start(mpi: &Mpi, summary: &Path, program: &Path, words: [usize; 2]) -> Child {
    let [rounds, lines] = words.map(|it| it.to_string());
    let mut command = mpi.tripled(summary, &[program.to_str().unwrap(), &rounds, &lines]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Kills a replica, once it is there.
fn kill(program: &Path, set: u64, rank: u64) {
    let until = Instant::now() + Duration::from_secs(60);
    let pid = loop {
        if let Some(pid) = replica(program, set, rank) {
            break pid;
        }
        assert!(Instant::now() < until, "it did not start");
        thread::sleep(Duration::from_millis(20));
    };
    mpi::succeed(Command::new("kill").args(["-9", &pid]));
}

/// The number of the program under test, of which the child is the parent: timeout.
fn selvedge(child: &Child) -> String {
    let timeout = child.id();
    let children = fs::read_to_string(format!("/proc/{timeout}/task/{timeout}/children"));
    children.unwrap().trim().to_owned()
}

/// The most memory that a process has had.
fn memory_mib(pid: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}
