//! How a program goes on by one call, which drives its replica as the library does.

use std::sync::Arc;

use super::{Pid, Process, World};
use crate::digest::Digest;
use crate::explore::{ASKS_MAX, LINGERS_MAX, N, Op, STILL};
use crate::job::Rank;
use crate::message::EventKind;
use crate::replica::{Passed, Question, Seen, Step};
use crate::verdict::SetId;

impl World {
    /// The program of one process goes on by one call, if it can.
    pub(super) fn go(&mut self, pid: Pid, choice: usize) -> bool {
        let matched = self.processes[pid].matched;
        match self.op(pid) {
            None => self.finish(pid),
            Some(Op::Send | Op::SendTo(_) | Op::Answer) if !self.processes[pid].offered => {
                let it = self.processes[pid].change();
                it.replica.offer(it.shape(), Digest::of(&it.value), 1);
                it.offered = true;
                it.copy = it.value.clone();
                self.send_out(pid);
                true
            }
            Some(Op::Send) => self.compare(pid, None),
            Some(Op::SendTo(to)) => self.compare(pid, Some(to)),
            Some(Op::Answer) => self.compare(pid, self.processes[pid].took_from),
            Some(Op::Choose) => self.take(pid, EventKind::Decision, |_| Some(vec![choice as u8])),
            Some(Op::Receive) => self.take(pid, EventKind::Data, |world| {
                if choice == 0 {
                    return Some(vec![7]);
                }
                world.left.mishears -= 1;
                world.faults += 1;
                world.processes[pid].change().faulty = true;
                Some(vec![200 + (pid % N) as u8])
            }),
            Some(Op::ReceiveFrom(from)) => self.receive(pid, from),
            Some(Op::ReceiveAny) => match matched {
                None => self.take(pid, EventKind::Decision, |world| {
                    let is_there = world.inboxes[pid].mpi.contains_key(&choice);
                    is_there.then(|| (choice as u16).to_le_bytes().to_vec())
                }),
                Some(from) => self.receive(pid, from),
            },
            Some(Op::Look) => self.see(pid, choice as u8, |it, value| {
                it.value.push(value);
                it.pc += 1;
            }),
            Some(Op::Linger) if choice == 0 => {
                self.processes[pid].change().pc += 1;
                self.send_out(pid);
                true
            }
            Some(Op::Linger) if LINGERS_MAX <= self.processes[pid].lingered => false,
            Some(Op::Linger) => self.see(pid, 0, |it, _| it.lingered += 1),
            Some(Op::Ask) => self.see(pid, choice as u8, |it, value| {
                it.value.push(value);
                it.asked += 1;
                if value == 1 || it.asked == ASKS_MAX {
                    it.asked = 0;
                    it.pc += 1;
                }
            }),
        }
    }

    /// A process is at the end of its program, where it waits for all others if they are a job.
    fn finish(&mut self, pid: Pid) -> bool {
        let (rank, set) = (Rank((pid / N) as u32), SetId::new(pid % N));
        if let Some(launcher) = &mut self.launcher {
            if !self.processes[pid].ending {
                self.processes[pid].change().ending = true;
                launcher.change().job.ending(rank, set);
                self.take_orders();
                self.send_out(pid);
                return true;
            }
            if !launcher.go_on {
                return false;
            }
            launcher.change().job.ended(rank, set, 0);
        }
        self.processes[pid].change().replica.end();
        self.send_out(pid);
        self.processes[pid].change().ended = true;
        self.close(pid);
        self.take_orders();
        true
    }

    fn compare(&mut self, pid: Pid, to: Option<usize>) -> bool {
        let it = self.processes[pid].change();
        let (own, n_calls) = (it.copy.clone(), it.replica.n_calls());
        let leaves = match it.replica.passed() {
            None => {
                // A verdict may have come that leaves it waiting for a sibling's contents.
                let is_over = n_calls < it.replica.n_calls();
                return self.send_out(pid) || is_over;
            }
            Some(Passed::Go) => own,
            Some(Passed::Serve(wrong)) => {
                it.replica.serve(&wrong, &own);
                own
            }
            Some(Passed::Replace(bytes)) => {
                self.check(self.processes[pid].faulty, "only who erred sends another's contents");
                bytes
            }
            Some(Passed::Leave) => return self.stray(pid),
            Some(Passed::Restart(why)) => return self.restart(pid, why),
        };
        let it = self.processes[pid].change();
        it.pc += 1;
        it.offered = false;
        it.copy.clear();
        self.send_out(pid);
        self.come_past(pid);
        if let Some(right) = self.right_value(pid / N, leaves.len()) {
            self.check(leaves == right, "something wrong left");
        }
        if let Some(to) = to {
            self.send(pid, to, leaves);
        }
        true
    }

    /// All that come past a compare find as many signals due: the program gets them at one call.
    /// The last compare is that of the exit code, after which it makes none: who has come past that
    /// does not stay to say what it had from the dead.
    fn come_past(&mut self, pid: Pid) {
        if self.op(pid).is_none() {
            return;
        }
        let it = &self.processes[pid].replica;
        let (at, due) = ((pid / N, it.n_calls()), it.signals());
        let first = *self.right.change().signals.entry(at).or_insert(due);
        self.check(first == due, "as many signals are due in all replicas");
    }

    /// Contents that were agreed on leave to another process.
    fn send(&mut self, pid: Pid, to: usize, bytes: Vec<u8>) {
        let n_sent = self.processes[pid].change().n_sent.entry(to).or_default();
        let idx = *n_sent;
        *n_sent += 1;
        let all = self.right.change().sent.entry((pid / N, to)).or_default();
        if all.len() == idx {
            all.push(bytes.clone());
        }
        let is_same = all[idx] == bytes;
        self.check(is_same, "all sets send the same message");
        let receiver = to * N + pid % N;
        let reads = self.processes[receiver].is_there() && !self.has_left(receiver);
        if !self.has_left(pid) && reads {
            self.inboxes[receiver].change().mpi.entry(pid / N).or_default().push_back(bytes);
        }
    }

    pub(super) fn has_left(&self, pid: Pid) -> bool {
        self.processes[pid].replica.has_left()
    }

    /// A process takes the next message from another.
    fn receive(&mut self, pid: Pid, from: usize) -> bool {
        self.take(pid, EventKind::Data, |world| {
            let mpi = &world.inboxes[pid].mpi;
            mpi.contains_key(&from).then_some(())?;
            let mpi = &mut world.inboxes[pid].change().mpi;
            let queue = mpi.get_mut(&from)?;
            let bytes = queue.pop_front();
            if queue.is_empty() {
                mpi.remove(&from);
            }
            bytes
        })
    }

    /// A process comes to something that comes in; `bring` is asked if it settles that.
    fn take(
        &mut self,
        pid: Pid,
        kind: EventKind,
        bring: impl FnOnce(&mut Self) -> Option<Vec<u8>>,
    ) -> bool {
        let it = self.processes[pid].change();
        let (shape, number) = (it.shape(), it.replica.next_event());
        let bytes = match it.replica.begin(kind, shape) {
            // It may have accused somebody just now.
            Step::Wait => return self.send_out(pid),
            Step::Leave => return self.stray(pid),
            Step::Restart(why) => return self.restart(pid, why),
            Step::Take(bytes) => bytes,
            Step::Do => {
                let Some(bytes) = bring(self) else { return false };
                let bytes = Arc::new(bytes);
                self.processes[pid].change().replica.finish(kind, shape, bytes.clone());
                if kind == EventKind::Decision {
                    self.settle(pid, number);
                }
                bytes
            }
        };
        self.come(pid, kind, &bytes);
        self.send_out(pid);
        true
    }

    /// Of those that live and did not err one alone settles a decision: who leads after another
    /// knows what that one settled, before it comes to it itself.
    fn settle(&mut self, pid: Pid, number: u64) {
        let at = (pid / N, number);
        if let Some(other) = self.right.settled.get(&at) {
            let other = &self.processes[*other];
            self.check(!other.alive || other.faulty, "two settle one decision");
        }
        self.right.change().settled.insert(at, pid);
    }

    /// The program of one process gets what came in.
    fn come(&mut self, pid: Pid, kind: EventKind, bytes: &[u8]) {
        let from = match self.op(pid) {
            Some(Op::ReceiveFrom(from)) => from,
            Some(Op::ReceiveAny) if kind == EventKind::Data => {
                self.processes[pid].matched.expect("it was decided before")
            }
            op => {
                let it = self.processes[pid].change();
                it.value.extend(bytes);
                if op == Some(Op::ReceiveAny) {
                    it.matched = Some(u16::from_le_bytes([bytes[0], bytes[1]]).into());
                } else {
                    it.pc += 1;
                }
                return;
            }
        };
        let it = self.processes[pid].change();
        it.matched = None;
        it.took_from = Some(from);
        it.pc += 1;
        // What comes of a message depends on all of it.
        it.value.push(bytes.iter().fold(1, |sum: u8, it| sum.wrapping_mul(31).wrapping_add(*it)));
        let n_received = it.n_received.entry(from).or_default();
        let idx = *n_received;
        *n_received += 1;
        let sent = self.right.sent.get(&(from, pid / N)).and_then(|it| it.get(idx));
        let is_next = sent.is_some_and(|it| it == bytes);
        self.check(is_next, "who receives takes the next message that was sent to it");
    }

    /// What a process sees from where it is, if it sees something.
    fn see(&mut self, pid: Pid, value: u8, takes: impl FnOnce(&mut Process, u8)) -> bool {
        let it = self.processes[pid].change();
        let question = Question { clock: 0, site: it.pc as u64 };
        let value = match it.replica.look(question, false) {
            Seen::Wait => return self.send_out(pid),
            Seen::Leave => return self.stray(pid),
            Seen::Restart(why) => return self.restart(pid, why),
            Seen::Do => {
                it.replica.tell_look(question, vec![value].into());
                value
            }
            Seen::Take(bytes) => bytes[0],
            Seen::Past => STILL,
        };
        takes(it, value);
        self.send_out(pid);
        true
    }
}
