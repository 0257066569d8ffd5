//! What a replica tells its siblings and the launcher.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use selvedge_stmr::message::Message;
use selvedge_stmr::replica::Note;
use selvedge_stmr::report::{Differed, Report};
use selvedge_stmr::verdict::{SetId, Sets};

use crate::link::Sibling;
use crate::real;
use crate::state::State;

/// How long who tells siblings something beside a call of MPI's waits for them to read, in
/// microseconds.
const TELL_US: u32 = 500;

impl State {
    /// Tells all siblings something that the core has no part in.
    pub(crate) fn tell_siblings(&mut self, message: &Message) {
        self.tell(SetId::all(self.siblings.len()).collect(), message);
    }

    fn tell(&mut self, sets: Sets, message: &Message) {
        // It is written for the first of them, and copied for the others.
        let mut written: &[u8] = &[];
        for (set, link) in SetId::all(self.siblings.len()).zip(&mut self.siblings) {
            let Some(link) = link.as_mut().filter(|_| sets.contains(set)) else { continue };
            if written.is_empty() {
                let start = link.unsent.len();
                message.write(&mut link.unsent);
                written = &link.unsent[start..];
            } else {
                link.unsent.extend_from_slice(written);
            }
            self.counts.link_messages += 1;
            self.counts.link_bytes += written.len() as u64;
        }
    }

    /// Sends what the core wants sent, and counts what it noted.
    pub(crate) fn send_out(&mut self) {
        self.follow_lead();
        while let Some((to, message)) = self.replica.poll() {
            self.tell(to, &message);
        }
        self.siblings.iter_mut().flatten().for_each(Sibling::flush);
        if self.replica.has_notes() {
            self.tell_notes();
            self.tell_counts();
        }
    }

    /// Counts what the core noted, and tells the launcher.
    pub(crate) fn tell_notes(&mut self) {
        while let Some(note) = self.replica.poll_note() {
            match note {
                Note::Marked(set) => {
                    self.counts.marks += 1;
                    let (rank, doing) = (self.told.rank, self.doing);
                    self.note(&format!("rank {rank}: {set} differs in {doing} and is marked"));
                    // Who compares in full also says where, when it has looked.
                    if self.told.compares_full {
                        self.marked.push(set);
                    } else {
                        self.tell_mark(set, None);
                    }
                }
                // It is about to end, and tells it itself.
                Note::Strayed(set) if set.idx() == self.told.set => {}
                Note::Strayed(set) => {
                    self.tell_stray(set);
                    self.see_stray(set);
                }
                Note::Promoted(_) => self.counts.promotions += 1,
                Note::Yielded(set) if set.idx() == self.told.set => self.say(Report::Yielded),
                Note::Yielded(_) => {}
                Note::Trusted(_) | Note::Died(_) => {}
            }
        }
    }

    /// Tells the launcher which replica erred at the compare that is over, and at which byte.
    pub(crate) fn tell_mark(&mut self, set: SetId, byte: Option<usize>) {
        let call = self.replica.n_calls().saturating_sub(1);
        self.say(Report::Mark(Differed { set, call, byte: byte.map(|it| it as u64) }));
    }

    /// Makes a call that waits for all processes in MPI, and looks at no sibling: one that still
    /// waits for what this replica settled would never come to it.  So what has not been read yet
    /// is told on a thread beside the call.
    pub(crate) fn while_telling<R>(&mut self, call: impl FnOnce() -> R) -> R {
        self.send_out();
        let mut unsent: Vec<&mut Sibling> =
            self.siblings.iter_mut().flatten().filter(|it| !it.unsent.is_empty()).collect();
        if unsent.is_empty() {
            return call();
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _inside = real::Inside::enter();
                while !is_over.load(Ordering::Relaxed) && !unsent.is_empty() {
                    unsent.iter_mut().for_each(|it| it.flush());
                    unsent.retain(|it| !it.unsent.is_empty());
                    unsafe { libc::usleep(TELL_US) };
                }
            });
            let answer = call();
            is_over.store(true, Ordering::Relaxed);
            answer
        })
    }
}
