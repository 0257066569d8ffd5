//! A stream of bytes in pieces that have checks, for links that go through a network: what TCP
//! checks is 16 bits wide.
//!
//! A piece is its length and its check (u32 each, little endian) and its bytes; the check is of the
//! place in the stream as well, so that a piece that is lost, doubled or moved is found.

use twox_hash::XxHash3_64;

use crate::limits::FRAME_MAX;

const HEAD: usize = 8;

/// What came is not what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A piece that is longer than any.
    #[error("a piece of {length} bytes, which is none that is sent")]
    Length {
        /// Its length in bytes.
        length: usize,
    },
    /// A piece that changed on its way.
    #[error("a piece of {length} bytes has another check than it was sent with")]
    Check {
        /// Its length in bytes.
        length: usize,
    },
}

/// The end that sends.
#[derive(Clone, Debug, Default)]
pub struct FrameWriter {
    at: u64,
}

/// The end that takes.
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    at: u64,
}

fn check(at: u64, bytes: &[u8]) -> u32 {
    (XxHash3_64::oneshot_with_seed(at, bytes) >> 32) as u32
}

impl FrameWriter {
    /// Appends `bytes` in their form on a link to `out`.
    pub fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for piece in bytes.chunks(FRAME_MAX) {
            out.extend((piece.len() as u32).to_le_bytes());
            out.extend(check(self.at, piece).to_le_bytes());
            out.extend(piece);
            self.at += piece.len() as u64;
        }
    }
}

impl FrameReader {
    /// Takes all whole pieces out of `received` and appends what is in them to `out`; returns how
    /// many bytes that were.
    ///
    /// # Errors
    /// [`FrameError`]: nothing more can be taken from this link.
    pub fn read(&mut self, received: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<usize, FrameError> {
        let (mut from, before) = (0, out.len());
        while let Some(head) = received.get(from..from + HEAD) {
            let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|it| head[at + it]));
            let length = word(0) as usize;
            if length == 0 || FRAME_MAX < length {
                return Err(FrameError::Length { length });
            }
            let wanted = word(4);
            let Some(piece) = received.get(from + HEAD..from + HEAD + length) else { break };
            if check(self.at, piece) != wanted {
                return Err(FrameError::Check { length });
            }
            out.extend(piece);
            self.at += length as u64;
            from += HEAD + length;
        }
        received.drain(..from);
        Ok(out.len() - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_however_the_stream_is_cut() {
        let bytes: Vec<u8> = (0..3 * FRAME_MAX as u32 / 2).map(|it| (it % 253) as u8).collect();
        for step in [999, 1 << 17, 4 << 20] {
            let (mut writer, mut reader) = (FrameWriter::default(), FrameReader::default());
            let mut sent = Vec::new();
            for part in [&bytes[..1], &bytes[1..100], &bytes[100..]] {
                writer.write(part, &mut sent);
            }
            writer.write(&[], &mut sent);
            let (mut received, mut got) = (Vec::new(), Vec::new());
            for part in sent.chunks(step) {
                received.extend(part);
                reader.read(&mut received, &mut got).unwrap();
            }
            assert!(got == bytes && received.is_empty());
        }
    }

    #[test]
    fn every_flip_and_every_piece_out_of_its_place_is_found_and_none_panics() {
        let mut writer = FrameWriter::default();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        writer.write(b"a piece of some bytes", &mut first);
        writer.write(b"and another", &mut second);
        for bit in 0..8 * first.len() {
            let mut received = first.clone();
            received[bit / 8] ^= 1 << (bit % 8);
            let mut got = Vec::new();
            let read = FrameReader::default().read(&mut received, &mut got);
            // A length that is too long waits for more, which has another check.
            assert!(got.is_empty(), "bit {bit}: {read:?}");
        }
        for mut received in [second.clone(), [first.clone(), first].concat()] {
            assert!(FrameReader::default().read(&mut received, &mut Vec::new()).is_err());
        }
    }
}
