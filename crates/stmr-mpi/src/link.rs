//! Sockets to siblings and to the launcher, which neither block nor lose a byte.

use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

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
        let mut chunk = [0; 1 << 16];
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
