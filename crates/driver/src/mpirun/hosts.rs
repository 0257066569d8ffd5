//! The hosts of a job other than the launcher's, as the launcher sees them.
//!
//! On each of them one process of `selvedge` speaks for all ([`super::agent`]): it calls at the
//! [`Door`], which only who knows the job's secret comes through, and again for its pulse, a link
//! that says nothing.  Kernels keep the pulse; its end is the host's (see [`super::reach`]).
//!
//! Who misses a sibling on another host says so here, and this is where it is decided which of the
//! two goes ([`selvedge_stmr::job::Job::missed`]): a link can end though both live.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use nix::sys::socket;
use selvedge_stmr::digest::Digest;
use selvedge_stmr::greet::{Card, End, Secret, Side};
use selvedge_stmr::job::Rank;
use selvedge_stmr::limits::{ADDRESSES_MAX, CALLERS_MAX, STRANGERS_TOLD_MAX};
use selvedge_stmr::numbers::{self, Place};
use selvedge_stmr::usage::Usage;
use selvedge_stmr::verdict::SetId;

use super::avoid::Name;
use super::input::Feed;
use super::letter::{self, Kind, Letter};
use super::{Attempt, Channel, Ended, Event, Line, MpirunError, io_error, reach, threads};

/// The variables that processes on other hosts need to call.
pub(super) const JOB: &str = "SELVEDGE_JOB";
pub(super) const SECRET: &str = "SELVEDGE_SECRET";
pub(super) const REACH: &str = "SELVEDGE_REACH";

/// Which host: a number that its agent drew.
pub(super) type HostId = u128;

/// Where other hosts call.
pub(super) struct Door {
    secret: Secret,
    job: String,
    addresses: Vec<SocketAddr>,
    listener: TcpListener,
}

impl Door {
    /// Opens it; whoever comes through gets `library`.
    pub(super) fn open(
        library: Vec<u8>,
        size: [usize; 2],
        sender: Sender<Event>,
    ) -> Result<Self, MpirunError> {
        let secret = Secret::new(reach::draw().map_err(io_error("read /dev/urandom"))?);
        let job = reach::draw().map_err(io_error("read /dev/urandom"))?;
        let failed = "listen for replicas on other hosts";
        let listener = reach::listen().map_err(io_error(failed))?;
        let port = listener.local_addr().map_err(io_error(failed))?.port();
        let addresses = reach::addresses();
        let addresses = addresses.into_iter().map(|it| SocketAddr::new(it, port)).collect();
        let heard = listener.try_clone().map_err(io_error(failed))?;
        let events = sender.clone();
        let porter = Arc::new(Porter { secret, library, size, sender, n: AtomicUsize::new(0) });
        threads::begin(&events, move || porter.stand_at(&heard));
        Ok(Self { secret, job: format!("{:016x}", u64::from_le_bytes(job)), addresses, listener })
    }

    /// What processes on other hosts are told.
    pub(super) fn variables(&self) -> [(&'static str, OsString); 3] {
        [
            (JOB, self.job.clone().into()),
            (SECRET, self.secret.to_text().into()),
            (REACH, reach::to_text(&self.addresses).into()),
        ]
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Who waits at it for callers hears of it.
        let _ = socket::shutdown(self.listener.as_raw_fd(), socket::Shutdown::Both);
    }
}

/// Lets in who may come in.
struct Porter {
    secret: Secret,
    library: Vec<u8>,
    /// Ranks and replicas.
    size: [usize; 2],
    sender: Sender<Event>,
    /// Callers that have not said who they are.
    n: AtomicUsize,
}

impl Porter {
    fn stand_at(self: Arc<Self>, listener: &TcpListener) {
        while let Ok((stream, from)) = listener.accept() {
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            if CALLERS_MAX <= self.n.fetch_add(1, Ordering::SeqCst) {
                self.n.fetch_sub(1, Ordering::SeqCst);
                self.refuse(from, "too many call at once");
                continue;
            }
            let this = self.clone();
            threads::begin(&self.sender, move || this.answer(stream, from));
        }
    }

    fn refuse(&self, from: SocketAddr, why: impl std::fmt::Display) {
        let _ = self.sender.send(Event::Stranger(format!("a caller at {from} is refused: {why}")));
    }

    fn answer(&self, stream: TcpStream, from: SocketAddr) {
        let digest = Digest(0);
        let own = Card { from: End::Launcher, to: End::Agent, pid: std::process::id(), digest };
        let met = reach::greet(&stream, Side::Callee, self.secret, own);
        self.n.fetch_sub(1, Ordering::SeqCst);
        match met {
            Ok(card) if card.from == End::Agent => self.hear_host(card.digest.0, stream, from),
            Ok(card) if card.from == End::Pulse => {
                let id = card.digest.0;
                let Ok(copy) = stream.try_clone() else { return };
                let _ = self.sender.send(Event::Pulse(id, copy));
                // Nothing is ever said on it.
                let ended = letter::read_all(&stream, |_| false);
                let _ = self.sender.send(Event::HostGone(id, ended.err()));
            }
            Ok(card) => self.refuse(from, format!("{:?} does not speak for a host", card.from)),
            Err(e) => self.refuse(from, e),
        }
    }

    fn hear_host(&self, id: HostId, stream: TcpStream, from: SocketAddr) {
        let here = stream.local_addr().map(|it| it.ip().to_canonical());
        let (Ok(here), Ok(copy), Ok(kept)) = (here, stream.try_clone(), stream.try_clone()) else {
            return;
        };
        let outbox = letter::outbox(copy, &self.sender);
        let _ = outbox.send(Letter::plain(Kind::Library, &self.library[..]));
        // Nobody but the host's entry has it: the host hears that the job is over when that goes.
        let host = Host { outbox, streams: vec![kept], here, addresses: vec![from.ip()] };
        let _ = self.sender.send(Event::HostCalled(id, host));
        let ended = letter::read_all(&stream, |letter| {
            let [ranks, replicas] = self.size;
            let is_ours = (letter.rank.0 as usize) < ranks && letter.set.idx() < replicas;
            is_ours && self.sender.send(event_of(id, letter)).is_ok()
        });
        let _ = self.sender.send(Event::HostGone(id, ended.err()));
    }
}

/// What is to be done about a letter.
fn event_of(id: HostId, letter: Letter) -> Event {
    let (rank, set) = (letter.rank, letter.set);
    match letter.kind {
        Kind::Said => Event::Said(rank, set, letter.text()),
        Kind::Gone => Event::Gone(rank, set),
        Kind::Out => Event::Printed(Channel::Out, rank, set, letter.bytes),
        Kind::Err => Event::Printed(Channel::Err, rank, set, letter.bytes),
        Kind::OutEnd => Event::Closed(Channel::Out, rank, set),
        Kind::ErrEnd => Event::Closed(Channel::Err, rank, set),
        Kind::Called
        | Kind::Addresses
        | Kind::Name
        | Kind::Broken
        | Kind::Usage
        | Kind::Handles
        | Kind::Library
        | Kind::Tell
        | Kind::Input
        | Kind::InputEnd
        | Kind::Taken
        | Kind::Locals
        | Kind::Held
        | Kind::End => Event::HostSaid(id, letter),
    }
}

/// A host that has called.
pub(super) struct Host {
    outbox: Sender<Letter>,
    /// The one that letters go through, and the pulse.
    streams: Vec<TcpStream>,
    /// Where it reached this host.
    here: IpAddr,
    /// Where it is reached: first where it called from.
    addresses: Vec<IpAddr>,
}

/// What waits for hosts.
#[derive(Default)]
pub(super) struct Awaited {
    /// Sets that have lost a process, and the hosts that do not know it yet.
    broken: Vec<(SetId, BTreeSet<HostId>)>,
    /// A signal, and the hosts that have not said whether a process of theirs handles it.
    signal: Option<(i32, BTreeSet<HostId>)>,
    /// Processes know which of their host's they are.
    has_locals: bool,
    strangers: usize,
}

impl Attempt<'_> {
    /// A host is there.
    pub(super) fn host_called(&mut self, id: HostId, host: Host) {
        self.hosts.insert(id, host);
        self.tell(None, "hosts");
    }

    /// Once all processes have called, tells them which of their host's processes each is: where
    /// its replica in the first set runs, so that all replicas of a process are told the same.
    pub(super) fn tell_locals(&mut self) -> Result<(), MpirunError> {
        let is_awaited = self.door.is_some() && !self.awaited.has_locals;
        if !is_awaited || self.processes.iter().flatten().any(|it| it.pid == 0) {
            return Ok(());
        }
        self.awaited.has_locals = true;
        let hosts: Vec<_> = self.processes.iter().map(|it| it[0].host).collect();
        let line = |it: &Place| it.to_text() + "\n";
        let text: String = numbers::places(&hosts).iter().map(line).collect();
        for id in self.hosts.keys() {
            self.post(*id, Letter::plain(Kind::Locals, &*text));
        }
        self.folder.tell_locals(&text)
    }

    /// The pulse of a host is there.
    pub(super) fn keep_pulse(&mut self, id: HostId, stream: TcpStream) {
        if let Some(host) = self.hosts.get_mut(&id) {
            host.streams.push(stream);
        }
    }

    /// Somebody called who is none of this job's.
    pub(super) fn note_stranger(&mut self, what: String) {
        self.awaited.strangers += 1;
        match self.awaited.strangers {
            1..=STRANGERS_TOLD_MAX => self.notes.push(what),
            _ if self.awaited.strangers == STRANGERS_TOLD_MAX + 1 => {
                self.notes.push("more callers are refused and not told of".to_owned());
            }
            _ => {}
        }
    }

    /// A host says nothing more: all that runs on it is lost.
    pub(super) fn lose_host(&mut self, id: HostId, why: Option<io::Error>) -> Option<Ended> {
        let host = self.hosts.remove(&id)?;
        for stream in &host.streams {
            // What waits at the other one ends, too.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for set in SetId::all(self.options.replicas) {
            self.host_knows(id, set);
        }
        let mut ended = self.host_handles(id, false);
        let lost: Vec<(Rank, SetId)> = self
            .all()
            .filter(|it| {
                let process = self.process_of(it.0, it.1);
                process.host == Some(id) && process.link.is_some() && !process.ended
            })
            .collect();
        if let (false, Some(at)) = (lost.is_empty(), host.addresses.first()) {
            let why = why.map_or("its links have ended".to_owned(), |it| it.to_string());
            self.notes.push(format!("the host at {at} is lost: {why}"));
        }
        for (rank, set) in lost {
            ended = ended.or(self.part(rank, set));
        }
        ended
    }

    /// Ends a process if it lives, and tells its siblings that it is gone.
    pub(super) fn part(&mut self, rank: Rank, set: SetId) -> Option<Ended> {
        let mut ended = None;
        let process = self.process(rank, set);
        if !process.ended && process.link.take().is_some() {
            process.is_parted = true;
            process.closed = [true; 2];
            self.end_process(rank, set);
            self.lose(rank, set);
            ended = self.end_outputs(rank, set, true);
        }
        self.tell_cluster(rank, &format!("dead {}", set.idx()));
        ended
    }

    pub(super) fn end_process(&self, rank: Rank, set: SetId) {
        let process = self.process_of(rank, set);
        match (process.host, process.known) {
            (None, Some(known)) => known.kill(),
            (None, None) => {}
            (Some(id), _) => self.post(id, Letter::of(Kind::End, rank, set, [])),
        }
    }

    pub(super) fn post(&self, id: HostId, letter: Letter) {
        if let Some(host) = self.hosts.get(&id) {
            // Whoever is gone is told about by the end of its link.
            let _ = host.outbox.send(letter);
        }
    }

    /// Tells those of a set to leave MPI, once all hosts can see that it has lost a process.
    pub(super) fn leave(&mut self, set: SetId) {
        let awaited: BTreeSet<HostId> = self.hosts.keys().copied().collect();
        for id in &awaited {
            self.post(*id, Letter::of(Kind::Broken, Rank(0), set, []));
        }
        self.awaited.broken.push((set, awaited));
        self.host_knows(0, set);
    }

    fn host_knows(&mut self, id: HostId, set: SetId) {
        let Some(idx) = self.awaited.broken.iter().position(|it| it.0 == set) else { return };
        self.awaited.broken[idx].1.remove(&id);
        if self.awaited.broken[idx].1.is_empty() {
            self.awaited.broken.remove(idx);
            self.tell(Some(set), "leave");
        }
    }

    /// A process listens; once all of its cluster do, they are told where.
    pub(super) fn hear_port(&mut self, rank: Rank, set: SetId, port: u16) {
        self.process(rank, set).port = port;
        let sets = || SetId::all(self.options.replicas);
        if sets().any(|it| self.process_of(rank, it).port == 0) {
            return;
        }
        let mut lines = Vec::new();
        for own in sets() {
            for other in sets().filter(|it| *it != own) {
                lines
                    .push((own, format!("sibling {} {}", other.idx(), self.way(rank, own, other))));
            }
        }
        for (own, line) in lines {
            self.tell_process(rank, own, &line);
        }
    }

    /// How one replica of a process reaches another.
    fn way(&self, rank: Rank, own: SetId, other: SetId) -> String {
        let [own, other] = [own, other].map(|it| self.process_of(rank, it));
        if own.host == other.host {
            return "here".to_owned();
        }
        let host = |id: Option<HostId>| id.and_then(|it| self.hosts.get(&it));
        let mut found: Vec<IpAddr> = match (host(own.host), host(other.host)) {
            (_, Some(host)) => host.addresses.clone(),
            (Some(host), None) => [vec![host.here], reach::addresses()].concat(),
            (None, None) => Vec::new(),
        };
        let mut known = BTreeSet::new();
        found.retain(|it| known.insert(*it));
        found.truncate(ADDRESSES_MAX);
        let ends: Vec<_> = found.into_iter().map(|it| SocketAddr::new(it, other.port)).collect();
        reach::to_text(&ends)
    }

    /// A replica's link to a sibling has ended.
    pub(super) fn hear_missed(&mut self, rank: Rank, by: SetId, whom: SetId) {
        let process = self.process_of(rank, whom);
        if process.link.is_some() && !process.ended {
            self.notes.push(format!("{rank}: the link of {by} to {whom} has ended"));
        }
        self.job.missed(rank, by, whom);
    }

    /// What the kernel says of a process is to be told to its sibling.
    pub(super) fn ask_usage(&mut self, rank: Rank, asker: SetId, of: SetId) {
        let process = self.process_of(rank, of);
        let replicas = self.options.replicas;
        match process.host {
            Some(id) => {
                let words = [asker.idx() as u8, replicas as u8];
                self.post(id, Letter::of(Kind::Usage, rank, of, words));
            }
            None => {
                let number = rank.0 as usize * replicas + of.idx();
                let usage = self.folder.usage(number, process.pid);
                self.tell_usage(rank, asker, of, usage);
            }
        }
    }

    fn tell_usage(&mut self, rank: Rank, asker: SetId, of: SetId, usage: Option<Usage>) {
        if let Some(usage) = usage {
            let line = format!("usage {} {}", of.idx(), usage.to_text());
            self.tell_process(rank, asker, &line);
        }
    }

    /// A signal came: it is passed on if a process does anything about it, and ends the program
    /// otherwise.
    pub(super) fn hear_signal(&mut self, signal: i32, here: bool) -> Option<Ended> {
        let awaited: BTreeSet<HostId> = self.hosts.keys().copied().collect();
        if !here && !awaited.is_empty() && self.awaited.signal.is_none() {
            for id in &awaited {
                self.post(*id, Letter::plain(Kind::Handles, [signal as u8]));
            }
            self.awaited.signal = Some((signal, awaited));
            return None;
        }
        self.awaited.signal = None;
        if !here || !self.signals.sent(signal) {
            return Some(Ended::With(128 + signal));
        }
        self.pass_on(None, signal as u64);
        None
    }

    fn host_handles(&mut self, id: HostId, handles: bool) -> Option<Ended> {
        let (signal, awaited) = self.awaited.signal.as_mut()?;
        awaited.remove(&id);
        let signal = *signal;
        (handles || awaited.is_empty()).then(|| self.hear_signal(signal, handles)).flatten()
    }

    pub(super) fn hear_host(&mut self, id: HostId, letter: Letter) -> Option<Ended> {
        match letter.kind {
            Kind::Called => {
                let (rank, set) = (letter.rank, letter.set);
                let outbox = self.hosts.get(&id)?.outbox.clone();
                let pid = letter.text().parse().unwrap_or(0);
                self.call_in(rank, set, pid, Line::There(outbox, rank, set), Some(id));
            }
            Kind::Addresses => {
                let text = letter.text();
                let told = text.split(' ').filter_map(|it| it.parse::<IpAddr>().ok());
                if let Some(host) = self.hosts.get_mut(&id) {
                    host.addresses.extend(told.take(ADDRESSES_MAX));
                }
            }
            Kind::Name => {
                let addresses = self.hosts.get(&id).map(|it| it.addresses.clone());
                let name = Name::new(&letter.text(), addresses.unwrap_or_default());
                self.known.names.insert(id, name);
            }
            Kind::Broken => self.host_knows(id, letter.set),
            Kind::Usage => {
                let text = letter.text();
                let (asker, usage) = text.split_once(' ').unwrap_or_default();
                let asker = asker.parse().unwrap_or(0);
                if asker < self.options.replicas {
                    let usage = Usage::from_text(usage);
                    self.tell_usage(letter.rank, SetId::new(asker), letter.set, usage);
                }
            }
            Kind::Handles => return self.host_handles(id, letter.bytes == [1]),
            Kind::Taken => self.input.taken(letter.set, letter.text().parse().ok()),
            Kind::InputEnd => self.input.taken(letter.set, None),
            // Others are the launcher's to write, or were heard before they came here.
            other => self.notes.push(format!("a host wrote a letter of the launcher's: {other:?}")),
        }
        None
    }

    /// What is read from standard input goes to a replica of the first process, wherever it is.
    pub(super) fn feed(&mut self, rank: Rank, set: SetId, host: Option<HostId>) {
        if rank != Rank(0) {
            return;
        }
        let Some(feed) = self.feeds[set.idx()].take() else { return };
        match host.and_then(|it| self.hosts.get(&it)) {
            None => {
                let feed = Arc::new(feed);
                let taken = feed.clone();
                let next = move || feed.next();
                self.folder.write_input(set, &self.sender, next, move |it| taken.taken(it));
            }
            Some(host) => send_input(feed, host.outbox.clone(), set, &self.sender),
        }
    }

    fn all(&self) -> impl Iterator<Item = (Rank, SetId)> + use<> {
        let replicas = self.options.replicas;
        let ranks = 0..self.options.ranks as u32;
        ranks.flat_map(move |rank| SetId::all(replicas).map(move |set| (Rank(rank), set)))
    }
}

/// The host says what was taken of it.
fn send_input(feed: Feed, outbox: Sender<Letter>, set: SetId, sender: &Sender<Event>) {
    threads::begin(sender, move || {
        while let Some(chunk) = feed.next() {
            if outbox.send(Letter::of(Kind::Input, Rank(0), set, &*chunk)).is_err() {
                return feed.taken(None);
            }
        }
        let _ = outbox.send(Letter::of(Kind::InputEnd, Rank(0), set, []));
    });
}
