//! Every limit of the control core, in one place.

use selvedge_model::unit::{Ppm, Span};

/// Jobs that wait at once; a submit beyond is refused.
pub const QUEUE_MAX: usize = 100_000;

/// Real tasks of all jobs that are not over; a submit beyond is refused.
pub const TASKS_MAX: u32 = 256;

/// How many jobs behind the head a pass tries to backfill; those that ask for no less than one that
/// did not fit are not counted.
pub const BACKFILL_DEPTH: usize = 256;

/// So many rows of the queue, busy jobs and parts are looked at to find out why a job waits, or
/// until when; a question that takes more is given up.  Some seconds of processor time.
pub const EFFORT_MAX: u64 = 100_000_000;

/// Evidence kept with a case; what comes later is counted only.
pub const EVIDENCE_MAX: usize = 16;

/// Lines of a job's timeline; the first and the newest are kept.
pub const TIMELINE_MAX: usize = 64;

/// Sightings of one symptom on one target that the rules look back on.
pub const SIGHTINGS_MAX: usize = 16;

/// How often a silent device is asked again before it counts as silent.
pub const ASKS_MAX: u32 = 3;

/// So many reads and polls in a row that a circuit switch does not answer make it a silent one.
/// Assumed: one may be lost, and two be late.
pub const MISSES_MAX: u32 = 3;

/// How often a silent switch is read, beside whoever polls it.
pub const SILENT_READ_EVERY: Span = Span::mins(5);

/// How often a job is placed anew because its start failed, before it waits for a person.
pub const STARTS_MAX: u32 = 8;

/// The longest back-off between two starts of one job.
pub const BACKOFF_MAX: Span = Span::hours(1);

/// Drains on one target.
pub const DRAINS_MAX: usize = 16;

/// The longest reason that a person may give, in bytes.
pub const WHY_MAX: usize = 1024;

/// The longest idempotency key, in bytes.
pub const KEY_MAX: usize = 128;

/// Idempotency keys remembered; the oldest are forgotten first.
pub const KEYS_MAX: usize = 200_000;

/// Generations that a switch may answer with; the core's own start at one.
pub const GENERATION_MAX: u64 = 1 << 62;

/// Starts of one job that devices may speak of; the core's own count from one.
pub const ATTEMPT_MAX: u32 = 1 << 30;

/// Targets of one maintenance.
pub const MAINTENANCE_MAX: usize = 4096;

/// How long before a machine is missed its links may have gone down for the same reason.
pub const ABSORB_MAX: Span = Span::secs(60);

/// How long a case waits for a crew until it is called again.
pub const CALL_AGAIN: Span = Span::hours(6);

/// How much longer than on the best partition of its size a job may take, so that it gets one at
/// once rather than waits.  Assumed: a quarter; three links of four cost a third of what a job
/// communicates.
pub const SLOWDOWN_MAX: Ppm = Ppm::new(1_250_000);

/// What it costs to leave a whole square's sides open to free parts, in a job's own time.  Assumed:
/// as much as running a tenth longer.
pub const OPEN_COST: Ppm = Ppm::new(100_000);

/// Of so many things that a job may wait for the needless ones are left out of what is told.
pub const FORECAST_STEPS_MAX: usize = 32;

/// Entries of the forwarding tables of one partition that the core looks at before they are sent:
/// all of those of 4,096 chips, which takes a tenth of a second.  Of a larger partition it looks
/// at the entries of all chips for some destinations, spread evenly.
pub const TABLE_ENTRIES_MAX: usize = 1 << 24;

/// Goals of defragmentation on a grid that are tried, from the cheapest on.
pub const GOALS_MAX: usize = 64;

/// Jobs of which each alone is supposed to leave, so that a connected set comes free.
pub const MOVERS_SINGLE: usize = 64;

/// Jobs of which each two are supposed to leave.
pub const MOVERS_PAIRED: usize = 12;

/// So many ports that one switch refuses within [`SWITCH_WINDOW`] are cases of their own; more have
/// one cause, the switch.
pub const SWITCH_PORTS_MAX: usize = 2;

/// Replicas of a process.
pub const REPLICAS_MAX: u8 = 3;

/// A mark that is said again within this is the same one.
pub const MARK_AGAIN: Span = Span::secs(60);

/// Marks that are kept of a machine.
pub const MARKS_MAX: usize = 16;

/// The window of [`SWITCH_PORTS_MAX`].
pub const SWITCH_WINDOW: Span = Span::mins(10);

/// How long a plan that was asked for may take to come; each time in a row that none came, twice as
/// long.
pub const PLAN_MAX: Span = Span::mins(1);

/// How often that is doubled.
pub const PLAN_DOUBLINGS_MAX: u32 = 10;
