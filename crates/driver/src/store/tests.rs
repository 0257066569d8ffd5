//! The journal on a real disk: what it keeps, what it notices, and what it survives.

mod crash;

mod damage;

mod disk;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::files::temp_dir;

/// `n` rows that follow row `after`, of differing lengths.
fn rows(after: u64, n: u64) -> Vec<Row> {
    (after + 1..=after + n)
        .map(|number| {
            let body =
                format!(r#"{{"row":{number},"why":"{}"}}"#, "x".repeat(number as usize % 97));
            Row { number, at_ns: number * 1_000, body }
        })
        .collect()
}

/// A closed journal of `n` rows.
fn journal(n: u64) -> TempDir {
    let dir = temp_dir();
    let (mut store, _) = Store::open(dir.path()).unwrap();
    for batch in rows(0, n).chunks(10) {
        store.append(batch).unwrap();
    }
    dir
}

fn snapshot(number: u64) -> Snapshot {
    let body = vec![number as u8; 20_000];
    Snapshot { number, at_ns: number * 1_000, version: "0.1.0".to_owned(), body }
}

fn read(store: &Store, after: u64) -> Vec<Row> {
    store.rows_after(after).unwrap().collect::<Result<_, _>>().unwrap()
}

fn change(dir: &Path, sql: &str) {
    let db = Connection::open(dir.join(JOURNAL_FILE)).unwrap();
    db.execute_batch(sql).unwrap();
}

#[test]
fn what_was_appended_is_there_after_reopening() {
    let dir = temp_dir();
    let (mut store, opened) = Store::open(dir.path()).unwrap();
    assert_eq!((opened.last, opened.replay_after(), store.last()), (0, 0, 0));
    store.append(&[]).unwrap();
    store.append(&rows(0, 1)).unwrap();
    store.append(&rows(1, 1_300)).unwrap();
    assert_eq!(read(&store, 0), rows(0, 1_301));
    drop(store);
    let (mut store, opened) = Store::open(dir.path()).unwrap();
    assert_eq!((opened.last, opened.checked_after), (1_301, 0));
    assert!(opened.snapshot.is_none() && opened.set_aside.is_empty());
    assert_eq!(read(&store, 0), rows(0, 1_301));
    assert_eq!(read(&store, 1_299), rows(1_299, 2));
    assert_eq!(read(&store, 1_301), []);
    assert!(matches!(store.rows_after(1_302), Err(StoreError::NoSuchRow { number: 1_302 })));
    store.append(&rows(1_301, 3)).unwrap();
    drop(store);
    let report = verify(dir.path()).unwrap();
    assert!(report.is_sound() && report.last_good == 1_304, "{report:?}");
}

#[test]
fn the_directory_and_its_files_are_the_owners_alone() {
    let dir = temp_dir();
    let dir = dir.path().join("data");
    let (mut store, _) = Store::open(&dir).unwrap();
    store.append(&rows(0, 1)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let mut names = Vec::new();
    for it in fs::read_dir(&dir).unwrap() {
        let path = it.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["journal.db", "journal.db-shm", "journal.db-wal", "lock"]);
}

#[test]
fn a_second_opener_is_refused_while_the_first_lives() {
    let dir = temp_dir();
    let (first, _) = Store::open(dir.path()).unwrap();
    let refused = Store::open(dir.path()).unwrap_err().to_string();
    assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
    let refused = salvage(dir.path(), &dir.path().join("out")).unwrap_err().to_string();
    assert!(refused.contains("in use by process"), "{refused}");
    drop(first);
    drop(Store::open(dir.path()).unwrap());
}

#[test]
fn a_batch_that_does_not_follow_is_refused_whole() {
    let dir = journal(3);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    let mut check = |batch: &[Row], expected: &str| {
        let refused = store.append(batch).unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
        assert_eq!(store.last(), 3);
        assert_eq!(read(&store, 0), rows(0, 3));
    };
    check(&rows(4, 1), "row 5 cannot be appended: the next row is 4");
    check(&rows(2, 2), "row 3 cannot be appended: the next row is 4");
    check(&[rows(3, 1), rows(5, 1)].concat(), "row 6 cannot be appended: the next row is 5");
    let with = |body: &str, at_ns| vec![Row { number: 4, at_ns, body: body.to_owned() }];
    check(&with("{\n}", 0), "the body of row 4 is not one line");
    check(&with("", 0), "the body of row 4 is not one line");
    check(&with("{}", u64::MAX), "row 4 is of 18446744073709551615 ns, later than");
    check(&with(&" ".repeat(BODY_BYTES_MAX + 1), 0), "the body of row 4 has 67108865 bytes");
    store.append(&rows(3, 1)).unwrap();
}

#[test]
fn a_start_replays_from_the_newest_snapshot_and_keeps_two() {
    let dir = journal(50);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    for number in [10, 20, 30, 30] {
        store.snapshot(&snapshot(number)).unwrap();
    }
    for (number, expected) in [(51, "from 30 to 50"), (29, "from 30 to 50"), (0, "from 30 to 50")] {
        let refused = store.snapshot(&snapshot(number)).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    drop(store);
    let (store, opened) = Store::open(dir.path()).unwrap();
    assert_eq!(opened.snapshot, Some(snapshot(30)));
    assert_eq!(read(&store, opened.snapshot.unwrap().number), rows(30, 20));
    let numbers: Vec<u64> =
        verify(dir.path()).unwrap().snapshots.iter().map(|it| it.number).collect();
    assert_eq!(numbers, [30, 20]);
}

#[test]
fn an_export_is_one_row_a_line_from_which_the_chain_follows() {
    let dir = journal(30);
    let (store, _) = Store::open(dir.path()).unwrap();
    let mut text = Vec::new();
    assert_eq!(export(dir.path(), &mut text).unwrap(), 30, "its owner lives");
    let mut last = Link::START;
    for (line, row) in str::from_utf8(&text).unwrap().lines().zip(rows(0, 30)) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        last = last.then(&row);
        assert_eq!(value["number"], row.number);
        assert_eq!(value["at_ns"], row.at_ns);
        assert_eq!(value["body"], serde_json::from_str::<serde_json::Value>(&row.body).unwrap());
        assert_eq!(value["chain"], last.chain.to_string());
    }
    assert_eq!(last, store.last);
}

#[test]
fn a_backup_of_a_live_journal_opens_like_the_original() {
    let dir = journal(50);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.snapshot(&snapshot(40)).unwrap();
    let out = temp_dir();
    let out = out.path().join("backup");
    assert_eq!(backup(dir.path(), &out).unwrap().last_good, 50);
    let log = fs::metadata(out.join(WAL_FILE)).map_or(0, |it| it.len());
    assert_eq!(log, 0, "the one file is all of it");
    store.append(&rows(50, 1)).unwrap();
    assert!(matches!(backup(dir.path(), &out), Err(StoreError::Dir(_))), "not over a backup");
    let (mut copy, opened) = Store::open(&out).unwrap();
    assert_eq!(opened.snapshot, Some(snapshot(40)));
    assert_eq!(read(&copy, 0), rows(0, 50));
    copy.append(&rows(50, 1)).unwrap();
    assert_eq!(copy.last, store.last);
}

#[test]
fn a_living_journal_can_be_verified_while_it_grows() {
    let dir = journal(100);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| {
            let mut last = 0;
            for _ in 0..20 {
                let report = verify(dir.path()).unwrap();
                assert!(report.is_sound() && last <= report.last_good, "{report:?}");
                last = report.last_good;
            }
        });
        // Bounded: each check reads all that has been written, so an eager writer on a slow
        // machine would keep the checks from ever ending.
        for _ in 0..100 {
            store.append(&rows(store.last(), 50)).unwrap();
            if checks.is_finished() {
                break;
            }
        }
        checks.join().unwrap();
    });
    assert!(100 < store.last());
}
