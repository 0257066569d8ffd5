//! Signals to a program in replicas: one that is sent to `selvedge mpirun` goes to all its
//! processes, one that is sent to a process, or to each of its replicas, to all of these once.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::Sender;

use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::SetId;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

use super::{Event, MpirunError, io_error, threads};

/// What the launcher passes on.  Who is to outlive its terminal ignores that one's end.
const PASSED_ON: [i32; 3] = [SIGTERM, SIGUSR1, SIGUSR2];

/// What ends the program, unless whoever started this process wants it ignored.
const ENDING: i32 = SIGINT;

/// Above so many bits, which name a timer, stands how often the program has set it.
const SETTING_BITS: u32 = 16;

/// Of so many settings of a timer it is known what they brought.
const SETTINGS_KEPT: u64 = 256;

/// How many signals of each kind came to the replicas of each process.
pub(super) struct Signals {
    replicas: usize,
    /// By rank, and by the signal and the timer that brought it: how many each replica told of, and
    /// how many all were told of.
    counts: Vec<BTreeMap<u64, (Vec<u32>, u32)>>,
    has_terminated: bool,
}

impl Signals {
    pub(super) fn new(ranks: usize, replicas: usize) -> Self {
        Self { replicas, counts: vec![BTreeMap::new(); ranks], has_terminated: false }
    }

    /// A replica has one; whether it is new to its cluster.
    pub(super) fn came(&mut self, rank: Rank, set: SetId, signal: u64) -> bool {
        let replicas = self.replicas;
        let rows = &mut self.counts[rank.0 as usize];
        if signal >> SETTING_BITS != 0 && !rows.contains_key(&signal) {
            // Those who come late tell of a setting that all know to be over.
            let of = |it: u64| it & ((1 << SETTING_BITS) - 1);
            let is_old = |it: u64| (it >> SETTING_BITS) + SETTINGS_KEPT < signal >> SETTING_BITS;
            rows.retain(|it, _| of(*it) != of(signal) || !is_old(*it));
        }
        let row = rows.entry(signal);
        let (counts, told) = row.or_insert_with(|| (vec![0; replicas], 0));
        counts[set.idx()] += 1;
        let is_new = *told < counts[set.idx()];
        *told += u32::from(is_new);
        is_new
    }

    /// One was sent to the launcher; whether it is passed on: who asks twice wants an end.
    pub(super) fn sent(&mut self, signal: i32) -> bool {
        let again = signal == SIGTERM && self.has_terminated;
        self.has_terminated |= signal == SIGTERM;
        !again
    }
}

/// Whether a signal ends the program, whatever that does about it.
pub(super) fn is_end(signal: i32) -> bool {
    signal == ENDING
}

/// Whether a signal says that nobody wants to wait for what has ended to be printed.
pub(super) fn is_impatient(signal: i32) -> bool {
    signal == SIGTERM || is_end(signal)
}

/// Whether this process was started with a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    mask(&text, "SigIgn:") & 1 << (signal - 1) != 0
}

/// A set of signals, as the kernel writes it.
fn mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|it| it.strip_prefix(name));
    line.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0)
}

/// Whether a process does something else at a signal than to end, as the kernel says.  One that
/// all its threads block waits until the program takes it (sigwait, signalfd).
pub(super) fn is_handled(pid: i32, signal: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts = threads.filter_map(|it| fs::read_to_string(it.path().join("status")).ok());
    does_not_end(&texts.collect::<Vec<_>>(), signal)
}

/// The same of what the kernel says of each of its threads.
fn does_not_end(threads: &[String], signal: i32) -> bool {
    let is_in = |text: &String, name| mask(text, name) & 1 << (signal - 1) != 0;
    let is_said = threads.iter().any(|it| is_in(it, "SigCgt:") || is_in(it, "SigIgn:"));
    is_said || (!threads.is_empty() && threads.iter().all(|it| is_in(it, "SigBlk:")))
}

/// Tells of signals to this process from here on.
pub(super) fn listen(sender: Sender<Event>) -> Result<(), MpirunError> {
    let mut heard = PASSED_ON.to_vec();
    if !is_ignored(ENDING) {
        heard.push(ENDING);
    }
    let mut signals =
        signal_hook::iterator::Signals::new(heard).map_err(io_error("listen for signals"))?;
    threads::begin(&sender.clone(), move || {
        for signal in &mut signals {
            // An attempt that is over has the next one's listener beside it.
            if sender.send(Event::Signalled(signal)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_one_thread_leaves_free_ends_a_process_that_has_no_handler() {
        let thread = |blocked: u64, caught: u64| {
            format!("SigBlk:\t{blocked:016x}\nSigIgn:\t0000000000000000\nSigCgt:\t{caught:016x}\n")
        };
        let usr1 = 1 << (SIGUSR1 - 1);
        let check = |threads: &[(u64, u64)], wanted: bool| {
            let threads: Vec<_> = threads.iter().map(|it| thread(it.0, it.1)).collect();
            assert_eq!(does_not_end(&threads, SIGUSR1), wanted, "{threads:?}");
        };
        check(&[], false);
        check(&[(0, 0), (0, 0)], false);
        check(&[(0, usr1), (0, usr1)], true);
        check(&[(usr1, 0), (usr1, 0)], true);
        check(&[(usr1, 0), (0, 0)], false);
    }

    #[test]
    fn one_signal_to_all_replicas_is_one_and_two_to_one_of_them_are_two() {
        let mut signals = Signals::new(2, 3);
        let mut came = |set| signals.came(Rank(1), SetId::new(set), SIGUSR1 as u64);
        assert_eq!([0, 1, 2].map(&mut came), [true, false, false]);
        assert_eq!([2, 2, 0, 1].map(&mut came), [true, true, false, false]);
        assert!(signals.came(Rank(0), SetId::new(1), SIGUSR1 as u64), "another process");
        let of_timer = |setting: u64| setting << SETTING_BITS | 1 << 8 | 14;
        let mut alarm = |set, setting| signals.came(Rank(0), SetId::new(set), of_timer(setting));
        assert_eq!([alarm(0, 1), alarm(0, 2), alarm(1, 1)], [true, true, false], "a setting each");
        assert_eq!([alarm(1, 2), alarm(1, 2), alarm(0, 2)], [false, true, false]);
        assert!(alarm(0, 3 + SETTINGS_KEPT));
        assert_eq!(signals.counts[0].len(), 1 + 1, "those of old settings are forgotten");
        assert_eq!([SIGTERM, SIGUSR1, SIGTERM].map(|it| signals.sent(it)), [true, true, false]);
    }
}
