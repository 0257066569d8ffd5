//! Who feeds whom: what one replica tells another of something that came in.
//!
//! ```text
//! of               by who leads     by another in MPI     by one that left
//! a decision       all: the event   –                     –
//! a set's message  who left: the    who left: its digest  –
//!                  event
//! ```
//!
//! Who leads is the first that is trusted of those in MPI, else the first of them that is marked
//! ([`leads`]); each replica finds that itself, from what each said before on its own link.

use super::{Replica, Sibling};
use crate::digest::Digest;
use crate::message::{Event, EventKind, Message};
use crate::verdict::SetId;

/// What is told of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Nothing,
    /// All of it.
    Event,
    /// Its digest, beside what another tells.
    Echo,
}

/// The lowest of the trusted, else of the marked, whose set is whole (definition 7); those who
/// were asked to yield come after the others of either.
pub(super) fn leads(cluster: &[Sibling]) -> Option<SetId> {
    let leads = |set: &SetId| {
        let it = &cluster[set.idx()];
        !it.dead && !it.strayed && !it.left
    };
    let after_others = |set: &SetId| {
        let it = &cluster[set.idx()];
        (0 < it.marked, it.yielded)
    };
    let able = || SetId::all(cluster.len()).filter(leads);
    // Nearly always it is the first, and this is asked at every call.
    able()
        .find(|it| after_others(it) == (false, false))
        .or_else(|| able().min_by_key(|it| (after_others(it), *it)))
}

/// What one that leads or not, and has left MPI or not, tells one that has left it or not.
fn word(kind: EventKind, is_meta: bool, has_left: bool, is_fed: bool) -> Word {
    match kind {
        EventKind::Decision if is_meta => Word::Event,
        EventKind::Decision => Word::Nothing,
        EventKind::Data if !is_fed => Word::Nothing,
        EventKind::Data if is_meta => Word::Event,
        EventKind::Data if has_left => Word::Nothing,
        EventKind::Data => Word::Echo,
    }
}

impl Replica {
    /// Gives one that has left MPI what came in since the last compare, or, if another gives it
    /// that, a word about what it was.
    pub(super) fn feed_log(&mut self, set: SetId) {
        if self.is_awaited(set) {
            let about = |it| Some((set.into(), self.message_about(it, set)?));
            let messages: Vec<_> = self.log.iter().filter_map(about).collect();
            self.out.extend(messages);
        }
    }

    /// What this replica tells a sibling of an event.
    pub(super) fn message_about(&self, event: &Event, to: SetId) -> Option<Message> {
        let is_fed = self.cluster[to.idx()].left;
        match word(event.kind, self.is_meta(), self.has_left(), is_fed) {
            Word::Nothing => None,
            Word::Event => Some(Message::Event(event.clone())),
            Word::Echo => {
                let digest = Digest::of(&event.bytes);
                Some(Message::Echo { event: event.number, digest })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a replica stands: `t`rusted, `m`arked, `l`eft MPI and trusted, `L`eft it and marked, or
    /// gone (`-`).
    fn sibling(stands: char) -> Sibling {
        let (marked, left) = (u32::from("mL".contains(stands)), "lL".contains(stands));
        Sibling { marked, left, dead: stands == '-', ..Sibling::default() }
    }

    /// By whom each of three is fed, and by whom else it hears what that was: `0+2`.
    fn fed(stands: [char; 3]) -> String {
        let cluster = stands.map(sibling);
        let meta = leads(&cluster);
        let tells = |kind: EventKind, from: usize, to: usize, wanted: Word| {
            let is_meta = meta == Some(SetId::new(from));
            let is_told = word(kind, is_meta, cluster[from].left, cluster[to].left) == wanted;
            from != to && !cluster[from].dead && is_told
        };
        let row = |to: usize| {
            if cluster[to].dead {
                return String::from("-");
            }
            let by = |wanted: Word| {
                let all = (0..3).filter(|from| tells(EventKind::Data, *from, to, wanted));
                all.map(|it| it.to_string()).collect::<Vec<_>>().join("")
            };
            let decided = (0..3).filter(|from| tells(EventKind::Decision, *from, to, Word::Event));
            let decides = meta.map(SetId::idx).filter(|it| *it != to);
            assert_eq!(decided.collect::<Vec<_>>(), Vec::from_iter(decides), "{stands:?}");
            match (cluster[to].left, by(Word::Event), by(Word::Echo)) {
                (false, event, echo) => {
                    assert_eq!(event + &echo, "", "its own MPI brings it: {stands:?}");
                    String::from("mpi")
                }
                (true, event, echo) => format!("{event}+{echo}"),
            }
        };
        [0, 1, 2].map(row).join(" ")
    }

    #[test]
    fn who_is_fed_is_fed_by_one_and_hears_of_it_from_all_others_in_mpi() {
        let rows = [
            (['t', 't', 't'], "mpi mpi mpi"),
            (['l', 't', 't'], "1+2 mpi mpi"),
            (['t', 'l', 't'], "mpi 0+2 mpi"),
            (['t', 't', 'l'], "mpi mpi 0+1"),
            (['l', 'm', 't'], "2+1 mpi mpi"),
            (['L', 't', 't'], "1+2 mpi mpi"),
            (['l', 'm', 'm'], "1+2 mpi mpi"),
            (['l', 'l', 't'], "2+ 2+ mpi"),
            (['m', 'l', 'l'], "mpi 0+ 0+"),
            (['-', 'l', 't'], "- 2+ mpi"),
            (['-', 't', 'l'], "- mpi 1+"),
            (['-', 'm', 't'], "- mpi mpi"),
            (['l', 'l', 'l'], "+ + +"),
            (['-', 'l', 'l'], "- + +"),
        ];
        for (stands, wanted) in rows {
            assert_eq!(fed(stands), wanted, "{stands:?}");
        }
        let all = ['t', 'm', 'l', 'L', '-'];
        for stands in all
            .iter()
            .flat_map(|a| all.map(|b| (*a, b)))
            .flat_map(|it| all.map(|c| [it.0, it.1, c]))
        {
            let in_mpi = |stand: char| (0..3).filter(move |it| stands[*it] == stand);
            let feeder = in_mpi('t').chain(in_mpi('m')).next();
            let others = (0..3).filter(|it| "tm".contains(stands[*it]) && Some(*it) != feeder);
            let others: String = others.map(|it| it.to_string()).collect();
            let row = |it: char| match it {
                '-' => String::from("-"),
                't' | 'm' => String::from("mpi"),
                _ => format!("{}+{others}", feeder.map_or(String::new(), |it| it.to_string())),
            };
            assert_eq!(fed(stands), stands.map(row).join(" "), "{stands:?}");
        }
    }
}
