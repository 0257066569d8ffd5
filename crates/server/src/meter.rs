//! What the server measures of itself and of the switches, for `/metrics`.
//!
//! Nothing here is state: it begins anew with each run, as counters of a scraper may.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use selvedge_control::input::{Answer, Input, SetOutcome};
use selvedge_control::output::Command;
use selvedge_model::id::PartId;
use selvedge_model::unit::{Generation, Moment, Span};

/// Upper ends of the buckets of a duration, in seconds.
pub(crate) const BUCKETS_S: [f64; 11] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

/// How long something took, each time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    pub(crate) n: u64,
    pub(crate) sum_s: f64,
    /// How many were no longer than each of [`BUCKETS_S`].
    pub(crate) up_to: [u64; BUCKETS_S.len()],
}

impl Durations {
    fn add(&mut self, took: Duration) {
        let took_s = took.as_secs_f64();
        self.n += 1;
        self.sum_s += took_s;
        for (count, end) in self.up_to.iter_mut().zip(BUCKETS_S) {
            *count += u64::from(took_s <= end);
        }
    }
}

/// What the writes to one circuit switch came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes {
    /// Writes told, by generation, and when.
    open: BTreeMap<Generation, Moment>,
    pub(crate) n_done: u64,
    pub(crate) n_refused: u64,
    pub(crate) n_stale: u64,
    /// How often each port could not be connected, by its place on the switch.
    pub(crate) port_errors: BTreeMap<u16, u64>,
    /// Plant time from telling to done, summed.
    pub(crate) took: Span,
    /// The newest of them.
    pub(crate) took_last: Span,
}

/// All that is measured.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) begun: Instant,
    pub(crate) syncs: Durations,
    pub(crate) turns: Durations,
    pub(crate) n_rows: u64,
    pub(crate) n_bytes: u64,
    pub(crate) n_failed_appends: u64,
    /// Whether the newest failure of the journal was for want of room.
    pub(crate) disk_full: bool,
    pub(crate) writes: BTreeMap<PartId, Writes>,
}

/// Open writes remembered for one switch; an older one is of no interest any longer.
const OPEN_MAX: usize = 64;

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            syncs: Durations::default(),
            turns: Durations::default(),
            n_rows: 0,
            n_bytes: 0,
            n_failed_appends: 0,
            disk_full: false,
            writes: BTreeMap::new(),
        }
    }

    /// One append came back.
    pub(crate) fn synced(&mut self, took: Duration, n_rows: usize, n_bytes: usize) {
        self.syncs.add(took);
        self.n_rows += n_rows as u64;
        self.n_bytes += n_bytes as u64;
    }

    /// One round of the loop is over.
    pub(crate) fn turned(&mut self, took: Duration) {
        self.turns.add(took);
    }

    /// A device was told something.
    pub(crate) fn told(&mut self, at: Moment, command: &Command) {
        if let Command::SetSwitch { switch, generation, .. } = command {
            let writes = self.writes.entry(*switch).or_default();
            writes.open.entry(*generation).or_insert(at);
            if OPEN_MAX < writes.open.len() {
                writes.open.pop_first();
            }
        }
    }

    /// A device answered something.
    pub(crate) fn heard(&mut self, at: Moment, input: &Input) {
        let Input::Answer(Answer::SwitchSet { switch, generation, outcome }) = input else {
            return;
        };
        let writes = self.writes.entry(*switch).or_default();
        let told = writes.open.remove(generation);
        match outcome {
            SetOutcome::Done => {
                writes.n_done += 1;
                if let Some(told) = told {
                    writes.took_last = at.since(told);
                    writes.took += writes.took_last;
                }
            }
            SetOutcome::Refused { ports } => {
                writes.n_refused += 1;
                for &port in ports {
                    *writes.port_errors.entry(port).or_default() += 1;
                }
            }
            SetOutcome::Stale { .. } => writes.n_stale += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_timed_from_telling_to_done() {
        let (mut meter, switch, generation) = (Meter::new(), PartId::new(3), Generation::new(7));
        let command = Command::SetSwitch { switch, generation, remove: vec![], add: vec![] };
        let answer = |outcome| Input::Answer(Answer::SwitchSet { switch, generation, outcome });
        meter.told(Moment::START, &command);
        // Told again because no answer came: the first telling counts.
        meter.told(Moment::START + Span::millis(5), &command);
        meter.heard(Moment::START + Span::millis(30), &answer(SetOutcome::Done));
        meter.heard(
            Moment::START + Span::millis(40),
            &answer(SetOutcome::Refused { ports: vec![1] }),
        );
        let writes = &meter.writes[&switch];
        assert_eq!((writes.n_done, writes.n_refused, writes.n_stale), (1, 1, 0));
        assert_eq!(writes.took_last, Span::millis(30));
        assert_eq!(writes.port_errors, BTreeMap::from([(1, 1)]));
    }

    #[test]
    fn buckets_count_upwards() {
        let mut durations = Durations::default();
        durations.add(Duration::from_millis(3));
        durations.add(Duration::from_secs(5));
        assert_eq!((durations.n, durations.up_to[2], durations.up_to[3]), (2, 0, 1));
        assert_eq!(durations.up_to[BUCKETS_S.len() - 1], 1);
    }
}
