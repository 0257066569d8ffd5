//! Every limit of the drivers, in one place.

use std::time::Duration;

/// The longest body of one journal row, in bytes.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// The largest body of one snapshot, in bytes: `SQLite` itself stops at a billion.
pub const SNAPSHOT_BYTES_MAX: usize = 900 << 20;

/// The longest version of one snapshot, in bytes.
pub const VERSION_BYTES_MAX: usize = 256;

/// Snapshots kept: the newest, and one to fall back to.
pub const SNAPSHOTS_KEPT: u32 = 2;

/// Up to so many rows, start-up walks the whole chain; beyond, from the newest good snapshot on.
///
/// A release build walks 1.4 million rows of 300 bytes a second: `cargo xtask bench --wall append`.
pub const ROWS_WALKED_AT_OPEN_MAX: u64 = 500_000;

/// Rows read from disk at once.
pub const ROWS_PER_READ: u64 = 512;

/// Bytes of bodies after which one read ends early.
pub const READ_BYTES_MAX: usize = 4 << 20;

/// Rows written in one transaction when a journal is copied.
pub const ROWS_PER_COPY: usize = 4096;

/// How long to wait for another reader that is just recovering or closing the same file.
pub const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long to wait for the lock of an owner that is dead: a child that it was just starting holds
/// it until it runs its own program.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(2);

/// Findings about pages that one report lists.
pub const PAGE_FINDINGS_MAX: u32 = 20;

/// What is kept of one task's output, in bytes; the rest is counted and said.
pub const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// How long a supervisor waits for the last output once everything of its task is dead.
pub const OUTPUT_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long a supervisor waits before it tries again to write down how its task ended.
pub const EXIT_RETRY: Duration = Duration::from_millis(500);

/// The longest message between the server and a plant's process, in bytes: the versions of a plant
/// file together are the longest.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

/// How often a supervisor tries to take its lock before it believes that another has it.
pub const LOCK_TRIES: u32 = 100;

/// How long it waits between two tries.
pub const LOCK_RETRY: Duration = Duration::from_millis(10);

/// Entries of one folder of sysfs: a large server has some hundred PCI devices.
pub const PROBE_ENTRIES: usize = 8192;

/// Bytes read of one file of sysfs; the kernel gives a page at most.
pub const PROBE_BYTES: u64 = 1 << 16;
