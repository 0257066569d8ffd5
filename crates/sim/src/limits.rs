//! Every limit and every assumed figure of the simulated world, in one place.

use selvedge_model::unit::{Ppm, Span};

/// How often a circuit switch is polled.
pub const POLL_EVERY: Span = Span::secs(60);

/// Setting mirrors takes this long at least; with the mean of what comes on top, the median is
/// 1.2 ms and the 99th percentile under 3 ms (notes of Urata et al.).
pub const SWITCH_MIN: Span = Span::nanos(850_000);
/// What comes on top, on average.
pub const SWITCH_MORE: Span = Span::nanos(450_000);

/// Reading a switch.  Assumed, as all that follows: no source gives TPUv4's times.
pub const READ: (Span, Span) = (Span::millis(5), Span::millis(50));
/// Training links after a switch.
pub const TRAIN: (Span, Span) = (Span::secs(5), Span::secs(20));
/// Collecting the measurements of one part.
pub const INSPECT: (Span, Span) = (Span::secs(1), Span::secs(4));
/// The small sample workload.
pub const EXERCISE: (Span, Span) = (Span::secs(20), Span::secs(60));
/// Asking the chips of one part what they see.
pub const DISCOVER: (Span, Span) = (Span::millis(500), Span::secs(3));
/// Setting the tables of one part.
pub const PROGRAM: (Span, Span) = (Span::millis(200), Span::secs(1));
/// Starting tasks.
pub const START: (Span, Span) = (Span::secs(2), Span::secs(8));
/// Killing tasks.
pub const KILL: (Span, Span) = (Span::millis(200), Span::secs(5));
/// Until the end of tasks is said again when it was not heard.
pub const REPEAT: Span = Span::secs(15);
/// Until tasks without hardware notice.
pub const LOSE: (Span, Span) = (Span::secs(1), Span::secs(10));
/// Until a health daemon reports.
pub const REPORT: (Span, Span) = (Span::secs(1), Span::secs(20));
/// Writing a checkpoint when told to stop.
pub const CHECKPOINT: (Span, Span) = (Span::secs(5), Span::secs(45));
/// Between two flaps of a flapping link, on average: often enough for the rule of three flaps in
/// ten minutes.
pub const FLAP_EVERY: Span = Span::mins(4);
/// How late an echoed command may come.
pub const ECHO: (Span, Span) = (Span::secs(1), Span::mins(3));

/// A crew comes after this long at least and then on average.
pub const CREW_COMES: (Span, Span) = (Span::mins(5), Span::mins(25));
/// A repair takes this long at least and then on average.
pub const CREW_WORKS: (Span, Span) = (Span::mins(10), Span::mins(50));
/// For how long after a repair the crew repeats that it is done when the line was cut.
pub const CREW_REPEATS: Span = Span::hours(6);

/// How often a link end does not train though nothing is wrong with it.
pub const TRAIN_FAILS: Ppm = Ppm::new(5);

/// Kept violations; later ones are counted only.
pub const VIOLATIONS_MAX: usize = 32;

/// Lines of one trace.
pub const TRACE_LINES_MAX: usize = 10_000_000;

/// Events of one scenario.
pub const EVENTS_MAX: usize = 100_000;

/// Bytes of a trace or a scenario: a hundred for each line of the longest.
pub const TRACE_BYTES_MAX: u64 = 1 << 30;

/// Simulated replicas that err are outvoted so often.  Assumed.
pub const COMPARE: Span = Span::mins(20);
