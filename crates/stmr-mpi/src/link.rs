//! Links to siblings and to the launcher, which neither block nor lose a byte.
//!
//! What siblings tell each other goes through memory that they share; a socket between them says
//! no word after the first, and its end is the death of who held it.

use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};

use selvedge_stmr::digest::Digest;
use selvedge_stmr::pipe::{PipeError, PipeReader, PipeWriter};

use crate::memory::{For, Memory};
use crate::real;
use crate::state::Told;

/// How long siblings have to start, in milliseconds.
const START_MAX_MS: u32 = 60_000;

/// One end of a stream with what waits to be written and what waits to be understood.
pub(crate) struct Link {
    stream: UnixStream,
    pub(crate) unsent: Vec<u8>,
    pub(crate) received: Vec<u8>,
    /// The other end is gone.
    pub(crate) ended: bool,
}

impl Link {
    pub(crate) fn new(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, unsent: Vec::new(), received: Vec::new(), ended: false })
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
        let mut chunk = [0; 1 << 10];
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

    /// The next line of text, for the launcher's words.
    pub(crate) fn line(&mut self) -> Option<String> {
        let end = self.received.iter().position(|it| *it == b'\n')?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}

/// The link to another replica of this process.
pub(crate) struct Sibling {
    socket: Link,
    memory: Memory,
    own: usize,
    set: usize,
    writer: PipeWriter,
    reader: PipeReader,
    pub(crate) unsent: Vec<u8>,
    pub(crate) received: Vec<u8>,
    /// What it says cannot be read; it is not listened to any more.
    pub(crate) is_broken: bool,
}

impl Sibling {
    fn new(socket: Link, memory: Memory, own: usize, set: usize) -> Self {
        let (writer, reader) = (PipeWriter::default(), PipeReader::default());
        let (unsent, received) = (Vec::new(), Vec::new());
        let is_broken = false;
        Self { socket, memory, own, set, writer, reader, unsent, received, is_broken }
    }

    /// What to look for, to see it end.
    pub(crate) fn poll_for(&self) -> libc::pollfd {
        self.socket.poll_for()
    }

    /// Whether it has ended; all that it wrote before can be read then.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.socket.fill();
        self.socket.ended
    }

    /// Writes what it can, and wakes the sibling if it waits for that.
    pub(crate) fn flush(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        let written = self.writer.write(self.memory.pipe(self.own, self.set), &self.unsent);
        self.unsent.drain(..written);
        if 0 < written {
            self.memory.bell_of_set(self.set).ring(For::Siblings);
        }
    }

    /// Reads what is there; returns whether that was anything.
    pub(crate) fn fill(&mut self) -> Result<bool, PipeError> {
        if self.is_broken {
            return Ok(false);
        }
        let pipe = self.memory.pipe(self.set, self.own);
        let drawn = self.reader.read(pipe, &mut self.received)?;
        if drawn.made_room {
            self.memory.bell_of_set(self.set).ring(For::Siblings);
        }
        Ok(0 < drawn.bytes)
    }
}

/// Links this process with the replicas of its cluster; with them come their process numbers.
pub(crate) fn connect_siblings(told: &Told, memory: Memory) -> (Vec<Option<Sibling>>, Vec<u32>) {
    let mut links: Vec<Option<Sibling>> = (0..told.replicas).map(|_| None).collect();
    let mut pids = vec![std::process::id(); told.replicas];
    if told.replicas == 1 {
        return (links, pids);
    }
    let path = |set: usize| told.folder.join(format!("c{}.{set}", told.rank));
    let own = path(told.set);
    let failed = |e: std::io::Error| -> ! {
        real::fail(&format!("rank {} cannot reach its replicas: {e}", told.rank))
    };
    let listener = UnixListener::bind(&own).unwrap_or_else(|e| failed(e));
    if listener.set_nonblocking(true).is_err() {
        real::fail("a socket cannot be made non-blocking");
    }
    let program = Digest::of(&std::fs::read("/proc/self/exe").unwrap_or_default());
    let hello = |stream: &mut UnixStream| -> std::io::Result<(u32, u32)> {
        use std::io::{Read, Write};
        stream.set_nonblocking(false)?;
        let mut row = [0; 24];
        row[..4].copy_from_slice(&(told.set as u32).to_le_bytes());
        row[4..8].copy_from_slice(&std::process::id().to_le_bytes());
        row[8..].copy_from_slice(&program.0.to_le_bytes());
        stream.write_all(&row)?;
        stream.read_exact(&mut row)?;
        let word = |at: usize| u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        if row[8..] != program.0.to_le_bytes() {
            let (low, high) = (told.set.min(word(0) as usize), told.set.max(word(0) as usize));
            real::stop(&format!(
                "rank {}: set{low} and set{high} run different programs; replicas must be the same \
                 file",
                told.rank
            ));
        }
        Ok((word(0), word(4)))
    };
    let mut waited_ms = 0;
    while links.iter().flatten().count() + 1 < told.replicas {
        let lower = (0..told.set).find(|it| links[*it].is_none());
        let stream = match lower {
            Some(set) => UnixStream::connect(path(set)).ok(),
            None => listener.accept().ok().map(|it| it.0),
        };
        let Some(mut stream) = stream else {
            if START_MAX_MS < waited_ms {
                real::fail(&format!("rank {}: a replica did not start", told.rank));
            }
            waited_ms += 2;
            unsafe { libc::usleep(2000) };
            continue;
        };
        let (set, pid) = hello(&mut stream).unwrap_or_else(|e| failed(e));
        if told.replicas <= set as usize || set as usize == told.set {
            real::fail(&format!("rank {}: a stranger called as replica {set}", told.rank));
        }
        pids[set as usize] = pid;
        let socket = Link::new(stream).unwrap_or_else(|e| failed(e));
        links[set as usize] = Some(Sibling::new(socket, memory, told.set, set as usize));
    }
    (links, pids)
}
