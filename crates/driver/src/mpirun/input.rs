//! Our own input, for each replica of the first process.
//!
//! It is read no faster than the program takes it.  Who takes it fastest says how fast: a replica
//! that is slower, or has stopped, holds its siblings up once it is far behind them, and not
//! before, so that they come to where they find that it is missing.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use selvedge_stmr::verdict::SetId;

use super::{Event, threads};

/// What has been read is kept up to so many bytes, for a program that starts again.
const KEPT_MAX: usize = 64 << 20;

/// No more is read while all replicas that read have so many bytes that they have not taken.
const AHEAD_MAX: usize = 1 << 20;

/// Nor while one of them has so many.
const BEHIND_MAX: usize = 64 << 20;

/// What is read at a time, at the most.
const CHUNK_MAX: usize = 1 << 16;

/// What a chunk takes beside its bytes.
const CHUNK_COST: usize = 64;

/// A part of it, which replicas share.
pub(super) type Chunk = Arc<[u8]>;

/// It is read once, however often the program starts.
#[derive(Clone, Default)]
pub(super) struct Input(Arc<Shared>);

#[derive(Default)]
struct Shared {
    read: Mutex<Read>,
    changed: Condvar,
}

#[derive(Default)]
struct Read {
    has_begun: bool,
    has_ended: bool,
    /// All of it so far; nothing once that is more than is kept.
    kept: Option<Vec<u8>>,
    /// To the replicas that run; nothing to one that reads no more.
    pipes: Vec<Option<Pipe>>,
    /// Which start of the program they are of.
    start: u32,
}

#[derive(Default)]
struct Pipe {
    chunks: VecDeque<Chunk>,
    /// Bytes that its replica has not taken, of these and of what is on its way.
    ahead: usize,
}

impl Pipe {
    fn put(&mut self, chunk: Chunk) {
        self.ahead += chunk.len() + CHUNK_COST;
        self.chunks.push_back(chunk);
    }
}

impl Read {
    fn take(&mut self, bytes: &[u8]) {
        let chunk = Chunk::from(bytes);
        self.pipes.iter_mut().flatten().for_each(|it| it.put(chunk.clone()));
        if let Some(kept) = &mut self.kept {
            match kept.len() + bytes.len() <= KEPT_MAX {
                true => kept.extend(bytes),
                false => self.kept = None,
            }
        }
    }

    /// So many replicas read all of it, from its first byte.
    fn begin(&mut self, replicas: usize) {
        self.start += 1;
        self.pipes = (0..replicas).map(|_| Some(Pipe::default())).collect();
        for bytes in self.kept.as_deref().unwrap_or_default().chunks(CHUNK_MAX) {
            let chunk = Chunk::from(bytes);
            self.pipes.iter_mut().flatten().for_each(|it| it.put(chunk.clone()));
        }
    }

    fn is_wanted(&self) -> bool {
        let ahead = || self.pipes.iter().flatten().map(|it| it.ahead);
        ahead().any(|it| it < AHEAD_MAX) && ahead().all(|it| it < BEHIND_MAX)
    }

    /// A replica has taken a chunk of so many bytes, or reads no more.
    fn taken(&mut self, set: SetId, length: Option<usize>) {
        match (&mut self.pipes[set.idx()], length) {
            (Some(pipe), Some(n)) => pipe.ahead = pipe.ahead.saturating_sub(n + CHUNK_COST),
            (pipe, None) => *pipe = None,
            (None, Some(_)) => {}
        }
    }
}

/// What one replica reads.
pub(super) struct Feed {
    input: Input,
    start: u32,
    set: SetId,
}

impl Feed {
    /// The next of it, once that is there; nothing behind its end, and when another start of the
    /// program reads.
    pub(super) fn next(&self) -> Option<Chunk> {
        let mut read = self.input.lock();
        while read.start == self.start {
            let pipe = read.pipes[self.set.idx()].as_mut()?;
            match pipe.chunks.pop_front() {
                Some(chunk) => return Some(chunk),
                None if read.has_ended => return None,
                None => read = self.input.wait(read),
            }
        }
        None
    }

    /// The replica has taken a chunk of so many bytes, or reads no more.
    pub(super) fn taken(&self, length: Option<usize>) {
        if self.input.lock().start == self.start {
            self.input.taken(self.set, length);
        }
    }
}

impl Input {
    /// All of it for each of so many replicas, from its first byte.
    pub(super) fn read(&self, replicas: usize, sender: &Sender<Event>) -> Vec<Option<Feed>> {
        let mut read = self.lock();
        read.begin(replicas);
        let start = read.start;
        if !std::mem::replace(&mut read.has_begun, true) {
            read.kept = Some(Vec::new());
            let this = self.clone();
            threads::begin(sender, move || this.read_all());
        }
        self.0.changed.notify_all();
        let feed = |set| Some(Feed { input: self.clone(), start, set });
        SetId::all(replicas).map(feed).collect()
    }

    /// A replica of the start that runs has taken a chunk of so many bytes, or reads no more.
    pub(super) fn taken(&self, set: SetId, length: Option<usize>) {
        self.lock().taken(set, length);
        self.0.changed.notify_all();
    }

    /// Why a program that starts again could not be given all of it.
    pub(super) fn is_lost(&self) -> Option<String> {
        let read = self.lock();
        let megabytes = KEPT_MAX >> 20;
        (read.has_begun && read.kept.is_none())
            .then(|| format!("it has read more than the {megabytes} MiB of input that are kept"))
    }

    fn read_all(&self) {
        let mut chunk = vec![0; CHUNK_MAX];
        loop {
            let mut read = self.lock();
            while !read.is_wanted() {
                read = self.wait(read);
            }
            drop(read);
            match io::stdin().read(&mut chunk) {
                Ok(n @ 1..) => self.lock().take(&chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break,
            }
            self.0.changed.notify_all();
        }
        self.lock().has_ended = true;
        self.0.changed.notify_all();
    }

    fn wait<'r>(&self, read: MutexGuard<'r, Read>) -> MutexGuard<'r, Read> {
        self.0.changed.wait(read).unwrap_or_else(|it| it.into_inner())
    }

    fn lock(&self) -> MutexGuard<'_, Read> {
        self.0.read.lock().unwrap_or_else(|it| it.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_kept_until_it_is_too_much() {
        let mut read = Read { kept: Some(Vec::new()), ..Read::default() };
        read.take(b"one");
        read.take(b"two");
        assert_eq!(read.kept.as_deref(), Some(&b"onetwo"[..]));
        read.begin(2);
        let first = |it: &Option<Pipe>| it.as_ref().unwrap().chunks[0].to_vec();
        assert!(read.pipes.iter().all(|it| first(it) == b"onetwo"), "it is read again");
        read.take(&vec![0; KEPT_MAX - 6]);
        assert!(read.kept.is_some());
        read.take(b"more");
        assert_eq!(read.kept, None);
        read.take(b"and more");
        assert_eq!(read.kept, None);
    }

    /// What is read in chunks of a MiB until no more is wanted, in MiB.
    fn read_on(read: &mut Read) -> usize {
        let chunk = vec![0; 1 << 20];
        let is_read = |_: &usize| {
            let is_wanted = read.is_wanted();
            if is_wanted {
                read.take(&chunk);
            }
            is_wanted
        };
        (0..1000).take_while(is_read).count()
    }

    #[test]
    fn no_more_is_read_than_the_program_takes() {
        let mut read = Read::default();
        let [first, second, third] = [0, 1, 2].map(SetId::new);
        read.begin(3);
        assert_eq!(read_on(&mut read), 1, "nobody takes any");
        read.taken(first, Some(1 << 20));
        assert_eq!(read_on(&mut read), 1);
        // One that is far behind holds up the others in the end, and not when it is gone.
        let mut n = 2;
        loop {
            read.taken(first, Some(1 << 20));
            read.taken(second, Some(1 << 20));
            match read_on(&mut read) {
                0 => break,
                more => n += more,
            }
        }
        assert_eq!(n, BEHIND_MAX >> 20);
        read.taken(third, None);
        assert_eq!(read_on(&mut read), 1);
        read.taken(first, None);
        read.taken(second, None);
        assert_eq!(read_on(&mut read), 0, "nobody reads");
        read.begin(3);
        assert_eq!(read_on(&mut read), 1, "it starts again");
    }
}
