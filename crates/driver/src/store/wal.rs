//! A second look at the write-ahead log, where `SQLite` looks only once.
//!
//! `SQLite` reads `journal.db-wal` up to the first frame whose checksum fails and takes that for
//! the torn end of a commit that was under way.  Mostly it is; but if a byte has changed in the
//! middle, all commits behind it go without a word.  Claim: where a frame of the same
//! generation follows a commit frame that lies behind the bad one, something acknowledged is
//! lost.  For that frame was written only after the commit before it had been synced, whole.
//! One pass, O(bytes).  The layout is of <https://sqlite.org/fileformat2.html#walformat>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;

const FRAME_HEADER_BYTES: usize = 24;

/// The first 4 bytes of a log, but for the last bit, which tells the order of bytes in words.
const MAGIC: u32 = 0x377f_0682;

/// How long a log is that ends in frame `n_frames`, frames counted from 1.
pub(crate) fn len(n_frames: u64, page_bytes: u64) -> u64 {
    HEADER_BYTES as u64 + n_frames * (FRAME_HEADER_BYTES as u64 + page_bytes)
}

/// The frame at which the log at `path` is damaged, 0 for its header, if commits are lost by it.
///
/// Not to be asked while an owner writes: what it is just writing looks like anything.
///
/// # Errors
/// If the file is there and cannot be read.
pub(crate) fn find_damage(path: &Path) -> io::Result<Option<u64>> {
    let file = match File::open(path) {
        Ok(it) => it,
        Err(it) if it.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(it) => return Err(it),
    };
    scan(&mut BufReader::with_capacity(1 << 16, file))
}

fn scan(log: &mut dyn Read) -> io::Result<Option<u64>> {
    let mut header = [0; HEADER_BYTES];
    if !read_whole(log, &mut header)? {
        return Ok(None);
    }
    let big_endian = word(&header, 0) & 1 == 1;
    let mut sum = Sum { big_endian, words: (0, 0) };
    sum.add(&header[..24]);
    let sound =
        word(&header, 0) & !1 == MAGIC && sum.words == (word(&header, 24), word(&header, 28));
    let page_bytes = match word(&header, 8) {
        it if sound && it.is_power_of_two() && (512..=65_536).contains(&it) => it as usize,
        // A header that cannot be read: every journal of this format has pages of this size.
        _ => 4_096,
    };
    let mut salts = sound.then(|| (word(&header, 16), word(&header, 20)));
    let mut bad = (!sound).then_some(0);
    let mut committed_behind = false;
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
    let mut number = 0;
    while read_whole(log, &mut frame)? {
        number += 1;
        let found = (word(&frame, 8), word(&frame, 12));
        let of_generation = found == *salts.get_or_insert(found);
        if bad.is_none() {
            sum.add(&frame[..8]);
            sum.add(&frame[FRAME_HEADER_BYTES..]);
            if of_generation && sum.words == (word(&frame, 16), word(&frame, 20)) {
                continue;
            }
            bad = Some(number);
            // Nothing that a bad frame says of itself counts.
            continue;
        }
        if of_generation && committed_behind {
            return Ok(bad);
        }
        // The second word is the size of the file after a commit, and 0 in all its other frames.
        committed_behind |= of_generation && word(&frame, 4) != 0;
    }
    Ok(None)
}

/// Fills `bytes`, or says that the log ends before.
fn read_whole(log: &mut dyn Read, bytes: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(it) if it.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(it) => Err(it),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The log's running checksum.
struct Sum {
    big_endian: bool,
    words: (u32, u32),
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(8) {
            let (mut first, mut second) = (word(pair, 0), word(pair, 4));
            if !self.big_endian {
                (first, second) = (first.swap_bytes(), second.swap_bytes());
            }
            self.words.0 = self.words.0.wrapping_add(first).wrapping_add(self.words.1);
            self.words.1 = self.words.1.wrapping_add(second).wrapping_add(self.words.0);
        }
    }
}
