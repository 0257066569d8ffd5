//! Damage refuses to start, names the last good row, and can be salvaged up to there.

use super::*;

/// Damages a closed journal of 200 rows, and expects the start to be refused behind `last_good`
/// with `what`, verify to agree, and a salvage to bring over just the good rows.
fn check(damage: impl Fn(&Path), last_good: u64, what: &str) {
    let dir = journal(200);
    damage(dir.path());
    check_refusal(dir.path(), last_good, what);
}

fn check_refusal(dir: &Path, good: u64, what: &str) {
    let before = fs::read(dir.join(JOURNAL_FILE)).unwrap();
    let refused = Store::open(dir).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains(&format!("damaged after row {good},")), "{text}: {refused:?}");
    for command in ["verify", "salvage"] {
        assert!(text.contains(&format!("selvedge journal {command} {}", dir.display())), "{text}");
    }
    let StoreError::Damaged { damage, .. } = refused else { panic!("{refused:?}") };
    assert!(damage.to_string().contains(what), "{damage}");

    let report = verify(dir).unwrap();
    assert_eq!((report.last_good, report.damage), (good, Some(damage)));
    let refused = export(dir, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { last_good, .. } if last_good == good));

    let out = temp_dir();
    let out = out.path().join("out");
    if good == 0 {
        let refused = salvage(dir, &out).map(drop).unwrap_err();
        assert!(matches!(&refused, StoreError::NothingGood { dir: it, .. } if it == dir));
        assert!(!out.exists(), "an empty journal would pass for that of a new plant");
        return;
    }
    let salvaged = salvage(dir, &out).unwrap();
    assert_eq!((salvaged.n_rows, salvaged.report.last_good), (good, good));
    let (mut store, opened) = Store::open(&out).unwrap();
    assert_eq!(opened.last, good);
    assert_eq!(read(&store, 0), rows(0, good));
    store.append(&rows(good, 1)).unwrap();
    assert_eq!(fs::read(dir.join(JOURNAL_FILE)).unwrap(), before, "the original is untouched");
}

fn sql(text: &str) -> impl Fn(&Path) {
    move |dir| change(dir, text)
}

#[test]
fn a_changed_row_is_noticed() {
    check(sql("UPDATE journal SET body = '{}' WHERE number = 120"), 119, "row 120 is not what");
    check(sql("UPDATE journal SET at_ns = 1 WHERE number = 120"), 119, "row 120 is not what");
    check(sql("UPDATE journal SET chain = zeroblob(32) WHERE number = 1"), 0, "row 1 is not what");
    check(sql("UPDATE journal SET chain = x'00' WHERE number = 7"), 6, "row 7 is not a row");
    check(sql("UPDATE journal SET at_ns = -1 WHERE number = 7"), 6, "row 7 is not a row");
    let not_text = "UPDATE journal SET body = CAST(x'FF' AS TEXT) WHERE number = 7";
    check(sql(not_text), 6, "row 7 is not a row");
}

#[test]
fn a_missing_row_is_noticed() {
    check(sql("DELETE FROM journal WHERE number = 1"), 0, "row 1 is missing: row 2 follows");
    check(sql("DELETE FROM journal WHERE number = 120"), 119, "row 120 is missing");
    check(sql("DELETE FROM journal WHERE number = 200"), 199, "ends at row 199, but rows up to");
    check(sql("DELETE FROM journal"), 0, "ends at row 0, but rows up to 200");
    let renumber = "DELETE FROM journal WHERE number = 100;
                    UPDATE journal SET number = number - 1 WHERE number > 100;";
    check(sql(renumber), 99, "row 100 is not what was written");
}

#[test]
fn swapped_and_added_rows_are_noticed() {
    let swap = "UPDATE journal SET number = -1 WHERE number = 50;
                UPDATE journal SET number = 50 WHERE number = 51;
                UPDATE journal SET number = 51 WHERE number = -1;";
    check(sql(swap), 49, "row 50 is not what was written");
    let add = "INSERT INTO journal SELECT 201, at_ns, body, chain FROM journal WHERE number = 200";
    check(sql(add), 200, "row 201 is not what was written");
    // Whoever can compute the chain still has to change the record.
    check(
        |dir| {
            let (store, _) = Store::open(dir).unwrap();
            let row = rows(200, 1).remove(0);
            let link = store.last.then(&row);
            drop(store);
            let db = Connection::open(dir.join(JOURNAL_FILE)).unwrap();
            let values = params![row.number, row.at_ns, row.body, link.chain.0];
            db.execute("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)", values).unwrap();
        },
        200,
        "row 201 does not agree with the record",
    );
}

#[test]
fn a_lost_record_is_noticed() {
    check(sql("DELETE FROM meta WHERE key = 'head'"), 200, "(meta `head`) is missing");
    check(sql("UPDATE meta SET value = '200 zz' WHERE key = 'head'"), 200, "(meta `head`) is");
    check(sql("DELETE FROM meta WHERE key = 'format'"), 200, "(meta `format`) is missing");
    check(sql("UPDATE meta SET value = 'other' WHERE key = 'format'"), 200, "(meta `format`) is");
    check(sql("DROP TABLE snapshot"), 200, "the table of snapshots is unreadable");
    check(sql("DROP TABLE journal"), 0, "what follows row 0 is unreadable");
    let other_table = "PRAGMA writable_schema=ON;
                       UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', 'STRIST')
                       WHERE name = 'snapshot';";
    check(sql(other_table), 200, "the definition of table `snapshot` is not what was written");
}

/// Every 127th byte of the file in turn: each either changes nothing that is read, or refuses.
#[test]
fn a_flipped_byte_anywhere_is_noticed_or_harmless() {
    let dir = journal(200);
    let path = dir.path().join(JOURNAL_FILE);
    let whole = fs::read(&path).unwrap();
    let (mut n_noticed, mut n_harmless) = (0, 0);
    for place in (0..whole.len()).step_by(127) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(dir.path().join(format!("{JOURNAL_FILE}{suffix}")));
        }
        fs::write(&path, &bytes).unwrap();
        match Store::open(dir.path()) {
            Ok((store, opened)) => {
                assert_eq!(opened.last, 200, "byte {place}");
                assert_eq!(read(&store, 0), rows(0, 200), "byte {place}");
                n_harmless += 1;
            }
            Err(StoreError::Damaged { last_good, .. }) => {
                assert!(last_good <= 200, "byte {place}");
                n_noticed += 1;
            }
            Err(other) => panic!("byte {place}: {other:?}"),
        }
    }
    // What is harmless lies in the room that pages have left and in counters of the header.
    println!("{n_noticed} noticed, {n_harmless} harmless");
    assert!(n_harmless < n_noticed, "{n_noticed} noticed, {n_harmless} harmless");
}

#[test]
fn a_flipped_byte_in_a_body_names_the_row_before() {
    let flip = |dir: &Path| {
        let path = dir.join(JOURNAL_FILE);
        let mut bytes = fs::read(&path).unwrap();
        let needle = br#"{"row":150,"#;
        let place = bytes.windows(needle.len()).position(|it| it == needle).unwrap();
        bytes[place + 8] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    check(flip, 149, "row 150 is not what was written");
}

#[test]
fn a_truncated_file_is_noticed() {
    for kept in [100, 70, 40, 10, 0] {
        let dir = journal(1_000);
        let path = dir.path().join(JOURNAL_FILE);
        let len = fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(len * kept / 100).unwrap();
        let report = verify(dir.path()).unwrap();
        if kept == 100 {
            assert!(report.is_sound());
            continue;
        }
        let good = report.last_good;
        assert!(good < 1_000 * kept.max(1) / 100, "{good} rows in {kept} %");
        assert!(kept < 40 || 1_000 * kept / 150 < good, "only {good} rows in {kept} %");
        check_refusal(dir.path(), good, "");
    }
}

#[test]
fn a_journal_without_its_file_is_not_a_new_one() {
    let dir = journal(3);
    let (store, _) = Store::open(dir.path()).unwrap();
    let wal = dir.path().join("journal.db-wal");
    let bytes = fs::read(&wal).unwrap();
    drop(store);
    fs::remove_file(dir.path().join(JOURNAL_FILE)).unwrap();
    fs::write(&wal, bytes).unwrap();
    let refused = Store::open(dir.path()).unwrap_err().to_string();
    assert!(refused.contains("journal.db-wal lies there without"), "{refused}");
    let empty = temp_dir();
    for refused in [
        verify(empty.path()).map(drop).unwrap_err(),
        backup(empty.path(), &dir.path().join("out")).map(drop).unwrap_err(),
        salvage(empty.path(), &dir.path().join("out")).map(drop).unwrap_err(),
        export(empty.path(), &mut Vec::new()).map(drop).unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::NoJournal { .. }), "{refused:?}");
    }
    assert!(!dir.path().join("out").exists(), "nothing is made for nothing");
}

#[test]
fn a_newer_format_is_refused_by_its_name() {
    let dir = journal(3);
    change(dir.path(), "UPDATE meta SET value = 'selvedge-journal 2' WHERE key = 'format'");
    let out = dir.path().join("out");
    for refused in [
        Store::open(dir.path()).map(drop).unwrap_err(),
        verify(dir.path()).map(drop).unwrap_err(),
        export(dir.path(), &mut Vec::new()).map(drop).unwrap_err(),
        backup(dir.path(), &out).map(drop).unwrap_err(),
        salvage(dir.path(), &out).map(drop).unwrap_err(),
    ] {
        let text = refused.to_string();
        let expected = "`selvedge-journal 2`, this version reads `selvedge-journal 1`";
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_damaged_snapshot_is_set_aside_for_the_older_one() {
    let dir = journal(50);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.snapshot(&snapshot(20)).unwrap();
    store.snapshot(&snapshot(30)).unwrap();
    drop(store);
    change(dir.path(), "UPDATE snapshot SET version = '0.1.1' WHERE number = 30");
    let (store, opened) = Store::open(dir.path()).unwrap();
    assert_eq!(opened.set_aside, [SnapshotFault::Changed { number: 30 }]);
    assert_eq!(opened.replay_after(), 20);
    assert_eq!(opened.snapshot, Some(snapshot(20)));
    drop(store);
    assert!(!verify(dir.path()).unwrap().is_sound());

    let out = temp_dir();
    assert_eq!(salvage(dir.path(), out.path()).unwrap().n_snapshots, 1);
    assert_eq!(Store::open(out.path()).unwrap().1.snapshot, Some(snapshot(20)));

    change(dir.path(), "UPDATE snapshot SET body = zeroblob(5) WHERE number = 20");
    let (mut store, opened) = Store::open(dir.path()).unwrap();
    assert_eq!((opened.snapshot, opened.set_aside.len()), (None, 2));
    assert_eq!(read(&store, 0), rows(0, 50));
    store.snapshot(&snapshot(40)).unwrap();
    store.snapshot(&snapshot(50)).unwrap();
    drop(store);
    assert!(verify(dir.path()).unwrap().is_sound(), "damaged snapshots are pushed out");
}

#[test]
fn a_long_journal_is_walked_from_its_snapshot_on() {
    let check = |sql: &str, extent| {
        let dir = journal(200);
        let (mut store, _) = Store::open(dir.path()).unwrap();
        store.snapshot(&snapshot(150)).unwrap();
        drop(store);
        change(dir.path(), sql);
        let report = Reader::open(dir.path()).unwrap().check(extent).unwrap().report;
        (report.checked_after, report.last_good, report.damage.is_none())
    };
    let (long, short) = (Extent::Bounded { n_rows_max: 199 }, Extent::Bounded { n_rows_max: 200 });
    let early = "UPDATE journal SET body = '{}' WHERE number = 100";
    assert_eq!(check(early, long), (150, 200, true));
    assert_eq!(check(early, short), (0, 99, false));
    assert_eq!(check(early, Extent::Whole), (0, 99, false));
    let late = "UPDATE journal SET body = '{}' WHERE number = 170";
    assert_eq!(check(late, long), (150, 169, false));
    // The digest of a snapshot covers the row that the walk starts from.
    let under = "UPDATE journal SET chain = zeroblob(32) WHERE number = 150";
    assert_eq!(check(under, long), (0, 149, false));
}

/// Goal: the commits behind a changed byte of the log do not vanish without a word.  Method: a
/// journal as a crash leaves it, with each frame of its log damaged in turn.
#[test]
fn a_flipped_byte_in_the_log_is_noticed_if_commits_lie_behind_it() {
    let dir = journal(5);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    let log = dir.path().join(WAL_FILE);
    // How long the log is after each commit.
    let mut lens = vec![wal::len(0, 4_096)];
    for number in 5..15 {
        store.append(&rows(number, 1)).unwrap();
        lens.push(fs::metadata(&log).unwrap().len());
    }
    let log = fs::read(&log).unwrap();
    assert_eq!(log.len() as u64, lens[10], "the log holds these commits and no more");
    drop(store);
    // The file itself as it was before them: they are all in the log.
    let file = fs::read(journal(5).path().join(JOURNAL_FILE)).unwrap();

    let flips = (0..10).flat_map(|n| [(n, lens[n]), (n, lens[n] + 5), (n, lens[n + 1] - 1)]);
    for (n_whole, place) in [(0, 0), (0, 17)].into_iter().chain(flips) {
        let mut log = log.clone();
        log[place as usize] ^= 4;
        let crashed = temp_dir();
        fs::write(crashed.path().join(JOURNAL_FILE), &file).unwrap();
        fs::write(crashed.path().join(WAL_FILE), &log).unwrap();
        let good = 5 + n_whole as u64;
        if n_whole < 8 {
            check_refusal(crashed.path(), good, "of journal.db-wal is damaged");
            assert_eq!(fs::read(crashed.path().join(WAL_FILE)).unwrap(), log, "nor the log");
        } else if n_whole == 9 {
            // What never ended looks just so, and is cut off before the next commit.
            let (store, opened) = Store::open(crashed.path()).unwrap();
            assert_eq!(opened.last, good);
            assert_eq!(fs::metadata(crashed.path().join(WAL_FILE)).unwrap().len(), lens[n_whole]);
            assert_eq!(read(&store, 0), rows(0, good));
        }
    }
}
