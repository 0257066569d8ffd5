//! A process killed at any point loses nothing that it had acknowledged.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;

/// Names the directory in the child.
const CHILD: &str = "SELVEDGE_TEST_CRASH_DIR";

const N_ROUNDS: u64 = 30;

/// Goal: what `append` has returned for is there after a kill.  Method: this test runs itself as
/// a child that appends for ever and prints each acknowledged number, kills it after a time that
/// differs from round to round, and opens the directory that the child has left.
#[test]
fn what_was_acknowledged_survives_a_kill_at_any_point() {
    if let Some(dir) = env::var_os(CHILD) {
        append_for_ever(Path::new(&dir));
    }
    let dir = temp_dir();
    let (mut last, mut n_acknowledged) = (0, 0);
    for round in 0..N_ROUNDS {
        // Steps that share no factor with what the child repeats.
        let wait = Duration::from_micros(500 + round * 1_709);
        let acknowledged = kill_after(dir.path(), wait);
        n_acknowledged += acknowledged.saturating_sub(last);
        let (store, opened) = Store::open(dir.path()).unwrap();
        assert!(acknowledged <= opened.last, "row {acknowledged} of {} is lost", opened.last);
        assert!(last <= opened.last, "row {last} of an earlier round is lost");
        last = opened.last;
        let after = opened.replay_after();
        assert_eq!(read(&store, after), rows(after, last - after));
        assert!(opened.snapshot.is_none_or(|it| it == snapshot(it.number)));
    }
    println!("{last} rows in {N_ROUNDS} rounds, {n_acknowledged} of them acknowledged");
    assert!(N_ROUNDS < n_acknowledged, "the child is killed too early to test anything");
    assert!(verify(dir.path()).unwrap().is_sound());
}

/// The last number that a child had acknowledged when it was killed.
fn kill_after(dir: &Path, wait: Duration) -> u64 {
    let name = "store::tests::crash::what_was_acknowledged_survives_a_kill_at_any_point";
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut lines = out.lines().map_while(Result::ok);
    assert!(lines.any(|it| it == "opened"), "the child cannot open the journal");
    #[allow(
        clippy::disallowed_methods,
        reason = "the child is another process, on no clock of ours"
    )]
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
    // The last line may be cut short: a whole one ends in a semicolon.
    lines.filter_map(|it| it.strip_suffix(';')?.parse().ok()).last().unwrap_or(0)
}

fn append_for_ever(dir: &Path) -> ! {
    let (mut store, _) = Store::open(dir).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nopened").unwrap();
    loop {
        let n = store.last() % 7 + 1;
        store.append(&rows(store.last(), n)).unwrap();
        writeln!(out, "{};", store.last()).unwrap();
        if store.last() % 5 == 0 {
            store.snapshot(&snapshot(store.last())).unwrap();
        }
    }
}
