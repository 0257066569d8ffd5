//! A machine that a control plane drains: replicas on it lead no more before their program hears
//! of it.
//!
//! The control plane writes a notice and sends SIGTERM, to this process and to all of the task's.
//! If the notice names a machine of the slice, the signal waits until those of its replicas that
//! still lead have said that others do, at their next compare; or until it has waited long enough.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::SetId;
use signal_hook::consts::SIGTERM;

use super::Attempt;
use crate::task::Notice;

/// How long a signal waits for others to lead: a program that computes for longer between two of
/// its messages hears of it first.
const WAIT: Duration = Duration::from_secs(5);

/// The machines of a slice with clusters, and where its control plane says what is to happen.
#[derive(Clone, Debug)]
pub struct Places {
    /// The machines of each cluster, by their paths in the plant, the meta's first: rank h goes to
    /// cluster h mod c, and replica s to its s-th machine.
    pub clusters: Vec<[String; 3]>,
    /// Where the notice comes.
    pub notice: PathBuf,
}

impl Places {
    /// The machine, or the part with machines, that the notice says is drained.
    fn drained(&self) -> Option<String> {
        let text = fs::read_to_string(&self.notice).ok()?;
        serde_json::from_str::<Notice>(&text).ok()?.drained
    }

    /// Whether a replica runs in that part of the plant.
    fn is_in(&self, part: &str, rank: Rank, set: SetId) -> bool {
        let cluster = self.clusters.get(rank.0 as usize % self.clusters.len().max(1));
        let machine = cluster.map_or("", |it| &it[set.idx()]);
        let rest = machine.strip_prefix(part);
        rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
    }
}

/// Who was asked to lead no more, and what waits for it.
#[derive(Default)]
pub(super) struct Away {
    asked: bool,
    awaited: Vec<(Rank, SetId)>,
    since: Option<Instant>,
    /// Signals to all processes, or to the replicas of one.
    held: Vec<(Option<Rank>, i32)>,
}

impl Away {
    /// A replica says that it leads no more, where another can.
    pub(super) fn yielded(&mut self, rank: Rank, set: SetId) {
        self.awaited.retain(|it| *it != (rank, set));
    }
}

impl Attempt<'_> {
    /// Passes a signal on to all processes or to the replicas of one, once nobody leads on a
    /// machine that is to go.
    pub(super) fn pass_on(&mut self, rank: Option<Rank>, signal: i32) {
        if signal == SIGTERM && !self.away.asked {
            self.ask_to_yield();
        }
        if self.away.since.is_some() {
            self.away.held.push((rank, signal));
        } else {
            self.tell_signal(rank, signal);
        }
    }

    fn ask_to_yield(&mut self) {
        let Some(places) = &self.options.places else { return };
        let Some(part) = places.drained() else { return };
        self.away.asked = true;
        let replicas = || SetId::all(self.options.replicas);
        let all = (0..self.options.ranks as u32)
            .flat_map(|rank| replicas().map(move |set| (Rank(rank), set)));
        let there: Vec<_> = all.filter(|it| places.is_in(&part, it.0, it.1)).collect();
        if there.is_empty() {
            return;
        }
        let n = there.len();
        self.notes.push(format!("{part} is drained: {n} replicas on it lead no more"));
        for &(rank, set) in &there {
            self.tell_process(rank, set, "yield");
        }
        self.away.awaited = there;
        self.away.since = Some(Instant::now());
    }

    /// Passes on what has waited, if it is time.
    pub(super) fn release_signals(&mut self) {
        let Some(since) = self.away.since else { return };
        let gone = |it: &(Rank, SetId)| self.process_of(it.0, it.1).link.is_none();
        if self.away.awaited.iter().all(gone) || WAIT <= since.elapsed() {
            self.away.since = None;
            for (rank, signal) in std::mem::take(&mut self.away.held) {
                self.tell_signal(rank, signal);
            }
        }
    }

    fn tell_signal(&mut self, rank: Option<Rank>, signal: i32) {
        match rank {
            // It has come to one of them, which handles it.
            Some(rank) => self.tell_cluster(rank, &format!("handled {signal}")),
            None => self.tell(None, &format!("signal {signal}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_of_a_machine_and_of_the_part_that_it_is_in_are_found() {
        let cluster = |row: [&str; 3]| row.map(str::to_owned);
        let clusters = vec![
            cluster(["cube0/m01", "cube0/m00", "cube1/m01"]),
            cluster(["cube0/m02", "cube0/m010", "cube1/m02"]),
        ];
        let places = Places { clusters, notice: "/nowhere".into() };
        let found = |part: &str| -> Vec<(u32, usize)> {
            let all = (0..3).flat_map(|rank| SetId::all(3).map(move |set| (rank, set)));
            all.filter(|it| places.is_in(part, Rank(it.0), it.1))
                .map(|it| (it.0, it.1.idx()))
                .collect()
        };
        assert_eq!(found("cube0/m01"), [(0, 0), (2, 0)], "not m010");
        assert_eq!(found("cube1"), [(0, 2), (1, 2), (2, 2)]);
        assert!(found("cube2").is_empty() && places.drained().is_none());
    }
}
