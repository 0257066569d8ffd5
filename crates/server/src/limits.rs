//! Every limit of the server, in one place.

use std::time::Duration;

/// The longest body of a request, in bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// How much of a header an error tells back, in characters.
pub const ECHO_MAX: usize = 64;

/// How long a request's body may take to arrive.
pub const BODY_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long the head of a request may take to arrive.
pub const HEAD_WAIT_MAX: Duration = Duration::from_secs(10);

/// Connections held at once; more wait to be accepted.
pub const CONNECTIONS_MAX: usize = 1024;

/// Connections on which nobody has shown who they are; the oldest goes as another comes.
pub const STRANGERS_MAX: usize = 256;

/// Connections that are one person's.
pub const CONNECTIONS_EACH_MAX: usize = 384;

/// How long a client may leave unread what it was sent.
pub const WRITE_WAIT_MAX: Duration = Duration::from_secs(30);

/// Streams open at once; the other connections are for requests.
pub const STREAMS_MAX: usize = 768;

/// Streams open at once that are one person's.
pub const STREAMS_EACH_MAX: usize = 256;

/// Requests that wait for the loop; more are refused with 503.
pub const REQUESTS_MAX: usize = 4096;

/// Requests and device answers that one append to the journal may carry.
pub const BATCH_MAX: usize = 1024;

/// Questions about what would be that are thought about at once, each for some seconds at most.
pub const QUESTIONS_MAX: usize = 2;

/// Events that a reader who comes back can still be told.
pub const EVENTS_KEPT: usize = 10_000;

/// Events that a reader may lie behind before it reads from the ring anew.
pub const EVENTS_BEHIND_MAX: usize = 1024;

/// Events that one `/v1/events/recent` answers.
pub const EVENTS_RECENT_MAX: usize = 10_000;

/// Rows of the journal between two snapshots; they bound a start-up.
pub const ROWS_PER_SNAPSHOT: u64 = 20_000;

/// Bytes of journal between two snapshots.
pub const BYTES_PER_SNAPSHOT: usize = 32 << 20;

/// How long to wait before a journal that could not be written is tried again.
pub const JOURNAL_RETRY: Duration = Duration::from_millis(250);

/// How long the loop sleeps at most; it then looks at the clock again.
pub const SLEEP_MAX: Duration = Duration::from_secs(1);

/// How far the loop may lie behind the clock, in real time, before the clock waits for it.
pub const LAG_MAX: Duration = Duration::from_millis(250);

/// How long answers under way may take once the server stops.
pub const STOP_WAIT_MAX: Duration = Duration::from_secs(5);

/// The fastest that plant time may run, as a multiple of real time.
pub const SPEED_MAX: f64 = 1_000_000.0;

/// The longest name of who asks, in bytes.
pub const BY_MAX: usize = selvedge_model::limits::NAME_MAX;

/// GPUs, ports and PCI devices of a topology file that a page draws; a rack of 72 GPUs has 450.
pub const TOPO_DEVICES_MAX: usize = 600;

/// Servers in a job that a page is asked about.
pub const TOPO_NODES_MAX: u32 = 1024;

/// People and programs with tokens of their own.
pub const USERS_MAX: usize = 1000;

/// The longest name of one of them, in bytes.
pub const USER_NAME_MAX: usize = 64;

/// Jobs of one array.
pub const ARRAY_MAX: u32 = 10_000;

/// Jobs of an array that are submitted in one go, so that others are served in between.
pub const ARRAY_STRIDE: usize = 64;

/// The longest reason for a change, in bytes.
pub const REASON_MAX: usize = 1024;

/// Entries of the audit trail in one answer.
pub const AUDIT_MAX: usize = 1000;

/// Rows of the journal that one answer of the audit trail looks through; it says where to go on.
pub const AUDIT_ROWS_MAX: u64 = 200_000;

/// One-use keys of one person that wait for their use; the oldest are forgotten first.
pub const KEYS_MAX: usize = 16;

/// Jobs that a page lists of each kind; it says how many more there are.
pub const PAGE_JOBS_MAX: usize = 50;

/// Waiting jobs whose reason a page computes.
pub const PAGE_REASONS_MAX: usize = 10;

/// Events that a page lists beside other things.
pub const PAGE_EVENTS_MAX: usize = 30;

/// Events that the page of events lists at a time.
pub const EVENTS_PER_PAGE: usize = 200;

/// How often a page that somebody looks at is drawn, whoever and how many look.
pub const PAGE_DRAW_EVERY: Duration = Duration::from_secs(1);

/// When a page is drawn whole although nothing was journalled since: what a plant shows of itself,
/// such as loss, is no input.
pub const PAGE_DRAW_AFTER: Duration = Duration::from_secs(5);

/// Pages that are drawn again and again at the same time.
pub const PAGES_LIVE_MAX: usize = 128;

/// How often real tasks are looked at while some run.
pub const TASKS_POLL: Duration = Duration::from_millis(100);

/// How long the other tasks of a job may take to find out that one has failed.
pub const FAILED_WAIT: Duration = Duration::from_secs(5);

/// How long they may take to end once they are asked to.
pub const FAILED_GRACE: Duration = Duration::from_secs(5);

/// A start that is this one or a later one, and whose supervisor is lost soon, counts as a failure
/// of the job's own: hardware does not break so often, a program that kills its supervisor does.
pub const LOST_STARTS_MAX: u32 = 8;

/// How soon that is.
pub const LOST_SOON: Duration = Duration::from_secs(60);

/// How long the end of all tasks may take when the server is told to end everything.
pub const TASKS_END_MAX: Duration = Duration::from_secs(15);

/// How long of that they have from being asked until they are killed.
pub const TASKS_END_GRACE: Duration = Duration::from_secs(10);

/// Attempts whose output is kept once they are over; the oldest go first.
pub const ATTEMPTS_KEPT: usize = 1000;

/// How much the output of attempts that are over may take, in bytes; the oldest go first.
pub const OUTPUT_KEPT_BYTES: u64 = 2 << 30;

/// Bytes of a task's output in one answer.
pub const LOG_BYTES_MAX: u64 = 1 << 20;

/// The largest plant state file that is read back, in bytes.
pub const PLANT_STATE_BYTES_MAX: u64 = 1 << 30;

/// Bytes of requests that a simulated plant's log may hold before its state takes their place; they
/// bound what its process carries out again when it starts.
pub const PLANT_LOG_BYTES_MAX: u64 = 8 << 20;

/// How long the plant's process may take to listen after it was started.
pub const PLANT_START_MAX: Duration = Duration::from_secs(20);

/// How long the plant's process may take to answer; one that takes longer is ended and started
/// anew.
pub const PLANT_ANSWER_MAX: Duration = Duration::from_secs(30);

/// How long the plant's process may take to end when it is told to.
pub const PLANT_END_MAX: Duration = Duration::from_secs(5);

/// How long a supervisor may take until it has written who runs.
pub const TASK_BEGIN_MAX: Duration = Duration::from_secs(20);

/// How long a supervisor whose task is killed has to write down how it ended.
pub const SUPERVISOR_END_MAX: Duration = Duration::from_secs(10);

/// What is kept of an attempt itself: its machines, mostly.
pub const ATTEMPT_BYTES_MAX: u64 = 1 << 20;

/// How often a server that starts says hello to a plant's process that is gone as it answers.
pub const PLANT_GREETS_MAX: u32 = 5;

/// How long it waits between two of them.
pub const PLANT_GREET_AGAIN: Duration = Duration::from_millis(100);

/// How often a process that starts or ends is looked at.
pub const PLANT_LOOK_EVERY: Duration = Duration::from_millis(2);

/// How often it is looked at whether an idle plant's process still lives.
pub const PLANT_LOOKED_AT_EVERY: Duration = Duration::from_millis(250);

/// How long to wait before a plant's process that was lost is looked for.
pub const PLANT_RETRY_MIN: Duration = Duration::from_millis(10);

/// The longest wait between two looks for it.
pub const PLANT_RETRY_MAX: Duration = Duration::from_secs(5);

/// How long to wait after a connection could not be accepted.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The longest rest of the planner after a question.
pub const PLANNER_REST_MAX: Duration = Duration::from_secs(1);

/// How often it is looked at whether the certificate's files have changed.
pub const TLS_LOOK_EVERY: Duration = Duration::from_secs(2);
