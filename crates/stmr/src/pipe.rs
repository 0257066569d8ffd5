//! A pipe in memory that two processes share: one writes, one reads, neither waits.
//!
//! ```text
//! word 0: words ever written │ word 8: words ever read │ word 16: the writer wants room
//! words 24 …: a ring of chunks: length and check (one word), then bytes, filled up to a word
//! ```
//!
//! Each side keeps its own count and only publishes it, so that neither can be led astray by the
//! other; a chunk whose length or check is wrong is an error of who wrote it, or of the memory.
//! A chunk is seen whole or not at all, whenever its writer dies.

use std::sync::atomic::{AtomicU64, Ordering};

use twox_hash::XxHash3_64;

/// Words of a pipe's memory.
pub const PIPE_WORDS: usize = RING + CAPACITY as usize;

/// Words that the ring holds.
const CAPACITY: u64 = 1 << 13;

/// Where the counts and the ring stand: each count has a cache line of its own.
const WRITTEN: usize = 0;
const READ: usize = 8;
const WANTS_ROOM: usize = 16;
const RING: usize = 24;

/// What is in a pipe is not what somebody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipeError {
    /// More would be in it than it holds.
    #[error("a pipe of {CAPACITY} words would hold {words}")]
    TooMuch {
        /// How many.
        words: u64,
    },
    /// A chunk that goes beyond what was written.
    #[error("a chunk of {length} bytes stands in {words} words")]
    Length {
        /// Its length in bytes.
        length: u64,
        /// The words that were written.
        words: u64,
    },
    /// A chunk that changed after it was written.
    #[error("a chunk of {length} bytes has another check than it was written with")]
    Check {
        /// Its length in bytes.
        length: u64,
    },
}

/// The end that writes.
#[derive(Debug, Default)]
pub struct PipeWriter {
    written: u64,
}

/// The end that reads.
#[derive(Debug, Default)]
pub struct PipeReader {
    read: u64,
}

/// What a look into a pipe brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Bytes that came.
    pub bytes: usize,
    /// The writer had no room, and has some again: it is to be woken if it sleeps.
    pub made_room: bool,
}

fn slot(memory: &[AtomicU64], at: u64) -> &AtomicU64 {
    &memory[RING + (at % CAPACITY) as usize]
}

/// So many words from there on, which the end of the ring may part.
fn slots(memory: &[AtomicU64], at: u64, n: usize) -> [&[AtomicU64]; 2] {
    let ring = &memory[RING..];
    let from = &ring[(at % CAPACITY) as usize..];
    let here = n.min(from.len());
    [&from[..here], &ring[..n - here]]
}

fn check(at: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(at, bytes) >> 32 << 32
}

impl PipeWriter {
    /// Writes what fits into `memory`, whole chunks at a time; returns how many bytes that were.
    ///
    /// If not all fit, whoever reads is asked to say when there is room ([`Drawn::made_room`]).
    ///
    /// # Panics
    /// If `memory` has not [`PIPE_WORDS`] words.
    pub fn write(&mut self, memory: &[AtomicU64], bytes: &[u8]) -> usize {
        let mut done = self.write_chunk(memory, bytes);
        if done < bytes.len() {
            memory[WANTS_ROOM].store(1, Ordering::SeqCst);
            // Whoever reads may have made room before it could see that.
            done += self.write_chunk(memory, &bytes[done..]);
        }
        done
    }

    fn write_chunk(&mut self, memory: &[AtomicU64], bytes: &[u8]) -> usize {
        assert_eq!(memory.len(), PIPE_WORDS, "memory of another size than a pipe's");
        // A count that nobody can have reached leaves no room; its reader finds the error.
        let used = self.written.wrapping_sub(memory[READ].load(Ordering::SeqCst));
        let room = CAPACITY.saturating_sub(used).saturating_sub(1);
        let length = bytes.len().min(room as usize * 8);
        if length == 0 {
            return 0;
        }
        let chunk = &bytes[..length];
        let start = self.written;
        slot(memory, start).store(length as u64 | check(start, chunk), Ordering::Relaxed);
        let (rows, rest) = chunk.as_chunks();
        let [here, behind] = slots(memory, start + 1, rows.len());
        let (rows_here, rows_behind) = rows.split_at(here.len());
        for (slots, rows) in [(here, rows_here), (behind, rows_behind)] {
            for (slot, row) in slots.iter().zip(rows) {
                slot.store(u64::from_le_bytes(*row), Ordering::Relaxed);
            }
        }
        let mut at = start + 1 + rows.len() as u64;
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            slot(memory, at).store(u64::from_le_bytes(word), Ordering::Relaxed);
            at += 1;
        }
        self.written = at;
        memory[WRITTEN].store(at, Ordering::SeqCst);
        length
    }
}

impl PipeReader {
    /// Whether there is something to read.
    #[must_use]
    pub fn has_more(&self, memory: &[AtomicU64]) -> bool {
        memory[WRITTEN].load(Ordering::SeqCst) != self.read
    }

    /// Appends all that is in `memory` to `out`.
    ///
    /// # Errors
    /// [`PipeError`] if that is not what somebody wrote; `out` has what came before it.
    pub fn read(&mut self, memory: &[AtomicU64], out: &mut Vec<u8>) -> Result<Drawn, PipeError> {
        let written = memory[WRITTEN].load(Ordering::Acquire);
        if written == self.read {
            return Ok(Drawn::default());
        }
        let mut words = written.wrapping_sub(self.read);
        if CAPACITY < words {
            return Err(PipeError::TooMuch { words });
        }
        let before = out.len();
        while 0 < words {
            let head = slot(memory, self.read).load(Ordering::Relaxed);
            let length = head & u64::from(u32::MAX);
            let taken = 1 + length.div_ceil(8);
            if length == 0 || words < taken {
                return Err(PipeError::Length { length, words });
            }
            let start = out.len();
            let n_words = taken as usize - 1;
            out.resize(start + n_words * 8, 0);
            let (rows, _) = out[start..].as_chunks_mut();
            let [here, behind] = slots(memory, self.read + 1, n_words);
            let (rows_here, rows_behind) = rows.split_at_mut(here.len());
            for (slots, rows) in [(here, rows_here), (behind, rows_behind)] {
                for (slot, row) in slots.iter().zip(rows) {
                    *row = slot.load(Ordering::Relaxed).to_le_bytes();
                }
            }
            out.truncate(start + length as usize);
            if head - length != check(self.read, &out[start..]) {
                out.truncate(start);
                return Err(PipeError::Check { length });
            }
            self.read += taken;
            words -= taken;
        }
        memory[READ].store(self.read, Ordering::SeqCst);
        let made_room = memory[WANTS_ROOM].load(Ordering::SeqCst) != 0;
        if made_room {
            memory[WANTS_ROOM].store(0, Ordering::SeqCst);
        }
        Ok(Drawn { bytes: out.len() - before, made_room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Vec<AtomicU64> {
        (0..PIPE_WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn bytes_come_out_as_they_went_in_wherever_the_ring_ends() {
        let memory = memory();
        let (mut writer, mut reader) = (PipeWriter::default(), PipeReader::default());
        let (mut sent, mut got) = (0_u64, Vec::new());
        for turn in 0..20_000_usize {
            let bytes: Vec<u8> = (0..turn % 97 + 1).map(|it| (sent as usize + it) as u8).collect();
            assert_eq!(writer.write(&memory, &bytes), bytes.len());
            sent += bytes.len() as u64;
            assert!(reader.has_more(&memory));
            if turn % 3 == 0 {
                reader.read(&memory, &mut got).unwrap();
                assert!(!reader.has_more(&memory));
            }
        }
        reader.read(&memory, &mut got).unwrap();
        assert_eq!(got.len() as u64, sent);
        assert!(got.iter().enumerate().all(|(at, it)| *it == at as u8));
    }

    #[test]
    fn what_does_not_fit_is_written_when_there_is_room_and_the_writer_is_told() {
        let memory = memory();
        let (mut writer, mut reader) = (PipeWriter::default(), PipeReader::default());
        let bytes: Vec<u8> = (0..300_000_u32).map(|it| (it % 251) as u8).collect();
        let (mut done, mut got, mut turns) = (0, Vec::new(), 0);
        while got.len() < bytes.len() {
            done += writer.write(&memory, &bytes[done..]);
            let is_full = done < bytes.len();
            assert_eq!(reader.read(&memory, &mut got).unwrap().made_room, is_full);
            turns += 1;
        }
        assert_eq!(got, bytes);
        assert_eq!(turns, bytes.len().div_ceil((CAPACITY as usize - 1) * 8));
        assert_eq!(reader.read(&memory, &mut got), Ok(Drawn::default()));
    }

    #[test]
    fn two_threads_lose_no_byte_and_change_none() {
        let memory = memory();
        let total = 4_000_000_usize;
        let byte = |at: usize| (at * 7 + (at >> 9)) as u8;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut writer, mut done) = (PipeWriter::default(), 0);
                while done < total {
                    let length = (done % 1_009 + 1).min(total - done);
                    let bytes: Vec<u8> = (done..done + length).map(byte).collect();
                    let written = writer.write(&memory, &bytes);
                    done += written;
                    if written == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            let (mut reader, mut got) = (PipeReader::default(), Vec::new());
            while got.len() < total {
                if reader.read(&memory, &mut got).unwrap().bytes == 0 {
                    std::thread::yield_now();
                }
            }
            assert!(got.iter().enumerate().all(|(at, it)| *it == byte(at)));
        });
    }

    #[test]
    fn every_flip_of_what_is_in_a_pipe_is_found_and_none_panics() {
        let words = 8;
        for word in [WRITTEN].into_iter().chain(RING..RING + words) {
            for bit in 0..64 {
                let memory = memory();
                let bytes: Vec<u8> = (1..=53).collect();
                PipeWriter::default().write(&memory, &bytes);
                memory[word].fetch_xor(1 << bit, Ordering::SeqCst);
                let mut got = Vec::new();
                let read = PipeReader::default().read(&memory, &mut got);
                // What fills up the last word is nothing that anybody wrote, and a count that is
                // too low is put right by the next chunk.
                let is_filling = word == RING + words - 1 && 40 <= bit;
                let is_low = word == WRITTEN && 1 << bit == words;
                assert_eq!(read.is_ok(), is_filling || is_low, "bit {bit} of word {word}");
                assert!(got.is_empty() || (got == bytes && (is_filling || word == WRITTEN)));
            }
        }
    }
}
