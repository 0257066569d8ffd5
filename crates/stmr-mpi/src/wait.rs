//! How a process waits: for its siblings, for its set's MPI, for its own thread.
//!
//! Whoever waits first lets others run, some times, and then sleeps until its bell is rung or it is
//! time to look by itself.  Siblings ring when they have written; a process that has started a
//! message rings its receiver.  MPI rings nobody, so that a sleep beside it is short.

use std::time::Duration;

use selvedge_stmr::message::{Message, Place};
use selvedge_stmr::replica::{Ahead, Input};
use selvedge_stmr::report::Report;
use selvedge_stmr::usage::Usage;
use selvedge_stmr::verdict::{Double, SetId};

use crate::abi::{self, RawStatus};
use crate::clock;
use crate::comm::Comm;
use crate::ends;
use crate::link::Sibling;
use crate::memory::For;
use crate::network;
use crate::real::{self, Blocking, Call};
use crate::request::Request;
use crate::state::State;
use crate::threads;

/// How often a process only lets others run, before it sleeps: where no other wants to, some tens
/// of microseconds.  Where others compute, each takes as long as they do and costs a switch, and
/// to be woken costs more.
const YIELDS: u32 = 40;

/// The first and the longest sleep beside MPI, in microseconds, where somebody rings when there is
/// something; each is twice as long as the one before.
const RUNG_US: [u32; 2] = [200, 1_000];

/// The same in a collective, whose later steps nobody rings for.
const UNRUNG_US: [u32; 2] = [50, 500];

/// So many processes of the other side are woken in a collective of two sides; others look by
/// themselves.
const REMOTE_MAX: usize = 64;

/// How long a process that waits for its siblings does not look at MPI, if others may wait for it
/// to, in microseconds.
const MOVE_US: u32 = 1_000;

/// How often as long who leads sleeps at a look that is far ahead of the others'.
const FAR_MOVES: u32 = 100;

/// How long it sleeps if nobody may, in microseconds: deaths are looked for as often.
const IDLE_US: u32 = 10_000;

/// A sibling that computes for so long while the others wait for it, and for twice the time that
/// they took to come here from where all were last, is taken for lost; in milliseconds of processor
/// time.
pub(crate) const LATE_CPU_MS: u64 = 10_000;

/// So is one that sleeps for so long, and does not say that it waits too, in milliseconds.
pub(crate) const LATE_SLEEP_MS: u64 = 30_000;

/// Who has not looked for so long was stopped itself, or computed, in milliseconds.
const LATE_GAP_MS: u64 = 5_000;

/// One that strayed has so long to learn that it did and to end, in milliseconds.
const STRAY_MS: u64 = 500;

/// Replicas that all wait for each other, and for nothing else, for so long will do so for ever, in
/// milliseconds.
const STUCK_MS: u64 = 10_000;

/// How often is looked, in milliseconds.
const LATE_EVERY_MS: u64 = 250;

/// A wait, and what is known of those that are waited for.
pub(crate) struct Wait {
    /// For those who want something of this process's windows, or for a collective meanwhile.
    pub(crate) serves: bool,
    /// Turns and sleeps of it.
    turns: u32,
    sleeps: u32,
    /// The bell's count when this process said that it is about to sleep.
    lain: Option<u32>,
    /// Calls that ask and wait for nothing.
    asks: u32,
    /// When sockets were last looked at, by the clock that ticks coarsely.
    looked_ms: u64,
    late: Vec<Option<Late>>,
    late_ms: u64,
    /// Siblings that were found to have strayed, and when.
    strayed: Vec<(usize, u64)>,
    /// For which event this replica waits, and its siblings did when they were asked last.
    pub(crate) place: Option<Place>,
    places: Vec<Option<Place>>,
    /// When siblings said last that they wait, in milliseconds.
    waits_ms: Vec<u64>,
    /// Whether this replica waits for nothing but siblings, and those said last that they do.
    at_siblings: bool,
    are_at_siblings: Vec<bool>,
    /// How this replica and its siblings last waited for each other.
    standstill: Option<Standstill>,
    /// This replica says that it waits if it is asked.
    pub(crate) answers: bool,
    /// Own processor time at the last compare, and between the one before and it.
    compared_ms: u64,
    compared_at_ms: u64,
    work_ms: u64,
}

impl Wait {
    pub(crate) fn new(replicas: usize) -> Self {
        Self {
            serves: false,
            turns: 0,
            sleeps: 0,
            lain: None,
            asks: 0,
            looked_ms: 0,
            late: vec![None; replicas],
            late_ms: 0,
            strayed: Vec::new(),
            place: None,
            places: vec![None; replicas],
            waits_ms: vec![0; replicas],
            at_siblings: false,
            are_at_siblings: vec![false; replicas],
            standstill: None,
            answers: true,
            compared_ms: 0,
            compared_at_ms: 0,
            work_ms: 0,
        }
    }
}

impl State {
    /// Begins to wait.
    pub(crate) fn begin_wait(&mut self) {
        self.begin_turns();
        self.wait.late.fill(None);
    }

    fn begin_turns(&mut self) {
        self.wait.turns = 0;
        self.wait.sleeps = 0;
    }

    /// Comes to a look.  Who leads may ask and ask for what comes only when a sibling has gone on
    /// that it has left far behind: then it waits for that one.
    pub(crate) fn begin_look(&mut self) {
        // Who looks and looks does not wait, whatever it is that it looks for.
        self.wait.answers = false;
        self.look_around();
        let moves = match self.replica.ahead() {
            _ if !self.replica.is_meta() => 0,
            Ahead::Little => 0,
            Ahead::Much => 1,
            Ahead::Far => FAR_MOVES,
        };
        if moves == 0 {
            self.begin_wait();
            return;
        }
        self.begin_turns();
        self.send_out();
        for _ in 0..moves {
            unsafe { libc::usleep(MOVE_US) };
            // What it has told may be more than links hold at once.
            self.pump();
            if self.replica.ahead() != Ahead::Far {
                break;
            }
        }
        self.look_for_late(|it| it.replica.left_behind_in_looks());
    }

    /// What was waited for is there.
    pub(crate) fn end_wait(&mut self) {
        if self.wait.lain.take().is_some() {
            self.memory.bell().get_up();
        }
    }

    /// Wakes a member of a communicator, if it sleeps for that.
    pub(crate) fn wake(&self, known: &Comm, member: i32, what: For) {
        // MPI may give a number that is none: an error's, or nobody's.
        let rank = usize::try_from(member).ok().and_then(|it| known.peers().get(it));
        if let Some(rank) = rank {
            self.memory.bell_of_rank(*rank as usize).ring(what);
        }
    }

    /// Wakes those who may wait for this process in a collective: in trees and exchanges alike they
    /// are as far from it as powers of two.
    pub(crate) fn wake_partners(&self, comm: usize) {
        let Some(known) = self.comms.get(&comm) else { return };
        if let Some(remote) = &known.remote {
            for member in 0..remote.len().min(REMOTE_MAX) {
                self.wake(known, member as i32, For::Collective);
            }
        }
        let mut far = 1;
        while far < known.size && known.remote.is_none() {
            for member in [known.rank ^ far, known.rank + far, known.rank - far] {
                self.wake(known, member.rem_euclid(known.size), For::Collective);
            }
            far *= 2;
        }
    }

    /// One turn of waiting, after which what is waited for is looked at again; returns whether this
    /// process slept.
    fn turn(&mut self, what: For, max_us: u32) -> bool {
        let wait = &mut self.wait;
        wait.turns += 1;
        if wait.turns <= YIELDS {
            unsafe { libc::sched_yield() };
            return false;
        }
        let bell = self.memory.bell();
        let at_sockets =
            what == For::Siblings && self.siblings.iter().flatten().any(Sibling::is_away);
        match wait.lain.take() {
            Some(rung) => {
                wait.sleeps += 1;
                if at_sockets {
                    self.sleep_at_sockets(max_us);
                } else {
                    bell.sleep(rung, max_us);
                }
                true
            }
            None => {
                wait.lain = Some(if at_sockets {
                    bell.lie_down_at_sockets(what);
                    0
                } else {
                    bell.lie_down(what)
                });
                false
            }
        }
    }

    /// Sleeps until a sibling writes, wherever it is, or the launcher does, or for so long.
    fn sleep_at_sockets(&mut self, max_us: u32) {
        let mut fds = self.sockets();
        network::sleep_at(&mut fds, Duration::from_micros(max_us.into()));
        self.memory.bell().get_up();
        // What woke this process is looked at in any case.
        self.wait.looked_ms = 0;
    }

    /// What to look for at siblings and, last, at the launcher.
    fn sockets(&self) -> [libc::pollfd; 4] {
        let mut fds = [libc::pollfd { fd: -1, events: 0, revents: 0 }; 4];
        for (fd, sibling) in fds.iter_mut().zip(&self.siblings) {
            // One that is missed has nothing more to say.
            let sibling = sibling.as_ref().filter(|it| !it.is_missed);
            *fd = sibling.map_or(*fd, Sibling::poll_for);
        }
        fds[3] = self.launcher.poll_for();
        fds
    }

    /// One turn of waiting for MPI, or for something else that is not the siblings'.
    pub(crate) fn spin(&mut self, what: For) {
        let [first, most] = match what {
            // Its own thread always rings; it looks for deaths alone.
            For::Thread => [IDLE_US, IDLE_US],
            For::Collective => UNRUNG_US,
            For::Message | For::Receiver | For::Siblings => RUNG_US,
        };
        let sleep_us = (first << self.wait.sleeps.min(8)).min(most);
        let slept = self.turn(what, sleep_us);
        if slept || self.wait.turns.is_multiple_of(8) {
            self.tell_matches();
            self.pump();
        }
        // A sibling that is not there may be what its set waits for, and this one's sender for it.
        if slept && self.wait.place.is_some() {
            self.look_for_late(|it| it.replica.awaited());
        }
    }

    /// Waits for siblings until something may have come from one, or it is time to look for itself;
    /// these are late if that takes long.
    pub(crate) fn wait_for_siblings(&mut self, late: fn(&Self) -> Vec<SetId>) {
        let moves = self.has_pending();
        self.wait.at_siblings = true;
        loop {
            let slept = self.turn(For::Siblings, if moves { MOVE_US } else { IDLE_US });
            let is_eighth = || self.wait.turns.is_multiple_of(8);
            let ticked = || self.wait.looked_ms != clock::coarse_ms();
            let is_time = slept || (is_eighth() && (moves || ticked()));
            if is_time && moves {
                self.reap();
                self.progress();
                self.tell_matches();
            }
            if is_time || self.siblings.iter().flatten().any(Sibling::may_have_more) {
                self.pump();
                if slept {
                    self.look_for_late(late);
                }
                self.wait.at_siblings = false;
                return;
            }
        }
    }

    /// Now and then looks at links, and at receives from anybody: a program that asks and asks
    /// waits for nothing, but must hear of a death, and a send may wait for what it does not ask
    /// for.
    pub(crate) fn look_around(&mut self) {
        self.wait.asks = self.wait.asks.wrapping_add(1);
        if self.wait.asks.is_multiple_of(8) {
            if self.has_pending() {
                self.reap();
                self.progress();
                self.tell_matches();
            }
            self.pump();
        }
    }

    /// Makes a call that can only block; nothing if this replica has left MPI meanwhile.
    pub(crate) fn block(&mut self, call: Call, args: &[usize]) -> Option<usize> {
        let bell = self.memory.bell();
        self.begin_wait();
        self.blocking.get_or_insert_with(|| Blocking::start(bell)).begin(call, args);
        self.in_block = true;
        loop {
            let blocking = self.blocking.as_ref().expect("it was started above");
            if let Some(answer) = blocking.poll() {
                self.in_block = false;
                self.end_wait();
                return Some(answer);
            }
            if self.replica.has_left() {
                blocking.abandon();
                self.blocking = None;
                return None;
            }
            self.spin(For::Thread);
        }
    }

    /// The same of a call that writes a handle to where its argument `idx` points.  It writes to
    /// memory of its own first: a thread that is left behind in it may come to its end when the
    /// program has something else there.
    pub(crate) fn block_for_handle(
        &mut self,
        call: Call,
        args: &[usize],
        idx: usize,
    ) -> Option<usize> {
        let room = Box::leak(Box::new(unsafe { abi::handle_at(args[idx], 0) }));
        let mut to = args.to_vec();
        to[idx] = std::ptr::from_mut(room) as usize;
        let answer = self.block(call, &to)?;
        unsafe { abi::put_handle(args[idx], 0, abi::handle_at(to[idx], 0)) };
        // The call is over, and nobody else knows of the room.
        drop(unsafe { Box::from_raw(to[idx] as *mut usize) });
        Some(answer)
    }

    /// Looks at what siblings have written, and now and then at the sockets.
    pub(crate) fn pump(&mut self) {
        self.send_out();
        let mut came = false;
        for set_idx in 0..self.siblings.len() {
            came |= self.read_sibling(set_idx);
        }
        let now_ms = clock::coarse_ms();
        if now_ms != self.wait.looked_ms {
            self.wait.looked_ms = now_ms;
            self.end_strays(now_ms);
            came |= self.look_at_sockets();
        }
        if came {
            self.send_out();
        }
    }

    /// A sibling was found to have strayed.
    pub(crate) fn see_stray(&mut self, set: SetId) {
        self.wait.strayed.push((set.idx(), clock::coarse_ms()));
    }

    /// Ends those that strayed and have not ended by themselves: they may compute and never ask.
    fn end_strays(&mut self, now_ms: u64) {
        let due = |it: &mut (usize, u64)| it.1 + STRAY_MS < now_ms;
        for (set_idx, _) in self.wait.strayed.extract_if(.., due).collect::<Vec<_>>() {
            if self.siblings[set_idx].is_some() {
                self.kill_sibling(set_idx);
            }
        }
    }

    /// Looks for the end of a sibling, and for words of the launcher's.
    fn look_at_sockets(&mut self) -> bool {
        let mut fds = self.sockets();
        let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, 0) };
        let is_away = |it: &Option<Sibling>| it.as_ref().is_some_and(Sibling::is_away);
        // What was said before anybody listened is there already, and no socket tells of it.
        let has_launcher_said = fds[3].revents != 0 || self.launcher.has_line();
        if n <= 0 && !has_launcher_said && !self.siblings.iter().any(is_away) {
            return false;
        }
        for (set_idx, fd) in fds.iter().enumerate().take(self.siblings.len()) {
            let Some(sibling) = self.siblings[set_idx].as_mut() else { continue };
            // Of one that is away nothing comes when its host is silent.
            let is_due = fd.revents != 0 || sibling.is_away();
            if is_due && !sibling.is_missed && sibling.has_ended() {
                self.read_sibling(set_idx);
                self.end_sibling(set_idx);
            }
        }
        if has_launcher_said {
            self.read_launcher();
        }
        true
    }

    /// The link to a sibling has ended.
    fn end_sibling(&mut self, set_idx: usize) {
        let Some(sibling) = self.siblings[set_idx].as_mut() else { return };
        // At the end of the program, who hears a farewell first says none itself.
        if sibling.is_away() && !sibling.said_bye && !self.has_said_bye {
            // It may live, and miss this one: who of both goes is for the launcher to say.
            sibling.is_missed = true;
            self.say(Report::Missed(SetId::new(set_idx)));
        } else {
            self.close_sibling(set_idx);
        }
    }

    /// A sibling is gone.
    fn close_sibling(&mut self, set_idx: usize) {
        if self.siblings.get_mut(set_idx).and_then(Option::take).is_some() {
            // Before the others hear from this one that it is gone, and so before one is promoted.
            self.receives.to_retell().iter().for_each(|it| self.tell_siblings(it));
            self.replica.handle(Input::Closed(SetId::new(set_idx)));
        }
    }

    /// Whether others may wait for this process to look at MPI.
    fn has_pending(&self) -> bool {
        let receives = || self.receives.are_under_way();
        let collectives = || self.requests.iter().flatten().any(Request::is_collective);
        let has_some =
            || self.wait.serves || !self.outgoing.is_empty() || receives() || collectives();
        !self.has_no_mpi() && has_some()
    }

    /// Whether MPI must not be called: it has not begun, was left, or another thread is in it.
    pub(crate) fn has_no_mpi(&self) -> bool {
        self.handles.is_none() || self.in_block || self.replica.has_left()
    }

    /// Lets MPI move what is under way.  Its messages move only while their receiver is in one of
    /// its calls, so who waits for a sibling must look at it: the sibling may wait for a process
    /// that waits for this one.
    pub(crate) fn progress(&mut self) {
        if self.has_no_mpi() {
            return;
        }
        let (mut flag, mut status) = (0_i32, RawStatus::default());
        let any = [abi::table().any_source as usize, abi::table().any_tag as usize, self.world];
        let args = [any[0], any[1], any[2], &raw mut flag as usize, status.at()];
        real::call(crate::calls::IPROBE, &args);
    }

    /// Takes what a sibling has written; returns whether that was anything.
    fn read_sibling(&mut self, set_idx: usize) -> bool {
        let Some(link) = &mut self.siblings[set_idx] else { return false };
        let drawn = link.fill();
        if let Ok(false) = drawn {
            return false;
        }
        let set = SetId::new(set_idx);
        let (mut at, mut of_receives) = (0, Vec::new());
        let read = loop {
            match Message::read(&link.received[at..]) {
                Ok(Some((message, length))) => {
                    at += length;
                    match message {
                        Message::Ask if self.wait.answers => {
                            let Wait { place, at_siblings, .. } = self.wait;
                            Message::Here { place, at_siblings }.write(&mut link.unsent);
                        }
                        Message::Ask => {}
                        Message::Here { place, at_siblings } => {
                            self.wait.late[set_idx] = None;
                            self.wait.are_at_siblings[set_idx] = at_siblings;
                            self.wait.places[set_idx] = place;
                            self.wait.waits_ms[set_idx] = clock::coarse_ms();
                        }
                        Message::Bye => {
                            link.said_bye = true;
                            self.replica.handle(Input::Message(set, message));
                        }
                        Message::Contents { call, bytes } => self.contents.keep(set, call, bytes),
                        Message::Matched { .. } | Message::Released { .. } => {
                            of_receives.push(message);
                        }
                        message => self.replica.handle(Input::Message(set, message)),
                    }
                }
                Ok(None) => break drawn.map(|_| ()),
                Err(e) => break Err(e.to_string()),
            }
        };
        if at == link.received.len() {
            link.received.clear();
        } else {
            link.received.drain(..at);
        }
        self.hear_of_receives(set, of_receives);
        let Some(link) = &mut self.siblings[set_idx] else { return true };
        if let Err(why) = read {
            // A sibling that writes nonsense is ended; its end is seen as any other.
            link.received.clear();
            link.is_broken = true;
            let rank = self.told.rank;
            self.note(&format!(
                "rank {rank}: what {set} says cannot be read, and it is ended: {why}"
            ));
            self.kill_sibling(set_idx);
        }
        true
    }

    /// Ends a sibling; its end is seen as any other.
    fn kill_sibling(&mut self, set_idx: usize) {
        if self.siblings[set_idx].as_ref().is_some_and(Sibling::is_away) {
            self.say(Report::End(SetId::new(set_idx)));
        } else {
            unsafe { libc::kill(self.pids[set_idx] as i32, libc::SIGKILL) };
        }
    }

    fn read_launcher(&mut self) {
        self.launcher.fill();
        while let Some(line) = self.launcher.line() {
            match line.as_str() {
                "leave" => self.replica.handle(Input::SetBroken),
                "go" => self.gone_on = true,
                "yield" => self.replica.yield_lead(),
                "hosts" => self.is_between_hosts = true,
                "quit" => threads::let_quit(),
                other if let Some(Ok(set_idx)) = other.strip_prefix("dead ").map(str::parse) => {
                    self.hear_of_death(set_idx);
                }
                other if let Some(rest) = other.strip_prefix("usage ") => self.keep_usage(rest),
                other if let Some(Ok(it)) = other.strip_prefix("signal ").map(str::parse) => {
                    self.hear_signal(it);
                }
                other if let Some(Ok(it)) = other.strip_prefix("handled ").map(str::parse) => {
                    self.keep_signal(it);
                }
                _ => real::fail(&format!("the launcher said `{line}`, which is nothing it says")),
            }
        }
        if self.launcher.ended {
            // Nobody wants what this process does.
            ends::leave(1)
        }
        self.launcher.flush();
    }

    /// The launcher says that a sibling is gone: what it wrote before is read first.
    fn hear_of_death(&mut self, set_idx: usize) {
        if set_idx < self.siblings.len() {
            self.read_sibling(set_idx);
            self.close_sibling(set_idx);
        }
    }

    /// The kernel of another host says what a sibling there does.
    fn keep_usage(&mut self, text: &str) {
        let (set, usage) = text.split_once(' ').unwrap_or_default();
        let sibling = set.parse().ok().and_then(|it: usize| self.siblings.get_mut(it));
        if let (Some(Some(it)), Some(usage)) = (sibling, Usage::from_text(usage)) {
            it.usage = Some(usage);
        }
    }

    /// What a sibling does, as its kernel said; of one on another host as it said last.
    fn usage(&mut self, set_idx: usize) -> Option<Usage> {
        let sibling = self.siblings[set_idx].as_ref().filter(|it| it.is_away());
        let Some(sibling) = sibling else {
            let path = format!("/proc/{}/stat", self.pids[set_idx]);
            let events = self.memory.events_of(set_idx);
            return Usage::read(&std::fs::read_to_string(path).ok()?, events);
        };
        let known = sibling.usage;
        self.say(Report::Usage(SetId::new(set_idx)));
        known
    }

    /// A compare begins: from here on is counted how long the siblings take.
    pub(crate) fn begin_compare(&mut self) {
        self.begin_wait();
        let wait = &mut self.wait;
        // Within one tick of the clock nobody computes for long.
        let at_ms = clock::coarse_ms();
        wait.work_ms = 0;
        if at_ms != wait.compared_at_ms {
            wait.compared_at_ms = at_ms;
            let own_ms = clock::now_ms(libc::CLOCK_PROCESS_CPUTIME_ID);
            wait.work_ms = own_ms.saturating_sub(wait.compared_ms);
            wait.compared_ms = own_ms;
        }
    }

    /// A compare is over; how long it took, in milliseconds.
    pub(crate) fn end_compare(&mut self) -> u64 {
        self.end_wait();
        self.memory.keep_counts(self.counts.words());
        // They are of events before it.
        self.wait.places.fill(None);
        clock::coarse_ms().saturating_sub(self.wait.compared_at_ms)
    }

    /// Whether who leads waits for an event, and so is past the looks that come before it.
    pub(crate) fn is_past_looks(&self) -> bool {
        let place = self.replica.meta().and_then(|it| self.wait.places[it.idx()]);
        place.is_some_and(|it| self.replica.next_event() <= it.event)
    }

    /// Who leads, while all others wait for a look as well: one that looks more often than the
    /// others may wait alone.
    pub(crate) fn late_to_look(&self) -> Vec<SetId> {
        let settlers = self.replica.settlers();
        let now_ms = clock::coarse_ms();
        let waits = |it: &SetId| {
            now_ms < self.wait.waits_ms[it.idx()] + 4 * LATE_EVERY_MS
                && self.wait.places[it.idx()].is_none()
                && !self.replica.has_offered(*it)
        };
        let mut others = self.replica.awaited().into_iter().filter(|it| !settlers.contains(it));
        if others.all(|it| waits(&it)) { settlers } else { Vec::new() }
    }

    /// Ends a sibling that does not come while the others wait for it: one that computes and
    /// computes, or one that sleeps and does not answer.
    pub(crate) fn look_for_late(&mut self, late: fn(&Self) -> Vec<SetId>) {
        let now_ms = clock::coarse_ms();
        if now_ms < self.wait.late_ms + LATE_EVERY_MS {
            return;
        }
        if self.wait.late_ms + LATE_GAP_MS < now_ms || self.memory.is_held() {
            // This process did not run itself; maybe all were stopped.  Or one that prints sleeps
            // until somebody reads that.
            self.wait.late.fill(None);
            self.wait.standstill = None;
        }
        self.wait.late_ms = now_ms;
        if self.is_stuck(now_ms) {
            let rank = self.told.rank;
            self.note(&format!("rank {rank}: its replicas all wait for each other"));
            self.restart(Double::NoMajority);
        }
        self.end_who_strayed();
        // Who waits as well, in its library, answers, and says for what.
        for link in self.siblings.iter_mut().flatten() {
            Message::Ask.write(&mut link.unsent);
        }
        let own_ms = clock::now_ms(libc::CLOCK_PROCESS_CPUTIME_ID);
        let work_ms = self.wait.work_ms.max(own_ms.saturating_sub(self.wait.compared_ms));
        for set in late(self) {
            let Some(usage) = self.usage(set.idx()) else { continue };
            if self.wait.place.is_some_and(|it| it.event < usage.events) {
                // It is beyond what this one waits for.
                continue;
            }
            let Some(since) = self.wait.late[set.idx()] else {
                self.wait.late[set.idx()] = Some(Late { cpu_ms: usage.cpu_ms, at_ms: now_ms });
                continue;
            };
            let cpu_ms = usage.cpu_ms.saturating_sub(since.cpu_ms);
            let computes = LATE_CPU_MS + 2 * work_ms < cpu_ms;
            let sleeps = !usage.runs && cpu_ms < LATE_CPU_MS / 10;
            if computes || (sleeps && since.at_ms + LATE_SLEEP_MS < now_ms) {
                let rank = self.told.rank;
                let what = if computes { "computes without end" } else { "does not go on" };
                self.note(&format!("rank {rank}: {set} {what} and is ended"));
                self.kill_sibling(set.idx());
            }
        }
    }

    /// Whether this replica and its siblings have all waited for each other for long, and nothing
    /// has moved: each has gone another way.
    fn is_stuck(&mut self, now_ms: u64) -> bool {
        let (wait, others) = (&self.wait, self.replica.others());
        let is_waiting = |it: &SetId| {
            now_ms < wait.waits_ms[it.idx()] + 4 * LATE_EVERY_MS && wait.are_at_siblings[it.idx()]
        };
        let is_still = wait.at_siblings
            && !self.has_said_bye
            && !others.is_empty()
            && others.iter().all(is_waiting);
        let found = Standstill {
            places: wait.places.iter().copied().chain([wait.place]).collect(),
            at: (self.replica.n_calls(), self.replica.next_event()),
            since_ms: now_ms,
        };
        let before = self.wait.standstill.take().filter(|_| is_still);
        let is_same = |it: &Standstill| (&it.places, it.at) == (&found.places, found.at);
        let now = before.filter(is_same).unwrap_or(found);
        let is_long = is_still && now.since_ms + STUCK_MS < now_ms;
        self.wait.standstill = Some(now).filter(|_| is_still);
        is_long
    }

    /// Ends a sibling that waits for something that the others do not wait for, nor have got: it
    /// makes other calls, and may wait for ever.
    fn end_who_strayed(&mut self) {
        let places = std::mem::replace(&mut self.wait.places, vec![None; self.told.replicas]);
        let own = self.wait.place;
        let others = self.replica.others();
        if own.is_none() && self.replica.is_alone(&places) {
            let (rank, set) = (self.told.rank, self.told.set);
            self.note(&format!("rank {rank}: set{set} finds itself elsewhere and ends"));
            ends::leave(0);
        }
        if self.replica.is_split(&places, own.as_ref()) {
            self.restart(Double::NoMajority);
        }
        for set in &others {
            let place = places[set.idx()].as_ref();
            if !self.replica.is_elsewhere(*set, place, own.as_ref()) {
                continue;
            }
            let mut rest = others.iter().filter(|it| *it != set).peekable();
            if rest.peek().is_none() {
                // Of two nobody can say which one erred.
                self.restart(Double::NoMajority);
            }
            let agrees = |it: &SetId| {
                self.replica.is_agreed_with(*it) || (own.is_some() && places[it.idx()] == own)
            };
            if rest.any(agrees) {
                let rank = self.told.rank;
                self.note(&format!("rank {rank}: {set} waits for something else and is ended"));
                self.kill_sibling(set.idx());
            }
        }
    }
}

/// For what siblings and, last, this replica wait; how far this one has come; and since when.
struct Standstill {
    places: Vec<Option<Place>>,
    at: (u64, u64),
    since_ms: u64,
}

/// When a sibling was found to be late, and how much it had computed then.
#[derive(Clone, Copy)]
struct Late {
    cpu_ms: u64,
    at_ms: u64,
}
