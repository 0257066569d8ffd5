//! A machine that a control plane drains: replicas on it lead no more before their program hears
//! of it.
//!
//! The control plane writes a notice and sends SIGTERM, to this process and to all of the task's.
//! If the notice names a machine of the slice, the signal waits until those of its replicas that
//! still lead have said that others do, at their next compare; or until it has waited long enough.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::SetId;
use signal_hook::consts::SIGTERM;

use super::{Attempt, Mark, Marked};
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
    /// The machines by their addresses, where these are hosts of their own.  Then a replica's
    /// machine is the one that it is found to run on; of simulated ones it is its cluster's.
    pub machines: BTreeMap<IpAddr, String>,
    /// Where the notice comes, if it does.
    pub notice: Option<PathBuf>,
}

impl Places {
    /// The machine, or the part with machines, that the notice says is drained.
    fn drained(&self) -> Option<String> {
        let text = fs::read_to_string(self.notice.as_ref()?).ok()?;
        serde_json::from_str::<Notice>(&text).ok()?.drained
    }

    /// The machine of a replica on a host with these addresses; none if it is none of the slice's.
    fn machine(&self, rank: Rank, set: SetId, addresses: &[IpAddr]) -> Option<&str> {
        if !self.machines.is_empty() {
            return addresses.iter().find_map(|it| self.machines.get(it)).map(String::as_str);
        }
        let cluster = self.clusters.get(rank.0 as usize % self.clusters.len().max(1))?;
        cluster.get(set.idx()).map(String::as_str)
    }
}

fn is_in(part: &str, machine: &str) -> bool {
    let rest = machine.strip_prefix(part);
    rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// Who was asked to lead no more, and what waits for it.
#[derive(Default)]
pub(super) struct Away {
    asked: bool,
    awaited: Vec<(Rank, SetId)>,
    since: Option<Instant>,
    /// Signals to all processes, or to the replicas of one.
    held: Vec<(Option<Rank>, u64)>,
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
    pub(super) fn pass_on(&mut self, rank: Option<Rank>, signal: u64) {
        if signal == SIGTERM as u64 && !self.away.asked {
            self.ask_to_yield();
        }
        if self.away.since.is_some() {
            self.away.held.push((rank, signal));
        } else {
            self.tell_signal(rank, signal);
        }
    }

    /// The machine of a replica, by the host that it runs on.
    fn machine(&self, places: &Places, rank: Rank, set: SetId) -> Option<String> {
        let host = self.host_of(rank, set);
        places.machine(rank, set, host.addresses()).map(str::to_owned)
    }

    /// Tells whoever wants to hear of it that a replica was outvoted, and where.
    pub(super) fn tell_of(&self, mark: Mark) {
        let Some(marks) = &self.options.marks else { return };
        let of = |places| self.machine(places, Rank(mark.rank), SetId::new(mark.set.into()));
        let machine = self.options.places.as_ref().and_then(of);
        // Who no longer listens is not to be told.
        let _ = marks.send(Marked { mark, machine });
    }

    fn ask_to_yield(&mut self) {
        let Some(places) = &self.options.places else { return };
        let Some(part) = places.drained() else { return };
        self.away.asked = true;
        let replicas = || SetId::all(self.options.replicas);
        let all = (0..self.options.ranks as u32)
            .flat_map(|rank| replicas().map(move |set| (Rank(rank), set)));
        let is_there = |it: &(Rank, SetId)| {
            self.machine(places, it.0, it.1).is_some_and(|machine| is_in(&part, &machine))
        };
        let there: Vec<_> = all.filter(is_there).collect();
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

    fn tell_signal(&mut self, rank: Option<Rank>, signal: u64) {
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
    fn a_replica_has_the_machine_of_its_host_or_of_its_cluster_if_machines_are_simulated() {
        let cluster = ["b", "a", "c"].map(str::to_owned);
        let simulated = Places { clusters: vec![cluster], machines: BTreeMap::new(), notice: None };
        let address = |it: u8| IpAddr::from([10, 0, 0, it]);
        let of = |places: &Places, set, addresses: &[IpAddr]| {
            places.machine(Rank(3), SetId::new(set), addresses).map(str::to_owned)
        };
        assert_eq!(of(&simulated, 1, &[address(9)]), Some("a".to_owned()));
        let machines = [(address(1), "a".to_owned()), (address(2), "b".to_owned())].into();
        let real = Places { machines, ..simulated };
        // All replicas may run on one host, whatever the clusters are.
        assert_eq!(of(&real, 1, &[address(7), address(2)]), Some("b".to_owned()));
        assert_eq!(of(&real, 0, &[address(7)]), None, "it runs on no machine of the slice");
        assert!(is_in("cube0", "cube0/m03") && is_in("board1.1", "board1.1"));
        assert!(!is_in("board1.1", "board1.12"));
    }
}
