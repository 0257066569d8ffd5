//! What reads the pipes and the links of replicas: two threads, however many replicas there are.
//!
//! ```text
//! pipes of what replicas print ──► a thread that stops while there is no Room ──► Printed, Closed
//! the socket and its links     ──► a thread that nothing holds up       ──► Called, Said, Gone
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::SetId;

use super::outlet::Room;
use super::{Channel, Event, MpirunError, io_error, threads};

/// So much is read at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// So many of those that have something to read are asked for at a time.
const READY_MAX: usize = 64;

/// What a pipe is of, and who says when there is room for what it brings.
pub(super) struct Pipe {
    pub(super) file: File,
    pub(super) channel: Channel,
    pub(super) rank: Rank,
    pub(super) set: SetId,
    pub(super) room: Room,
}

/// A link to a replica; whose it is, it says first.
struct Link {
    stream: Arc<UnixStream>,
    who: Option<(Rank, SetId)>,
    /// Of a line, what came without its end.
    begun: Vec<u8>,
}

enum Source {
    Pipe(Pipe),
    Door(UnixListener),
    Link(Link),
    /// Ends when nobody wants to know anything any more.
    End(PipeReader),
}

/// What comes of a source after it was read.
#[derive(PartialEq, Eq)]
enum After {
    /// There may be more.
    More,
    /// There is nothing more.
    Ended,
    /// Nobody hears what is read.
    Unheard,
}

/// Both threads, which end with their owner.
pub(super) struct Readers {
    pipes: Reader,
    _links: Reader,
}

impl Readers {
    /// Begins to hear those who call at this socket.
    pub(super) fn begin(door: UnixListener, sender: &Sender<Event>) -> Result<Self, MpirunError> {
        // Who has called and is gone before it is heard holds nobody up.
        door.set_nonblocking(true).map_err(io_error("listen at a socket"))?;
        let links = Reader::begin(sender)?;
        links.watched.add(Source::Door(door)).map_err(io_error(WATCH))?;
        Ok(Self { pipes: Reader::begin(sender)?, _links: links })
    }

    /// Begins to read a pipe, which is opened so that nobody waits for its writer.
    pub(super) fn read(&self, pipe: Pipe) -> Result<(), MpirunError> {
        self.pipes.watched.add(Source::Pipe(pipe)).map_err(io_error(WATCH))
    }
}

const WATCH: &str = "wait for what replicas print and say";

struct Reader {
    watched: Arc<Watched>,
    /// Its end is the thread's.
    _held: PipeWriter,
}

impl Reader {
    fn begin(sender: &Sender<Event>) -> Result<Self, MpirunError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.map_err(|e| io_error(WATCH)(e.into()))?;
        let watched = Arc::new(Watched { epoll, sources: Mutex::default() });
        let (end, held) = io::pipe().map_err(io_error(WATCH))?;
        watched.add(Source::End(end)).map_err(io_error(WATCH))?;
        let (this, heard) = (watched.clone(), sender.clone());
        threads::begin(sender, move || {
            if let Err(e) = this.read_all(&heard) {
                let _ = heard.send(Event::Failed(io_error(WATCH)(e)));
            }
        });
        Ok(Self { watched, _held: held })
    }
}

/// All that one thread reads.
struct Watched {
    epoll: Epoll,
    sources: Mutex<Sources>,
}

#[derive(Default)]
struct Sources {
    /// But for the one that is just read.
    all: BTreeMap<u64, Source>,
    next: u64,
}

impl Watched {
    fn add(&self, source: Source) -> io::Result<()> {
        // Nobody hears of it before it is there.
        let mut sources = self.lock();
        let id = sources.next;
        self.epoll.add(&source, EpollEvent::new(EpollFlags::EPOLLIN, id))?;
        sources.next += 1;
        sources.all.insert(id, source);
        Ok(())
    }

    fn read_all(&self, sender: &Sender<Event>) -> io::Result<()> {
        let mut ready = [EpollEvent::empty(); READY_MAX];
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let n = match self.epoll.wait(&mut ready, EpollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                n => n?,
            };
            for id in ready[..n].iter().map(EpollEvent::data) {
                let Some(mut source) = self.lock().all.remove(&id) else { continue };
                match self.read(&mut source, &mut chunk, sender)? {
                    After::More => drop(self.lock().all.insert(id, source)),
                    After::Ended => self.epoll.delete(&source)?,
                    After::Unheard => return Ok(()),
                }
            }
        }
    }

    fn read(
        &self,
        source: &mut Source,
        chunk: &mut [u8],
        sender: &Sender<Event>,
    ) -> io::Result<After> {
        match source {
            Source::Pipe(pipe) => Ok(pipe.read(chunk, sender)),
            Source::Link(link) => Ok(link.read(chunk, sender)),
            Source::End(_) => Ok(After::Unheard),
            Source::Door(door) => {
                match door.accept() {
                    Ok((stream, _)) => {
                        let (stream, begun) = (Arc::new(stream), Vec::new());
                        self.add(Source::Link(Link { stream, who: None, begun }))?;
                    }
                    Err(e) if is_passing(&e) => {}
                    Err(e) => return Err(e),
                }
                Ok(After::More)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(|it| it.into_inner())
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pipe(it) => it.file.as_fd(),
            Self::Door(it) => it.as_fd(),
            Self::Link(it) => it.stream.as_fd(),
            Self::End(it) => it.as_fd(),
        }
    }
}

/// Whether what failed may be tried again.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | Interrupted | WouldBlock)
}

fn after(sent: Result<(), impl Sized>, otherwise: After) -> After {
    if sent.is_ok() { otherwise } else { After::Unheard }
}

impl Pipe {
    fn read(&mut self, chunk: &mut [u8], sender: &Sender<Event>) -> After {
        let (channel, rank, set) = (self.channel, self.rank, self.set);
        match self.file.read(chunk) {
            Ok(n @ 1..) => {
                self.room.enter(n);
                let printed = Event::Printed(channel, rank, set, chunk[..n].to_vec());
                after(sender.send(printed), After::More)
            }
            Err(e) if is_passing(&e) => After::More,
            Ok(_) | Err(_) => after(sender.send(Event::Closed(channel, rank, set)), After::Ended),
        }
    }
}

impl Link {
    fn read(&mut self, chunk: &mut [u8], sender: &Sender<Event>) -> After {
        let mut stream: &UnixStream = &self.stream;
        match stream.read(chunk) {
            Ok(n @ 1..) => {
                self.begun.extend(&chunk[..n]);
                let Some(end) = self.begun.iter().rposition(|it| *it == b'\n') else {
                    return After::More;
                };
                let rest = self.begun.split_off(end + 1);
                let lines = std::mem::replace(&mut self.begun, rest);
                self.hear_all(&lines[..end], sender)
            }
            Err(e) if is_passing(&e) => After::More,
            Ok(_) | Err(_) => {
                let last = std::mem::take(&mut self.begun);
                let heard = if last.is_empty() { After::More } else { self.hear(&last, sender) };
                match (heard, self.who) {
                    (After::More, Some((rank, set))) => {
                        after(sender.send(Event::Gone(rank, set)), After::Ended)
                    }
                    (After::More, None) => After::Ended,
                    (ended, _) => ended,
                }
            }
        }
    }

    fn hear_all(&mut self, lines: &[u8], sender: &Sender<Event>) -> After {
        let heard = lines.split(|it| *it == b'\n').map(|it| self.hear(it, sender));
        heard.into_iter().find(|it| *it != After::More).unwrap_or(After::More)
    }

    fn hear(&mut self, line: &[u8], sender: &Sender<Event>) -> After {
        let line = String::from_utf8_lossy(line);
        if let Some((rank, set)) = self.who {
            return after(sender.send(Event::Said(rank, set, line.into_owned())), After::More);
        }
        let words: Vec<u32> = line.split(' ').skip(1).filter_map(|it| it.parse().ok()).collect();
        let [rank, set, pid] = words[..] else { return After::Ended };
        let (rank, set) = (Rank(rank), SetId::new(set as usize));
        self.who = Some((rank, set));
        let called = Event::Called(rank, set, pid as i32, self.stream.clone());
        after(sender.send(called), After::More)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::mpsc::{self, Receiver};

    use super::*;

    fn next(events: &Receiver<Event>) -> String {
        match events.recv().unwrap() {
            Event::Called(rank, set, pid, _) => format!("called {rank:?} {set} {pid}"),
            Event::Said(rank, set, line) => format!("said {rank:?} {set} {line}"),
            Event::Gone(rank, set) => format!("gone {rank:?} {set}"),
            Event::Printed(_, rank, set, bytes) => {
                format!("printed {rank:?} {set} {}", String::from_utf8(bytes).unwrap())
            }
            Event::Closed(_, rank, set) => format!("closed {rank:?} {set}"),
            _ => "something else".to_owned(),
        }
    }

    #[test]
    fn many_are_heard_on_one_thread_line_by_line_until_they_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("door");
        let (sender, events) = mpsc::channel();
        let readers = Readers::begin(UnixListener::bind(&path).unwrap(), &sender).unwrap();
        let mut links: Vec<_> = (0..40).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for (rank, link) in links.iter_mut().enumerate() {
            write!(link, "hello {rank} 1 7\none\nt").unwrap();
            assert_eq!(next(&events), format!("called rank{rank} set1 7"));
            assert_eq!(next(&events), format!("said rank{rank} set1 one"));
        }
        writeln!(links[9], "wo").unwrap();
        assert_eq!(next(&events), "said rank9 set1 two");
        drop(links.remove(0));
        assert_eq!([next(&events), next(&events)], ["said rank0 set1 t", "gone rank0 set1"]);
        // One who does not say who it is, is nobody.
        drop(UnixStream::connect(&path).unwrap());
        let (pipe, mut end) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(pipe));
        let (channel, rank, set) = (Channel::Out, Rank(3), SetId::new(2));
        readers.read(Pipe { file, channel, rank, set, room: Room::default() }).unwrap();
        end.write_all(b"text").unwrap();
        assert_eq!(next(&events), "printed rank3 set2 text");
        drop(end);
        assert_eq!(next(&events), "closed rank3 set2");
        drop((readers, sender));
        assert!(events.recv().is_err(), "both threads have ended");
    }
}
