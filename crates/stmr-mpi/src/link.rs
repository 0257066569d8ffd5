//! Links to siblings and to the launcher, which neither block nor lose a byte.
//!
//! What siblings on one host tell each other goes through memory that they share; a socket between
//! them says no word after the first but to wake who sleeps at it, and its end is the death of who
//! held it.  Between hosts all goes over a link of the network, whose end the launcher is asked
//! about: a link can end while both live.

use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};

use selvedge_stmr::digest::Digest;
use selvedge_stmr::greet::End;
use selvedge_stmr::pipe::{PipeReader, PipeWriter};
use selvedge_stmr::report::Report;
use selvedge_stmr::usage::Usage;

use crate::ends;
use crate::memory::{For, Memory};
use crate::network::{Gate, Met, Network};
use crate::real;
use crate::told::Told;

/// How long siblings have to start, in milliseconds.
const START_MAX_MS: u32 = 60_000;

/// One end of a stream with what waits to be written and what waits to be understood.
pub(crate) struct Link<S = UnixStream> {
    stream: S,
    pub(crate) unsent: Vec<u8>,
    pub(crate) received: Vec<u8>,
    /// The other end is gone.
    pub(crate) ended: bool,
}

impl Link {
    pub(crate) fn new(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::over(stream))
    }

    /// Whether a whole line was received and not read yet.
    pub(crate) fn has_line(&self) -> bool {
        self.received.contains(&b'\n')
    }

    /// The next line of text, for the launcher's words.
    pub(crate) fn line(&mut self) -> Option<String> {
        let end = self.received.iter().position(|it| *it == b'\n')?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}

impl<S: Read + AsRawFd> Link<S> {
    /// Over a stream that does not block.
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, unsent: Vec::new(), received: Vec::new(), ended: false }
    }

    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) fn poll_for(&self) -> libc::pollfd {
        let mut events = libc::POLLIN;
        if !self.unsent.is_empty() {
            events |= libc::POLLOUT;
        }
        let fd = if self.ended { -1 } else { self.stream.as_raw_fd() };
        libc::pollfd { fd, events, revents: 0 }
    }

    /// Writes what it can.
    pub(crate) fn flush(&mut self) {
        let mut written = 0;
        while written < self.unsent.len() && !self.ended {
            match self.send(&self.unsent[written..]) {
                Ok(0) => self.ended = true,
                Ok(n) => written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // What the other end had sent before it died is still to be read.
                Err(_) => {
                    self.unsent.clear();
                    return;
                }
            }
        }
        self.unsent.drain(..written);
    }

    /// Writes some; a program that is not Rust's would get SIGPIPE of an ordinary write.
    fn send(&self, bytes: &[u8]) -> std::io::Result<usize> {
        let (fd, at) = (self.stream.as_raw_fd(), bytes.as_ptr().cast());
        let sent = unsafe { libc::send(fd, at, bytes.len(), libc::MSG_NOSIGNAL) };
        usize::try_from(sent).map_err(|_| std::io::Error::last_os_error())
    }

    /// Reads what is there.
    pub(crate) fn fill(&mut self) {
        let mut chunk = [0; 1 << 14];
        while !self.ended {
            match self.stream.read(&mut chunk) {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    self.received.extend(&chunk[..n]);
                    if n < chunk.len() {
                        return;
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.ended = true,
            }
        }
    }
}

/// The link to another replica of this process.
pub(crate) struct Sibling {
    way: Way,
    pub(crate) unsent: Vec<u8>,
    pub(crate) received: Vec<u8>,
    /// What it says cannot be read; it is not listened to any more.
    pub(crate) is_broken: bool,
    /// It has said that its end is no death.
    pub(crate) said_bye: bool,
    /// The launcher was asked what the end of its link means.
    pub(crate) is_missed: bool,
    /// What the kernel of its host said last of it, if that is another.
    pub(crate) usage: Option<Usage>,
}

/// How a sibling is reached.
enum Way {
    /// It is on this host.
    Memory { socket: Link, memory: Memory, sets: [usize; 2], ends: (PipeWriter, PipeReader) },
    /// It is on another.
    Network(Network),
}

impl Sibling {
    fn new(way: Way) -> Self {
        Self {
            way,
            unsent: Vec::new(),
            received: Vec::new(),
            is_broken: false,
            said_bye: false,
            is_missed: false,
            usage: None,
        }
    }

    /// One on this host: its set is the second.
    fn here(socket: Link, memory: Memory, sets: [usize; 2]) -> Self {
        let ends = (PipeWriter::default(), PipeReader::default());
        Self::new(Way::Memory { socket, memory, sets, ends })
    }

    /// Whether it is on another host.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.way, Way::Network(_))
    }

    /// What to look for, to see it end, and to hear it if it is away.
    pub(crate) fn poll_for(&self) -> libc::pollfd {
        match &self.way {
            Way::Memory { socket, .. } => socket.poll_for(),
            Way::Network(it) => it.poll_for(),
        }
    }

    /// Whether it has ended; all that it wrote before can be read then.
    pub(crate) fn has_ended(&mut self) -> bool {
        match &mut self.way {
            Way::Memory { socket, .. } => {
                socket.fill();
                // What came woke this process, and says nothing.
                socket.received.clear();
                socket.ended
            }
            Way::Network(it) => it.has_ended(),
        }
    }

    /// Whether something is still here that it was told.
    pub(crate) fn is_unsent(&self) -> bool {
        let on_its_way = match &self.way {
            Way::Memory { .. } => false,
            Way::Network(it) => it.is_unsent(),
        };
        !self.unsent.is_empty() || on_its_way
    }

    /// Writes what it can, and wakes the sibling if it waits for that.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if self.is_away() || !self.unsent.is_empty() {
            self.write_unsent();
        }
    }

    fn write_unsent(&mut self) {
        match &mut self.way {
            Way::Memory { socket, memory, sets: [own, set], ends } => {
                let written = ends.0.write(memory.pipe(*own, *set), &self.unsent);
                if written == self.unsent.len() {
                    self.unsent.clear();
                } else {
                    self.unsent.drain(..written);
                }
                if 0 < written {
                    wake(*memory, *set, socket);
                }
            }
            Way::Network(it) => it.flush(&mut self.unsent),
        }
    }

    /// Whether it may have written something.
    pub(crate) fn may_have_more(&self) -> bool {
        match &self.way {
            Way::Memory { memory, sets: [own, set], ends, .. } => {
                ends.1.has_more(memory.pipe(*set, *own))
            }
            // Nobody knows before the kernel is asked.
            Way::Network(_) => true,
        }
    }

    /// Reads what is there; returns whether that was anything.
    pub(crate) fn fill(&mut self) -> Result<bool, String> {
        if self.is_broken {
            return Ok(false);
        }
        match &mut self.way {
            Way::Memory { socket, memory, sets: [own, set], ends } => {
                let pipe = memory.pipe(*set, *own);
                let drawn = ends.1.read(pipe, &mut self.received).map_err(|it| it.to_string())?;
                if drawn.made_room {
                    wake(*memory, *set, socket);
                }
                Ok(0 < drawn.bytes)
            }
            Way::Network(it) => it.fill(&mut self.received).map_err(|it| it.to_string()),
        }
    }
}

/// Wakes a sibling on this host, wherever it sleeps.
fn wake(memory: Memory, set: usize, socket: &Link) {
    if memory.bell_of_set(set).ring(For::Siblings) {
        // One whose socket is full is woken by what is in it.
        let _ = socket.send(b"!");
    }
}

/// What has to be known to link a process with the replicas of its cluster.
struct Meeting<'a> {
    told: &'a Told,
    memory: Memory,
    program: Digest,
    links: Vec<Option<Sibling>>,
    pids: Vec<u32>,
}

/// Links this process with the replicas of its cluster; with them come their process numbers.
pub(crate) fn connect_siblings(
    told: &Told,
    memory: Memory,
    launcher: &mut Link,
) -> (Vec<Option<Sibling>>, Vec<u32>) {
    let links = (0..told.replicas).map(|_| None).collect();
    let pids = vec![std::process::id(); told.replicas];
    if told.replicas == 1 {
        return (links, pids);
    }
    let program = Digest::of(&std::fs::read("/proc/self/exe").unwrap_or_default());
    let mut meeting = Meeting { told, memory, program, links, pids };
    meeting.meet(launcher);
    (meeting.links, meeting.pids)
}

impl Meeting<'_> {
    fn failed(&self, e: &std::io::Error) -> ! {
        real::fail(&format!("rank {} cannot reach its replicas: {e}", self.told.rank))
    }

    fn path(&self, set: usize) -> std::path::PathBuf {
        self.told.folder.join(format!("c{}.{set}", self.told.rank))
    }

    /// Calls those before this one, and is called by those behind it.
    fn meet(&mut self, launcher: &mut Link) {
        let told = self.told;
        let own = self.path(told.set);
        let listener = UnixListener::bind(&own).unwrap_or_else(|e| self.failed(&e));
        if listener.set_nonblocking(true).is_err() {
            real::fail("a socket cannot be made non-blocking");
        }
        let mut gate = told.secret.map(|secret| {
            Gate::open(told, secret, self.program).unwrap_or_else(|e| self.failed(&e))
        });
        let ways = match &gate {
            Some(gate) => ask_ways(told, gate.port(), launcher),
            None => vec![Vec::new(); told.replicas],
        };
        if ways.iter().all(Vec::is_empty) {
            gate = None;
        }
        let mut waited_ms = 0;
        while self.links.iter().flatten().count() + 1 < told.replicas {
            let lower = (0..told.set).find(|it| self.links[*it].is_none());
            let met = match (&mut gate, lower) {
                (Some(gate), Some(set)) if !ways[set].is_empty() => {
                    gate.call(told.rank, set, &ways[set])
                }
                (Some(gate), None) => gate.answer(),
                (_, Some(_)) | (None, None) => None,
            };
            let stream = match lower {
                _ if met.is_some() => None,
                Some(set) if ways[set].is_empty() => UnixStream::connect(self.path(set)).ok(),
                Some(_) => None,
                None => listener.accept().ok().map(|it| it.0),
            };
            match (met, stream) {
                (Some(met), _) => self.welcome(met),
                (None, Some(stream)) => self.welcome_here(stream),
                (None, None) => {
                    if START_MAX_MS < waited_ms {
                        real::fail(&format!("rank {}: a replica did not start", told.rank));
                    }
                    waited_ms += 2;
                    unsafe { libc::usleep(2000) };
                }
            }
            for what in gate.as_mut().map(Gate::notes).unwrap_or_default() {
                let words = format!("rank {}: set{}: {what}", told.rank, told.set);
                launcher.unsent.extend(format!("{}\n", Report::Note(&words)).as_bytes());
                launcher.flush();
            }
        }
    }

    /// A sibling on this host is there.
    fn welcome_here(&mut self, mut stream: UnixStream) {
        let told = self.told;
        let [set, pid] = self.hello(&mut stream).unwrap_or_else(|e| self.failed(&e));
        if told.replicas <= set as usize || set as usize == told.set {
            real::fail(&format!("rank {}: a stranger called as replica {set}", told.rank));
        }
        self.pids[set as usize] = pid;
        let socket = Link::new(stream).unwrap_or_else(|e| self.failed(&e));
        let sibling = Sibling::here(socket, self.memory, [told.set, set as usize]);
        self.links[set as usize] = Some(sibling);
    }

    /// One on another is, and has proven who it is.
    fn welcome(&mut self, met: Met) {
        let End::Replica(rank, set) = met.card.from else { return };
        let set = usize::from(set);
        if rank as usize != self.told.rank || self.told.replicas <= set || set == self.told.set {
            return;
        }
        self.check_program(set, met.card.digest.0);
        self.pids[set] = met.card.pid;
        self.links[set] = Some(Sibling::new(Way::Network(met.network)));
    }

    /// Tells who this is; returns the set and the process number of who is at the other end.
    fn hello(&self, stream: &mut UnixStream) -> std::io::Result<[u32; 2]> {
        use std::io::{Read, Write};
        stream.set_nonblocking(false)?;
        let mut row = [0; 24];
        row[..4].copy_from_slice(&(self.told.set as u32).to_le_bytes());
        row[4..8].copy_from_slice(&std::process::id().to_le_bytes());
        row[8..].copy_from_slice(&self.program.0.to_le_bytes());
        stream.write_all(&row)?;
        stream.read_exact(&mut row)?;
        let word = |at: usize| u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        let mut digest = [0; 16];
        digest.copy_from_slice(&row[8..]);
        self.check_program(word(0) as usize, u128::from_le_bytes(digest));
        Ok([word(0), word(4)])
    }

    fn check_program(&self, set: usize, digest: u128) {
        let Told { rank, set: own, .. } = *self.told;
        if digest != self.program.0 {
            let (low, high) = (own.min(set), own.max(set));
            real::stop(&format!(
                "rank {rank}: set{low} and set{high} run different programs; replicas must be the \
                 same file"
            ));
        }
    }
}

/// Tells the launcher where this process listens, and learns where its siblings do: none of these
/// addresses is one on this host.
fn ask_ways(told: &Told, port: u16, launcher: &mut Link) -> Vec<Vec<SocketAddr>> {
    launcher.unsent.extend(format!("{}\n", Report::At(port)).as_bytes());
    launcher.flush();
    let mut ways = vec![None; told.replicas];
    ways[told.set] = Some(Vec::new());
    let (mut others, mut waited_ms) = (Vec::new(), 0);
    while ways.iter().any(Option::is_none) {
        let mut fd = [launcher.poll_for()];
        unsafe { libc::poll(fd.as_mut_ptr(), 1, 100) };
        launcher.flush();
        launcher.fill();
        while let Some(line) = launcher.line() {
            let mut words = line.split(' ');
            let is_way = words.next() == Some("sibling");
            let set = words.next().and_then(|it| it.parse::<usize>().ok());
            match set.filter(|it| is_way && *it < told.replicas) {
                Some(set) => ways[set] = Some(words.filter_map(|it| it.parse().ok()).collect()),
                // It is heard when this process listens to what the launcher says.
                None => others.extend((line + "\n").into_bytes()),
            }
        }
        if launcher.ended {
            // Nobody wants what this process does.
            ends::leave(1)
        }
        waited_ms += 100;
        if START_MAX_MS < waited_ms && fd[0].revents == 0 {
            real::fail(&format!("rank {}: a replica did not start", told.rank));
        }
    }
    launcher.received.splice(..0, others);
    ways.into_iter().flatten().collect()
}
