//! A disk that is full or fails loses nothing accepted, keeps nothing refused, and can recover.

use std::env;
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::*;

/// Names the directory in the child.
const CHILD: &str = "SELVEDGE_TEST_DISK_DIR";

/// Appends batches until one is refused; returns that refusal.
fn fill(store: &mut Store) -> StoreError {
    loop {
        let before = store.last();
        if let Err(refused) = store.append(&rows(before, 20)) {
            assert_eq!(store.last(), before);
            assert_eq!(read(store, 0), rows(0, before));
            return refused;
        }
        assert!(before < 100_000, "the disk never fills");
    }
}

#[test]
fn a_full_disk_refuses_whole_batches_and_takes_them_once_there_is_room() {
    let dir = journal(30);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.db.execute_batch("PRAGMA max_page_count=40").unwrap();
    let refused = fill(&mut store);
    assert!(matches!(refused, StoreError::Full { .. }), "{refused:?}");
    let accepted = store.last();
    let text = refused.to_string();
    let batch = format!("is full: nothing of rows {} to {} was", accepted + 1, accepted + 20);
    assert!(text.contains(&batch), "{text}");
    let refused = store.snapshot(&Snapshot { body: vec![7; 1 << 20], ..snapshot(accepted) });
    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");

    store.db.execute_batch("PRAGMA max_page_count=100000").unwrap();
    store.append(&rows(accepted, 20)).unwrap();
    drop(store);
    let (store, opened) = Store::open(dir.path()).unwrap();
    assert_eq!(opened.last, accepted + 20);
    assert_eq!(read(&store, 0), rows(0, accepted + 20));
}

#[test]
fn a_batch_that_cannot_be_taken_back_closes_the_journal() {
    let dir = journal(30);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store.append(&rows(30, 1)).unwrap();
    store.db.execute_batch("PRAGMA max_page_count=1").unwrap();
    // Only its name: SQLite goes on in the file, and we cannot cut it.
    fs::rename(dir.path().join(WAL_FILE), dir.path().join("elsewhere")).unwrap();
    let refused = store.append(&rows(31, 500)).unwrap_err();
    assert!(matches!(refused, StoreError::InDoubt { first: 32, last: 531, .. }), "{refused:?}");
    assert!(refused.to_string().contains("they may be there after a restart"), "{refused}");
    for refused in [store.append(&rows(31, 1)), store.snapshot(&snapshot(31))] {
        assert!(matches!(refused, Err(StoreError::Closed { .. })), "{refused:?}");
    }
}

/// Goal: the same when the system refuses to write, in the middle of a commit.  Method: a child
/// of this test limits the size of its own files; the shell between them has the signal that
/// goes with the limit ignored, as Rust cannot without unsafe code.
#[test]
fn a_write_that_the_system_refuses_leaves_nothing_behind() {
    if let Some(dir) = env::var_os(CHILD) {
        return fail_and_recover(Path::new(&dir));
    }
    let dir = journal(30);
    let name = "store::tests::disk::a_write_that_the_system_refuses_leaves_nothing_behind";
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let report = verify(dir.path()).unwrap();
    assert!(report.is_sound() && 50 < report.last_good, "{report:?}");
}

fn fail_and_recover(dir: &Path) {
    let (mut store, _) = Store::open(dir).unwrap();
    // Not a multiple of a page: the write that meets the limit is cut short.
    let limit = |current| Rlimit { current, maximum: None };
    setrlimit(Resource::Fsize, limit(Some(201_234))).unwrap();
    let refused = fill(&mut store);
    assert!(matches!(refused, StoreError::NotWritten { .. }), "{refused:?}");
    let accepted = store.last();
    assert!(30 < accepted);

    // Whoever starts from what is on the disk at this moment finds what was accepted, no more.
    // Copied by another process: closing the file in this one would drop SQLite's locks on it.
    let crashed = temp_dir();
    let copied = Command::new("cp")
        .args([dir.join(JOURNAL_FILE), dir.join(WAL_FILE), crashed.path().to_owned()])
        .status();
    assert!(copied.unwrap().success());
    let log = fs::metadata(dir.join(WAL_FILE)).unwrap().len();
    assert_eq!(log % (24 + 4_096), 32, "the frame that was cut short is gone");
    setrlimit(Resource::Fsize, limit(None)).unwrap();
    assert_eq!(Store::open(crashed.path()).unwrap().1.last, accepted);

    store.append(&rows(accepted, 20)).unwrap();
    drop(store);
    let (store, opened) = Store::open(dir).unwrap();
    assert_eq!(opened.last, accepted + 20);
    assert_eq!(read(&store, 0), rows(0, accepted + 20));
}
