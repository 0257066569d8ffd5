//! Links to siblings on other hosts.
//!
//! Each process that may have such siblings listens until it has met them all; the launcher tells
//! all of a cluster where.  Who calls proves that it knows the job's secret
//! ([`selvedge_stmr::greet`]), and what goes over the link has checks ([`selvedge_stmr::frame`]).
//!
//! Whether the other host lives its kernel says, by heartbeats: a sibling that is stopped or
//! computes is none that is gone.  What the end of a link means is decided by the launcher.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use selvedge_stmr::digest::Digest;
use selvedge_stmr::frame::{FrameError, FrameReader, FrameWriter};
use selvedge_stmr::greet::{Card, End, Greeting, SECRET_BYTES, Secret, Side, Turn};
use selvedge_stmr::limits::{
    CALL_MAX_MS, CALLERS_MAX, GREETING_MAX_MS, HEARTBEAT_EVERY_S, HEARTBEATS_MAX, SILENCE_MAX_MS,
    STRANGERS_TOLD_MAX,
};

use crate::clock;
use crate::link::Link;
use crate::real;
use crate::told::Told;

/// How often a link on which something is under way is looked at, in milliseconds.
const LOOK_MS: u64 = 250;

/// One end of a link to another host.
pub(crate) struct Network {
    link: Link<TcpStream>,
    writer: FrameWriter,
    reader: FrameReader,
    looked_ms: u64,
}

impl Network {
    fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        keep_alive(&stream)?;
        let (writer, reader) = (FrameWriter::default(), FrameReader::default());
        Ok(Self { link: Link::over(stream), writer, reader, looked_ms: 0 })
    }

    pub(crate) fn poll_for(&self) -> libc::pollfd {
        self.link.poll_for()
    }

    /// Takes all of `unsent`, and writes what it can.
    pub(crate) fn flush(&mut self, unsent: &mut Vec<u8>) {
        if self.link.ended {
            self.link.unsent.clear();
        } else {
            self.writer.write(unsent, &mut self.link.unsent);
            self.link.flush();
        }
        unsent.clear();
    }

    /// Reads what is there into `received`; returns whether that was anything.
    pub(crate) fn fill(&mut self, received: &mut Vec<u8>) -> Result<bool, FrameError> {
        self.link.fill();
        Ok(0 < self.reader.read(&mut self.link.received, received)?)
    }

    /// Whether nothing more comes: it was ended at the other side, or the other host is silent.
    /// While nothing is under way its kernel's heartbeats tell that; what is under way is sent
    /// again and again, each time less often, and this looks when something was last answered.
    /// A sibling that does not read has no room, and its kernel says so: nothing is under way then.
    pub(crate) fn has_ended(&mut self) -> bool {
        let now_ms = clock::coarse_ms();
        if !self.link.ended && self.looked_ms + LOOK_MS <= now_ms {
            self.looked_ms = now_ms;
            let is_silent = |it: libc::tcp_info| {
                let silent_ms = u64::from(it.tcpi_last_ack_recv);
                0 < it.tcpi_unacked && 0 < it.tcpi_retransmits && SILENCE_MAX_MS <= silent_ms
            };
            self.link.ended = info(self.link.stream()).is_none_or(is_silent);
        }
        self.link.ended
    }

    /// Whether something is not at the other host yet.
    pub(crate) fn is_unsent(&self) -> bool {
        let mut n = 0_i32;
        let fd = self.link.stream().as_raw_fd();
        let asked = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut n) };
        !self.link.ended && (!self.link.unsent.is_empty() || (asked == 0 && 0 < n))
    }
}

/// What the kernel knows of a connection.
fn info(stream: &TcpStream) -> Option<libc::tcp_info> {
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let (fd, at) = (stream.as_raw_fd(), (&raw mut info).cast());
    let asked =
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut length) };
    (asked == 0).then_some(info)
}

/// Lets small words go at once, and asks for heartbeats of the other host's kernel.
fn keep_alive(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let every = HEARTBEAT_EVERY_S as i32;
    for (level, name, value) in [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, every),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, every),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, HEARTBEATS_MAX as i32),
    ] {
        let (fd, at) = (stream.as_raw_fd(), (&raw const value).cast());
        let size = size_of_val(&value) as libc::socklen_t;
        if unsafe { libc::setsockopt(fd, level, name, at, size) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Where this process waits for siblings on other hosts until all are there.
pub(crate) struct Gate {
    secret: Secret,
    own: Card,
    listener: TcpListener,
    callers: Vec<Caller>,
    strangers: usize,
    /// What is to be said about them.
    notes: Vec<String>,
}

/// Somebody who has not proven yet who it is.
struct Caller {
    stream: TcpStream,
    from: SocketAddr,
    greeting: Greeting,
    /// When it has taken too long.
    until_ms: u64,
}

impl Gate {
    /// Opens it, at all addresses of this host and a port that the system chooses.
    pub(crate) fn open(told: &Told, secret: Secret, program: Digest) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        listener.set_nonblocking(true)?;
        let from = End::Replica(told.rank as u32, told.set as u8);
        let own = Card { from, to: from, pid: std::process::id(), digest: program };
        let (callers, notes) = (Vec::new(), Vec::new());
        Ok(Self { secret, own, listener, callers, strangers: 0, notes })
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().map_or(0, |it| it.port())
    }

    /// What is to be told of strangers.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Calls a sibling at its addresses, each once.
    pub(crate) fn call(&self, rank: usize, set: usize, at: &[SocketAddr]) -> Option<Met> {
        let own = Card { to: End::Replica(rank as u32, set as u8), ..self.own };
        at.iter().find_map(|it| {
            let stream = TcpStream::connect_timeout(it, Duration::from_millis(CALL_MAX_MS)).ok()?;
            let greeting = Greeting::new(Side::Caller, self.secret, own, draw());
            greet(stream, greeting).ok()
        })
    }

    /// Lets in a sibling that has called, if one has; nobody is waited for, so that who says
    /// nothing keeps nobody out.
    pub(crate) fn answer(&mut self) -> Option<Met> {
        while let Ok((stream, from)) = self.listener.accept() {
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            if self.callers.len() == CALLERS_MAX {
                self.refuse(from, "too many call at once");
                continue;
            }
            let greeting = Greeting::new(Side::Callee, self.secret, self.own, draw());
            let is_ready = stream.set_nonblocking(true).is_ok()
                && (&stream).write_all(&greeting.hello()).is_ok();
            if is_ready {
                let until_ms = clock::coarse_ms() + GREETING_MAX_MS;
                self.callers.push(Caller { stream, from, greeting, until_ms });
            }
        }
        let mut idx = 0;
        while idx < self.callers.len() {
            match self.callers[idx].hear() {
                Ok(None) => idx += 1,
                Ok(Some(card)) => {
                    let Caller { stream, .. } = self.callers.swap_remove(idx);
                    if let Ok(network) = Network::new(stream) {
                        return Some(Met { network, card });
                    }
                }
                Err(why) => {
                    let caller = self.callers.swap_remove(idx);
                    // A sibling that has waited too long calls again.
                    if !(why.is_empty() && caller.greeting.has_begun()) {
                        let why = if why.is_empty() { "it is gone again" } else { &why };
                        self.refuse(caller.from, why);
                    }
                }
            }
        }
        None
    }

    fn refuse(&mut self, from: SocketAddr, why: &str) {
        self.strangers += 1;
        if self.strangers <= STRANGERS_TOLD_MAX {
            self.notes.push(format!("a caller at {from} is refused: {why}"));
        }
    }
}

/// A sibling that has proven who it is.
pub(crate) struct Met {
    pub(crate) network: Network,
    pub(crate) card: Card,
}

impl Caller {
    /// Who it is, once that is known; why it is refused, without a word if it is gone.
    fn hear(&mut self) -> Result<Option<Card>, String> {
        let mut bytes = [0; 256];
        loop {
            match self.stream.read(&mut bytes[..self.greeting.wants()]) {
                Ok(0) => return Err(String::new()),
                Ok(n) => {
                    let turn = self.greeting.take(&bytes[..n]).map_err(|it| it.to_string())?;
                    // A proof is shorter than any socket's room.
                    self.stream.write_all(&turn.send).map_err(|it| it.to_string())?;
                    if turn.met.is_some() {
                        return Ok(turn.met);
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(e.to_string()),
            }
        }
        if self.until_ms < clock::coarse_ms() {
            return Err("it does not say who it is".to_owned());
        }
        Ok(None)
    }
}

/// Greets who was called, who may take some time to come to its gate.
fn greet(mut stream: TcpStream, mut greeting: Greeting) -> std::io::Result<Met> {
    stream.set_read_timeout(Some(Duration::from_millis(GREETING_MAX_MS)))?;
    stream.write_all(&greeting.hello())?;
    let mut bytes = [0; 256];
    loop {
        let n = match stream.read(&mut bytes[..greeting.wants()]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let refused = |e| std::io::Error::new(ErrorKind::PermissionDenied, e);
        let Turn { send, met } = greeting.take(&bytes[..n]).map_err(refused)?;
        stream.write_all(&send)?;
        if let Some(card) = met {
            return Ok(Met { network: Network::new(stream)?, card });
        }
    }
}

/// Bytes that nobody can foresee, and that are no replica's to share.
fn draw() -> [u8; SECRET_BYTES] {
    let mut bytes = [0; SECRET_BYTES];
    let at = bytes.as_mut_ptr();
    let got = unsafe { libc::syscall(libc::SYS_getrandom, at, SECRET_BYTES, 0) };
    if got != SECRET_BYTES as i64 {
        real::fail("the system has no random bytes");
    }
    bytes
}

/// Sleeps until one of the links has something, or for so long.
pub(crate) fn sleep_at(fds: &mut [libc::pollfd], max: Duration) {
    let limit = libc::timespec { tv_sec: 0, tv_nsec: i64::from(max.subsec_nanos()) };
    let n = fds.len() as libc::nfds_t;
    unsafe { libc::ppoll(fds.as_mut_ptr(), n, &raw const limit, std::ptr::null()) };
}
