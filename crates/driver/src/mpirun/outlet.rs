//! Where what the program prints leaves this process.
//!
//! ```text
//! a reader of each replica's pipe ── Room ──► the thread that decides ── Outlet ──► a thread that
//!                                                                                   writes
//! ```
//! Who reads our output slowly, or not at all, holds up the writer; once much waits for it, bytes
//! that were read of replicas are not let go, so that the readers stop, and the program stalls as
//! it does plain.  Who decides is never held up: a death is acted on meanwhile.  A replica that is
//! stalled so is not late (see [`HELD_AT`]).
//!
//! [`HELD_AT`]: selvedge_stmr::job::HELD_AT

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::SetId;

use super::hosts::HostId;
use super::letter::{Kind, Letter};
use super::{Attempt, Channel, Event, LINE_WAIT, signals, threads};

/// So many bytes wait to be written before the program is held up.
const WAITING_MAX: usize = 4 << 20;

/// So many bytes of what the replicas of a host print are on their way to who decides.
const HELD_MAX: usize = 4 << 20;

/// What a mutex holds, whoever panicked with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|it| it.into_inner())
}

/// What waits to be written; one for all starts of the program.
#[derive(Clone, Default)]
pub(super) struct Outlet(Arc<(Mutex<Waiting>, Condvar)>);

#[derive(Default)]
struct Waiting {
    has_begun: bool,
    rows: VecDeque<(Channel, Vec<u8>)>,
    /// Bytes of these, and of what is being written.
    n: usize,
}

impl Outlet {
    /// Begins to write, unless that has begun.
    pub(super) fn begin(&self, sender: &Sender<Event>) {
        if !std::mem::replace(&mut lock(&self.0.0).has_begun, true) {
            let this = self.clone();
            threads::begin(sender, move || this.write_all());
        }
    }

    pub(super) fn put(&self, channel: Channel, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut waiting = lock(&self.0.0);
        waiting.n += bytes.len();
        waiting.rows.push_back((channel, bytes.to_vec()));
        self.0.1.notify_all();
    }

    fn is_full(&self) -> bool {
        WAITING_MAX <= lock(&self.0.0).n
    }

    /// Whether all is written, or will be within this time.
    fn is_empty_within(&self, time: Duration) -> bool {
        let waiting = lock(&self.0.0);
        let waits = |it: &mut Waiting| 0 < it.n;
        let result = self.0.1.wait_timeout_while(waiting, time, waits);
        result.unwrap_or_else(|it| it.into_inner()).0.n == 0
    }

    fn write_all(&self) -> ! {
        loop {
            let waiting = lock(&self.0.0);
            let none = |it: &mut Waiting| it.rows.is_empty();
            let waiting = self.0.1.wait_while(waiting, none);
            let mut waiting = waiting.unwrap_or_else(|it| it.into_inner());
            let row = waiting.rows.pop_front();
            drop(waiting);
            let Some((channel, bytes)) = row else { continue };
            write(channel, &bytes);
            lock(&self.0.0).n -= bytes.len();
            self.0.1.notify_all();
        }
    }
}

fn write(channel: Channel, bytes: &[u8]) {
    // Whoever reads our output may have gone; the program runs on for its files.
    let _ = match channel {
        Channel::Out => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Channel::Err => io::stderr().write_all(bytes),
    };
}

/// What readers of replicas' output have handed on, and who decides has not let go.
#[derive(Clone, Default)]
pub(super) struct Room(Arc<(Mutex<Held>, Condvar)>);

#[derive(Default)]
struct Held {
    n: usize,
    /// Nobody decides any more.
    is_open: bool,
}

impl Room {
    /// A reader hands on so many bytes, once there is room.
    pub(super) fn enter(&self, n: usize) {
        let is_full = |it: &mut Held| HELD_MAX <= it.n && !it.is_open;
        let held = self.0.1.wait_while(lock(&self.0.0), is_full);
        held.unwrap_or_else(|it| it.into_inner()).n += n;
    }

    /// So many bytes are let go.
    pub(super) fn leave(&self, n: usize) {
        let mut held = lock(&self.0.0);
        held.n = held.n.saturating_sub(n);
        self.0.1.notify_all();
    }

    /// No reader is held up any more.
    pub(super) fn open(&self) {
        lock(&self.0.0).is_open = true;
        self.0.1.notify_all();
    }
}

/// What one start of the program has of both.
pub(super) struct Out {
    pub(super) outlet: Outlet,
    pub(super) room: Room,
    /// Bytes that were read and are not let go, by the host that they were read on.
    owed: BTreeMap<Option<HostId>, usize>,
    /// Replicas know that they may be held up.
    is_told: bool,
}

impl Out {
    pub(super) fn new(outlet: &Outlet) -> Self {
        let outlet = outlet.clone();
        Self { outlet, room: Room::default(), owed: BTreeMap::new(), is_told: false }
    }

    /// Whether who reads our output holds the program up.
    pub(super) fn is_full(&self) -> bool {
        self.outlet.is_full()
    }
}

impl Attempt<'_> {
    /// The next event, if one comes in this time.
    pub(super) fn next_event(&mut self, wait: Duration) -> Result<Event, RecvTimeoutError> {
        self.let_go();
        let event = self.events.recv_timeout(wait)?;
        if let Event::Printed(_, rank, set, bytes) = &event {
            let host = self.process_of(*rank, *set).host;
            *self.out.owed.entry(host).or_default() += bytes.len();
        }
        Ok(event)
    }

    /// Lets readers go on, if what they have read could be printed.
    fn let_go(&mut self) {
        let is_full = self.out.is_full();
        if self.out.is_told != is_full {
            self.out.is_told = is_full;
            self.folder.tell_held(is_full);
            for id in self.hosts.keys() {
                let letter = Letter::plain(Kind::Held, [u8::from(is_full)]);
                self.post(*id, letter);
            }
        }
        if is_full {
            return;
        }
        for (host, n) in std::mem::take(&mut self.out.owed) {
            match host {
                None => self.out.room.leave(n),
                Some(id) => {
                    self.post(id, Letter::of(Kind::Taken, Rank(0), SetId::new(0), n.to_string()));
                }
            }
        }
    }

    /// Waits until all that was let out is written, or somebody does not want to wait for that: the
    /// signal by which he said so.
    pub(super) fn write_out(&mut self) -> Option<i32> {
        while !self.out.outlet.is_empty_within(LINE_WAIT) {
            while let Ok(event) = self.events.try_recv() {
                if let Event::Signalled(signal) = event
                    && signals::is_impatient(signal)
                {
                    return Some(signal);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_is_held_up_until_what_was_read_is_let_go() {
        let room = Room::default();
        room.enter(HELD_MAX);
        let (sender, entered) = std::sync::mpsc::channel();
        let reader = room.clone();
        let thread = std::thread::spawn(move || {
            reader.enter(1);
            let _ = sender.send(());
        });
        assert!(entered.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room");
        room.leave(1);
        thread.join().unwrap();
        assert!(entered.recv().is_ok());
        room.open();
        room.enter(1);
    }

    #[test]
    fn what_nobody_writes_waits_and_is_full_in_the_end() {
        let outlet = Outlet::default();
        assert!(outlet.is_empty_within(Duration::ZERO));
        outlet.put(Channel::Out, &vec![0; WAITING_MAX - 1]);
        assert!(!outlet.is_full());
        outlet.put(Channel::Err, b"x");
        assert!(outlet.is_full() && !outlet.is_empty_within(Duration::ZERO));
    }
}
