//! A whole program in three replicas: who is where in it, what is on each link, and what can happen
//! next.
//!
//! Each process drives its [`Replica`] as the library does, and one [`Job`] is what the launcher
//! knows.  What the world checks itself, whoever walks through it: all that leaves is what replicas
//! without a fault computed, each receive takes the next message that was sent to it, and of those
//! that live one alone settles a decision.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

use twox_hash::XxHash3_64;

use super::{N, Op};
use crate::digest::Shape;
use crate::job::{Job, Order, Rank};
use crate::message::{EventKind, Message, Place};
use crate::replica::{Input, Replica, ReplicaOptions};
use crate::verdict::{Double, SetId};

mod steps;

/// One of the program's processes, by rank and then by set.
pub(super) type Pid = usize;

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Act {
    /// A process hears what a sibling said next, or that its link has ended.
    Hear { pid: Pid, from: usize },
    /// A process hears that its set has lost a member.
    Leave { pid: Pid },
    /// Its program goes on by one call; if it settles something, as this choice.
    Go { pid: Pid, choice: usize },
    /// The launcher hears of a death.
    Launch,
    /// A process is killed: so many of its last words had not left it, and its messages of MPI's
    /// that nobody has taken are lost or are not.
    Kill { pid: Pid, n_unsaid: usize, loses: bool },
    /// The value of a process is another.
    Flip { pid: Pid },
    /// A process leaves out a call.
    Stray { pid: Pid },
    /// Another process of its set is gone, of which nothing else is told.
    Break { pid: Pid },
    /// A process is asked to lead no more.
    Yield { pid: Pid },
    /// A process hears of one more signal, before its siblings do or instead of them.
    Signal { pid: Pid },
}

/// What may still be done to a world.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Faults {
    pub(super) kills: u32,
    pub(super) flips: u32,
    /// A flip may also be another way that a process takes.
    pub(super) strays: bool,
    pub(super) breaks: u32,
    /// Requests to lead no more.
    pub(super) yields: u32,
    /// Signals that one process hears of.
    pub(super) signals: u32,
    /// Wrong things that some MPI may bring; where there are any, a broken set is a fault, too.
    pub(super) mishears: u32,
    pub(super) mishears_any: bool,
}

impl Faults {
    pub(super) const NONE: Self = Self {
        kills: 0,
        flips: 0,
        strays: false,
        breaks: 0,
        yields: 0,
        signals: 0,
        mishears: 0,
        mishears_any: false,
    };
}

/// Part of a world: worlds that do not differ in it share it, and its hash.
#[derive(Clone)]
pub(super) struct Kept<T> {
    it: Rc<T>,
    /// 0 if it is not known.
    hash: u64,
}

impl<T: Clone + Hash> Kept<T> {
    fn new(it: T) -> Self {
        Self { it: Rc::new(it), hash: 0 }
    }

    pub(super) fn change(&mut self) -> &mut T {
        self.hash = 0;
        Rc::make_mut(&mut self.it)
    }

    fn hash(&mut self) -> u64 {
        if self.hash == 0 {
            let mut hasher = XxHash3_64::with_seed(0);
            self.it.hash(&mut hasher);
            self.hash = hasher.finish().max(1);
        }
        self.hash
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.it
    }
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) replica: Replica,
    pub(super) pc: usize,
    /// What it computed: the events that it took.
    pub(super) value: Vec<u8>,
    offered: bool,
    /// Looks that it forgot.
    lingered: u32,
    /// How often it has asked for the same.
    asked: u32,
    /// What it offered; what leaves is this copy, so that a later flip of the value is no matter.
    copy: Vec<u8>,
    pub(super) faulty: bool,
    /// It is in MPI_Finalize.
    ending: bool,
    pub(super) ended: bool,
    pub(super) alive: bool,
    /// To whom its last words went: a death may hold them back, the last first.
    unsaid: Vec<usize>,
    /// How many messages it has sent to each process, and received from each.
    n_sent: BTreeMap<usize, usize>,
    n_received: BTreeMap<usize, usize>,
    /// From whom it receives, once that is decided.
    matched: Option<usize>,
    /// From whom it received last.
    took_from: Option<usize>,
    /// Signals that it has heard of.
    signals: u32,
}

impl Hash for Process {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.replica.hash_state(hasher);
        (self.pc, &self.value, &self.copy, self.offered, self.faulty, self.ending).hash(hasher);
        (self.lingered, self.asked, self.ended, self.alive, &self.unsaid).hash(hasher);
        (&self.n_sent, &self.n_received, self.matched, self.took_from, self.signals).hash(hasher);
    }
}

impl Process {
    fn new(own: SetId) -> Self {
        Self {
            replica: Replica::new(ReplicaOptions { own, replicas: N, trust_after: 2 }),
            pc: 0,
            value: vec![],
            offered: false,
            lingered: 0,
            asked: 0,
            copy: vec![],
            faulty: false,
            ending: false,
            ended: false,
            alive: true,
            unsaid: vec![],
            n_sent: BTreeMap::new(),
            n_received: BTreeMap::new(),
            matched: None,
            took_from: None,
            signals: 0,
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.alive && !self.ended
    }

    fn shape(&self) -> Shape {
        Shape(self.pc as u64 + 1)
    }
}

/// What has been sent to a process and is not taken.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Inbox {
    /// By the set of who said it, in order; nothing in it is the link's end.
    pub(super) said: [VecDeque<Option<Message>>; N],
    /// Messages in its set's MPI, by rank.
    mpi: BTreeMap<usize, VecDeque<Vec<u8>>>,
    /// The launcher's word that its set has lost a member.
    leave: bool,
}

/// What the launcher knows.
#[derive(Clone, Debug, Hash)]
struct Launcher {
    job: Job,
    /// Deaths that it has not heard of.
    deaths: VecDeque<(Rank, SetId)>,
    go_on: bool,
    code: Option<i32>,
}

/// What is right, as far as it is known.
#[derive(Clone, Debug, Default, Hash)]
struct Right {
    /// All messages from one process to another.
    sent: BTreeMap<(usize, usize), Vec<Vec<u8>>>,
    /// Who settled a decision: by rank and number.
    settled: BTreeMap<(usize, u64), usize>,
    /// How many signals are due after a compare: by rank and the number of compares.
    signals: BTreeMap<(usize, u64), u32>,
}

/// What has happened, the last first.
struct Trace {
    act: Act,
    before: Option<Rc<Trace>>,
}

#[derive(Clone)]
pub(super) struct World {
    programs: Rc<Vec<Vec<Op>>>,
    pub(super) processes: Vec<Kept<Process>>,
    pub(super) inboxes: Vec<Kept<Inbox>>,
    launcher: Option<Kept<Launcher>>,
    right: Kept<Right>,
    pub(super) left: Faults,
    pub(super) faults: u32,
    pub(super) restarted: Option<(Rank, Double)>,
    trace: Option<Rc<Trace>>,
    is_traced: bool,
}

impl World {
    /// One cluster by itself, of which no launcher knows.
    pub(super) fn of_one(program: &[Op], faults: Faults) -> Self {
        Self::new(vec![program.to_vec()], faults)
    }

    /// The processes of a job.
    pub(super) fn of_job(programs: Vec<Vec<Op>>, faults: Faults) -> Self {
        let (job, deaths) = (Job::new(programs.len(), N), VecDeque::new());
        let launcher = Launcher { job, deaths, go_on: false, code: None };
        Self { launcher: Some(Kept::new(launcher)), ..Self::new(programs, faults) }
    }

    fn new(programs: Vec<Vec<Op>>, left: Faults) -> Self {
        let n = programs.len() * N;
        let process = |pid: Pid| Kept::new(Process::new(SetId::new(pid % N)));
        Self {
            programs: Rc::new(programs),
            processes: (0..n).map(process).collect(),
            inboxes: (0..n).map(|_| Kept::new(Inbox::default())).collect(),
            launcher: None,
            right: Kept::new(Right::default()),
            left,
            faults: 0,
            restarted: None,
            trace: None,
            is_traced: true,
        }
    }

    /// The same without a word about what led to an error.
    pub(super) fn untraced(self) -> Self {
        Self { is_traced: false, ..self }
    }

    pub(super) fn key(&mut self) -> u64 {
        let mut hasher = XxHash3_64::with_seed(0);
        for it in &mut self.processes {
            it.hash().hash(&mut hasher);
        }
        for it in &mut self.inboxes {
            it.hash().hash(&mut hasher);
        }
        self.launcher.as_mut().map(Kept::hash).hash(&mut hasher);
        self.right.hash().hash(&mut hasher);
        (self.left, self.faults, self.restarted).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn op(&self, pid: Pid) -> Option<Op> {
        self.programs[pid / N].get(self.processes[pid].pc).copied()
    }

    /// For what a process waits, if it is at something that comes in.
    pub(super) fn place(&self, pid: Pid) -> Option<Place> {
        let it = &self.processes[pid];
        let kind = match self.op(pid)? {
            Op::Send | Op::SendTo(_) | Op::Answer | Op::Look | Op::Linger | Op::Ask => return None,
            Op::ReceiveAny if it.matched.is_none() => EventKind::Decision,
            Op::Choose => EventKind::Decision,
            Op::Receive | Op::ReceiveFrom(_) | Op::ReceiveAny => EventKind::Data,
        };
        Some(Place { event: it.replica.next_event(), kind, shape: it.shape() })
    }

    /// What can happen to one process that is no fault; its going on may come to nothing.
    pub(super) fn acts(&self, pid: Pid, acts: &mut Vec<Act>) {
        if !self.processes[pid].is_there() {
            return;
        }
        let inbox = &self.inboxes[pid];
        let has_said = |from: &usize| !inbox.said[*from].is_empty();
        acts.extend((0..N).filter(has_said).map(|from| Act::Hear { pid, from }));
        acts.extend(inbox.leave.then_some(Act::Leave { pid }));
        let go = |choice| Act::Go { pid, choice };
        match self.op(pid) {
            None | Some(Op::Send | Op::SendTo(_) | Op::Answer | Op::ReceiveFrom(_)) => {
                acts.push(go(0));
            }
            Some(Op::Choose | Op::Look | Op::Linger | Op::Ask) => acts.extend([0, 1].map(go)),
            Some(Op::Receive) => acts.extend((0..=self.left.mishears.min(1) as usize).map(go)),
            Some(Op::ReceiveAny) => {
                // One who settles it may take any that is there.
                acts.extend(inbox.mpi.keys().copied().map(go));
                acts.extend(inbox.mpi.is_empty().then(|| go(0)));
            }
        }
    }

    /// Something that may as well happen at once: whatever else happens before it may happen after
    /// it, and comes to the same.  It is looked for where nobody is killed any more nor takes
    /// another way, and faults are tried before it anyway.
    pub(super) fn surely(&self) -> Option<Act> {
        let Faults { kills, strays, breaks, yields, mishears, .. } = self.left;
        if 0 < kills || strays || 0 < breaks || 0 < yields || 0 < mishears {
            return None;
        }
        let launcher = self.launcher.as_deref();
        let is_known = launcher.is_none_or(|it| it.deaths.is_empty());
        if !is_known && !self.processes.iter().any(|it| it.ending || it.ended) {
            return Some(Act::Launch);
        }
        let there = || (0..self.processes.len()).filter(|it| self.processes[*it].is_there());
        // What siblings offer is looked at only when all have.
        let has_offer = |pid: Pid, from: usize| {
            matches!(self.inboxes[pid].said[from].front(), Some(Some(Message::Offer(_))))
        };
        for pid in there() {
            if let Some(from) = (0..N).find(|from| has_offer(pid, *from)) {
                return Some(Act::Hear { pid, from });
            }
        }
        let goes = |pid: &Pid| is_known && self.goes_surely(*pid);
        there().find(goes).map(|pid| Act::Go { pid, choice: 0 })
    }

    /// Whether a process goes on alike whatever it hears before.
    fn goes_surely(&self, pid: Pid) -> bool {
        let it = &self.processes[pid];
        let leaves = |pid: Pid| self.inboxes[pid].leave;
        match self.op(pid) {
            None => self.launcher.as_ref().is_some_and(|job| !it.ending || job.go_on),
            Some(Op::Send | Op::SendTo(_) | Op::Answer) => !it.offered && !leaves(pid),
            Some(Op::ReceiveFrom(from)) => {
                // Nor does anybody else hear of it, unless it has left.
                let said = &self.inboxes[pid].said;
                let has_said = |it: &Option<Message>| matches!(it, Some(Message::Left));
                self.inboxes[pid].mpi.contains_key(&from)
                    && !self.has_left(pid)
                    && !leaves(pid)
                    && !self.siblings(pid).any(leaves)
                    && !said.iter().flatten().any(has_said)
            }
            Some(Op::Choose | Op::Receive | Op::ReceiveAny | Op::Look | Op::Linger | Op::Ask) => {
                false
            }
        }
    }

    /// Whether the launcher has something to hear.
    pub(super) fn launch(&self) -> Option<Act> {
        let hears = self.launcher.as_ref().is_some_and(|it| !it.deaths.is_empty());
        hears.then_some(Act::Launch)
    }

    /// What can be done to one process.
    pub(super) fn breaks(&self, pid: Pid, acts: &mut Vec<Act>) {
        let it = &self.processes[pid];
        let Faults { kills, flips, strays, breaks, yields, signals, .. } = self.left;
        if !it.is_there() {
            return;
        }
        if 0 < kills {
            let there = |n: &usize| self.are_on_links(pid, &it.unsaid[it.unsaid.len() - n..]);
            for n_unsaid in (0..=it.unsaid.len()).take_while(there) {
                acts.push(Act::Kill { pid, n_unsaid, loses: false });
                if self.has_in_mpi(pid) {
                    acts.push(Act::Kill { pid, n_unsaid, loses: true });
                }
            }
        }
        if 0 < flips && !it.value.is_empty() && !it.faulty {
            acts.push(Act::Flip { pid });
        }
        // Two that take the same wrong way at once would be a majority: not looked for.
        if 0 < flips && strays && self.faults == 0 && !it.offered {
            acts.push(Act::Stray { pid });
        }
        if 0 < yields {
            acts.push(Act::Yield { pid });
        }
        if 0 < signals {
            acts.push(Act::Signal { pid });
        }
        if 0 < breaks && !it.replica.has_left() {
            acts.push(Act::Break { pid });
        }
    }

    /// Whether so many words of one are still unheard by those to whom they went.
    fn are_on_links(&self, pid: Pid, unsaid: &[usize]) -> bool {
        let n_to = |to: usize| unsaid.iter().filter(|it| **it == to).count();
        let on_link = |to: usize| self.inboxes[pid - pid % N + to].said[pid % N].len();
        (0..N).all(|to| n_to(to) <= on_link(to))
    }

    fn has_in_mpi(&self, pid: Pid) -> bool {
        let of_set = self.inboxes.iter().skip(pid % N).step_by(N);
        self.launcher.is_some() && of_set.into_iter().any(|it| it.mpi.contains_key(&(pid / N)))
    }

    /// What comes of it, if anything does.
    pub(super) fn after(&self, act: Act) -> Option<Self> {
        let mut next = self.clone();
        next.apply(act).then_some(next)
    }

    /// Does it; returns whether anything came of it.
    pub(super) fn apply(&mut self, act: Act) -> bool {
        if self.is_traced {
            self.trace = Some(Rc::new(Trace { act, before: self.trace.take() }));
        }
        match act {
            Act::Hear { pid, from } => {
                let of = SetId::new(from);
                let said = self.inboxes[pid].change().said[from].pop_front();
                let input = said
                    .expect("only what was said is heard")
                    .map_or(Input::Closed(of), |it| Input::Message(of, it));
                self.processes[pid].change().replica.handle(input);
                self.send_out(pid);
                true
            }
            Act::Leave { pid } | Act::Break { pid } => {
                if matches!(act, Act::Break { .. }) {
                    self.left.breaks -= 1;
                    self.faults += u32::from(self.left.mishears_any);
                }
                let inbox = self.inboxes[pid].change();
                inbox.leave = false;
                inbox.mpi.clear();
                self.processes[pid].change().replica.handle(Input::SetBroken);
                self.send_out(pid);
                true
            }
            Act::Go { pid, choice } => self.go(pid, choice),
            Act::Launch => {
                let launcher = self.launcher.as_mut().expect("it hears").change();
                let (rank, set) = launcher.deaths.pop_front().expect("it hears of one");
                launcher.job.died(rank, set);
                self.take_orders();
                true
            }
            Act::Kill { pid, n_unsaid, loses } => {
                self.kill(pid, n_unsaid, loses);
                true
            }
            Act::Flip { pid } => {
                let it = self.err(pid);
                // Two flips never make the same wrong value.
                *it.value.last_mut().expect("it is not empty") = 100 + (pid % N) as u8;
                true
            }
            Act::Stray { pid } => {
                let last = self.programs[pid / N].len() - 1;
                let it = self.err(pid);
                it.pc = (it.pc + 1).min(last);
                true
            }
            Act::Yield { pid } => {
                self.left.yields -= 1;
                self.processes[pid].change().replica.yield_lead();
                true
            }
            Act::Signal { pid } => {
                self.left.signals -= 1;
                let it = self.processes[pid].change();
                it.signals += 1;
                it.replica.hear_signals(it.signals);
                true
            }
        }
    }

    fn err(&mut self, pid: Pid) -> &mut Process {
        self.left.flips -= 1;
        self.faults += 1;
        let it = self.processes[pid].change();
        it.faulty = true;
        it
    }

    fn kill(&mut self, pid: Pid, n_unsaid: usize, loses: bool) {
        self.left.kills -= 1;
        self.faults += 1;
        let unsaid = self.processes[pid].unsaid.clone();
        for to in &unsaid[unsaid.len() - n_unsaid..] {
            self.inboxes[pid - pid % N + to].change().said[pid % N].pop_back();
        }
        if loses {
            for it in self.inboxes.iter_mut().skip(pid % N).step_by(N) {
                it.change().mpi.remove(&(pid / N));
            }
        }
        self.processes[pid].change().faulty = true;
        self.end(pid);
    }

    /// A process is no more.
    fn end(&mut self, pid: Pid) {
        self.processes[pid].change().alive = false;
        self.close(pid);
        if let Some(launcher) = &mut self.launcher {
            let who = (Rank((pid / N) as u32), SetId::new(pid % N));
            launcher.change().deaths.push_back(who);
        }
    }

    /// Its links end.  What it knew changes nothing any more: states that differ in it are one.
    fn close(&mut self, pid: Pid) {
        for to in self.siblings(pid) {
            if self.processes[to].is_there() {
                self.inboxes[to].change().said[pid % N].push_back(None);
            }
        }
        let it = self.processes[pid].change();
        let Process { pc, alive, ended, faulty, .. } = *it;
        let value = if ended { std::mem::take(&mut it.value) } else { Vec::new() };
        *it = Process { pc, alive, ended, faulty, value, ..Process::new(SetId::new(pid % N)) };
        *self.inboxes[pid].change() = Inbox::default();
    }

    fn siblings(&self, pid: Pid) -> impl Iterator<Item = Pid> + use<> {
        let first = pid - pid % N;
        (first..first + N).filter(move |it| *it != pid)
    }

    /// Puts what the core wants said on links; returns whether that is anything.
    fn send_out(&mut self, pid: Pid) -> bool {
        let it = self.processes[pid].change();
        it.unsaid.clear();
        let mut messages = Vec::new();
        while let Some((to, message)) = it.replica.poll() {
            messages.extend(to.iter().map(|it| (it, message.clone())));
        }
        while it.replica.poll_note().is_some() {}
        let came = !messages.is_empty();
        for (to, message) in messages {
            let sibling = pid - pid % N + to.idx();
            if self.processes[sibling].is_there() {
                self.inboxes[sibling].change().said[pid % N].push_back(Some(message));
                if 0 < self.left.kills {
                    self.processes[pid].change().unsaid.push(to.idx());
                }
            }
        }
        came
    }

    /// Does what the launcher says.
    fn take_orders(&mut self) {
        while let Some(launcher) = &mut self.launcher {
            match launcher.change().job.poll() {
                None => return,
                Some(Order::LeaveMpi(set)) => {
                    for pid in (set.idx()..self.processes.len()).step_by(N) {
                        if self.processes[pid].is_there() {
                            self.inboxes[pid].change().leave = true;
                        }
                    }
                }
                Some(Order::GoOn) => launcher.change().go_on = true,
                Some(Order::End(code)) => launcher.change().code = Some(code),
                Some(Order::Restart(rank, why)) => self.restarted = Some((rank, why)),
                Some(order @ Order::Part(..)) => unreachable!("{order:?} between hosts alone"),
            }
        }
    }

    /// A process says that its cluster cannot go on.
    fn restart(&mut self, pid: Pid, why: Double) -> bool {
        let rank = Rank((pid / N) as u32);
        match &mut self.launcher {
            Some(launcher) => launcher.change().job.restart(rank, why),
            None => self.restarted = Some((rank, why)),
        }
        self.take_orders();
        true
    }

    /// A process finds that it makes other calls than its siblings.
    fn stray(&mut self, pid: Pid) -> bool {
        self.check(self.processes[pid].faulty, "who did not err is not sent away");
        self.end(pid);
        true
    }

    /// The values that those of a cluster without a fault have taken, as far as the longest.
    pub(super) fn right_value(&self, rank: usize, length: usize) -> Option<&[u8]> {
        let of = |it: &&Kept<Process>| !it.faulty && length <= it.value.len();
        let cluster = &self.processes[rank * N..(rank + 1) * N];
        cluster.iter().find(of).map(|it| &it.value[..length])
    }

    /// Whether the program may start again: one cluster had two faults, or no set is whole.
    pub(super) fn may_restart(&self) -> bool {
        let n_faulty = |rank: &[Kept<Process>]| rank.iter().filter(|it| it.faulty).count();
        let is_broken = |set: usize| self.processes.iter().skip(set).step_by(N).any(|it| !it.alive);
        let is_double = self.processes.chunks(N).any(|it| 1 < n_faulty(it));
        is_double
            || (self.launcher.is_some() && (0..N).all(is_broken))
            || (self.launcher.is_none() && 1 < self.faults)
    }

    /// Where nothing more can happen, all that live are at the end with the right value.
    pub(super) fn check_end(&self) {
        self.check(
            self.processes.iter().all(|it| it.ended || !it.alive),
            "somebody waits for ever",
        );
        for (rank, cluster) in self.processes.chunks(N).enumerate() {
            let n_live = cluster.iter().filter(|it| it.alive).count();
            self.check(0 < n_live, "somebody is left");
            let length = cluster.iter().map(|it| it.value.len()).max().unwrap_or(0);
            if let Some(right) = self.right_value(rank, length) {
                let is_right = |it: &Kept<Process>| !it.alive || it.faulty || it.value == right;
                self.check(cluster.iter().all(is_right), "all without a fault took the same");
            }
        }
        if let Some(launcher) = &self.launcher {
            self.check(launcher.code == Some(0), "the job has its exit code");
        }
    }

    /// Fails with all that led here, if it is not so.
    pub(super) fn check(&self, is_so: bool, what: &str) {
        if is_so {
            return;
        }
        let mut acts = Vec::new();
        let mut last = self.trace.as_ref();
        while let Some(it) = last {
            acts.push(it.act);
            last = it.before.as_ref();
        }
        for act in acts.iter().rev() {
            println!("  {act:?}");
        }
        for (pid, it) in self.processes.iter().enumerate() {
            let Process { pc, alive, ended, faulty, value, .. } = &**it;
            println!(
                "rank {} set {}: at {pc}, {alive} {ended} {faulty} {value:?} {:?}",
                pid / N,
                pid % N,
                *self.inboxes[pid]
            );
        }
        panic!("not so: {what}");
    }
}
