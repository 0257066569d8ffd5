//! Our own input, for each replica of the first process.

use std::io::{self, Read as _};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Event, threads};

/// What has been read is kept up to so many bytes, for a program that starts again.
const KEPT_MAX: usize = 64 << 20;

/// It is read once, however often the program starts.
#[derive(Default)]
pub(super) struct Input(Arc<Mutex<Read>>);

#[derive(Default)]
struct Read {
    has_begun: bool,
    has_ended: bool,
    /// All of it so far; nothing once that is more than is kept.
    kept: Option<Vec<u8>>,
    /// To the replicas that run.
    pipes: Vec<Sender<Vec<u8>>>,
}

impl Read {
    fn take(&mut self, chunk: &[u8]) {
        for pipe in &self.pipes {
            // A replica that reads no more is no reason to keep it from the others.
            let _ = pipe.send(chunk.to_vec());
        }
        if let Some(kept) = &mut self.kept {
            match kept.len() + chunk.len() <= KEPT_MAX {
                true => kept.extend(chunk),
                false => self.kept = None,
            }
        }
    }

    fn end(&mut self) {
        self.has_ended = true;
        self.pipes.clear();
    }
}

impl Input {
    /// All of it for each of so many replicas, from its first byte.
    pub(super) fn read(
        &self,
        replicas: usize,
        sender: &Sender<Event>,
    ) -> Vec<Option<Receiver<Vec<u8>>>> {
        let (pipes, inputs): (Vec<_>, Vec<_>) = (0..replicas).map(|_| mpsc::channel()).unzip();
        let mut read = self.lock();
        for pipe in &pipes {
            let before = read.kept.clone().unwrap_or_default();
            if !before.is_empty() {
                let _ = pipe.send(before);
            }
        }
        read.pipes = pipes;
        if read.has_ended {
            read.end();
        }
        if !std::mem::replace(&mut read.has_begun, true) {
            read.kept = Some(Vec::new());
            let this = Self(self.0.clone());
            threads::begin(sender, move || this.read_all());
        }
        inputs.into_iter().map(Some).collect()
    }

    /// Why a program that starts again could not be given all of it.
    pub(super) fn is_lost(&self) -> Option<String> {
        let read = self.lock();
        let megabytes = KEPT_MAX >> 20;
        (read.has_begun && read.kept.is_none())
            .then(|| format!("it has read more than the {megabytes} MiB of input that are kept"))
    }

    fn read_all(&self) {
        let mut chunk = vec![0; 1 << 16];
        while let Ok(n @ 1..) = io::stdin().read(&mut chunk) {
            self.lock().take(&chunk[..n]);
        }
        self.lock().end();
    }

    fn lock(&self) -> MutexGuard<'_, Read> {
        self.0.lock().unwrap_or_else(|it| it.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MAX, Read};

    #[test]
    fn what_was_read_is_kept_until_it_is_too_much() {
        let mut read = Read { kept: Some(Vec::new()), ..Read::default() };
        read.take(b"one");
        read.take(b"two");
        assert_eq!(read.kept.as_deref(), Some(&b"onetwo"[..]));
        read.take(&vec![0; KEPT_MAX - 6]);
        assert!(read.kept.is_some());
        read.take(b"more");
        assert_eq!(read.kept, None);
        read.take(b"and more");
        assert_eq!(read.kept, None);
    }
}
