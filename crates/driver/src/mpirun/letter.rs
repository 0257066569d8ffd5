//! What the launcher and those who speak for other hosts tell each other.
//!
//! A letter is a length (u32, little endian), a kind and a set (u8 each), a rank (u32), and bytes;
//! letters go through [`selvedge_stmr::frame`].

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Sender};

use selvedge_stmr::frame::{FrameReader, FrameWriter};
use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::{REPLICAS_MAX, SetId};

use super::{Event, threads};

/// No letter is longer, in bytes: the library is the longest.
const LENGTH_MAX: usize = 256 << 20;

const HEAD: usize = 10;

/// What a letter is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// To a host: the library that is preloaded.
    Library,
    /// To a host: a line for a process.
    Tell,
    /// To a host: what a process is to read, or the end of it; and back, that it reads no more.
    Input,
    InputEnd,
    /// To a host: so many bytes of what was printed there are let go; and back, that a process has
    /// taken a piece of so many bytes of what it is to read.
    Taken,
    /// To a host: which of its host's processes each process is.
    Locals,
    /// To a host: whether who reads the program's output holds it up.
    Held,
    /// To a host: a set has lost a process; and back when all of the host can see it.
    Broken,
    /// To a host: end this process.
    End,
    /// To a host and back, with the sibling that asks and then what the kernel says.
    Usage,
    /// To a host and back: whether one of its processes handles a signal.
    Handles,
    /// From a host: at which addresses it is, and what it is called.
    Addresses,
    Name,
    /// From a host: a process has called, with its number.
    Called,
    /// From a host: a process's line.
    Said,
    /// From a host: a process is gone.
    Gone,
    /// From a host: what a process printed, and that it prints no more.
    Out,
    Err,
    OutEnd,
    ErrEnd,
}

const KINDS: [Kind; 20] = [
    Kind::Library,
    Kind::Tell,
    Kind::Input,
    Kind::InputEnd,
    Kind::Taken,
    Kind::Locals,
    Kind::Held,
    Kind::Broken,
    Kind::End,
    Kind::Usage,
    Kind::Handles,
    Kind::Addresses,
    Kind::Name,
    Kind::Called,
    Kind::Said,
    Kind::Gone,
    Kind::Out,
    Kind::Err,
    Kind::OutEnd,
    Kind::ErrEnd,
];

/// One letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) kind: Kind,
    pub(super) rank: Rank,
    pub(super) set: SetId,
    pub(super) bytes: Vec<u8>,
}

impl Letter {
    /// One about a process.
    pub(super) fn of(kind: Kind, rank: Rank, set: SetId, bytes: impl Into<Vec<u8>>) -> Self {
        Self { kind, rank, set, bytes: bytes.into() }
    }

    /// One about none.
    pub(super) fn plain(kind: Kind, bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(kind, Rank(0), SetId::new(0), bytes)
    }

    /// What it says, as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let kind = KINDS.iter().position(|it| *it == self.kind).expect("all kinds are in it");
        out.extend((self.bytes.len() as u32).to_le_bytes());
        out.extend([kind as u8, self.set.idx() as u8]);
        out.extend(self.rank.0.to_le_bytes());
        out.extend(&self.bytes);
    }

    /// The first letter of `bytes` and its length, once all of it is there.
    fn read(bytes: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let Some(head) = bytes.get(..HEAD) else { return Ok(None) };
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|it| head[at + it]));
        let length = word(0) as usize;
        let kind = KINDS.get(usize::from(head[4])).copied();
        let set = usize::from(head[5]);
        let (Some(kind), true) = (kind, length <= LENGTH_MAX && set < REPLICAS_MAX) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a letter that nobody writes"));
        };
        let whole = HEAD + length;
        let letter = |it: &[u8]| Self::of(kind, Rank(word(6)), SetId::new(set), it.to_vec());
        Ok(bytes.get(HEAD..whole).map(|it| (letter(it), whole)))
    }
}

/// Sends letters on a thread, so that a host that does not read holds nobody up; when nobody can
/// give it another one, the other end is told that none comes.
pub(super) fn outbox(mut stream: TcpStream, events: &Sender<Event>) -> Sender<Letter> {
    let (sender, letters) = mpsc::channel::<Letter>();
    threads::begin(events, move || {
        let mut writer = FrameWriter::default();
        for letter in letters {
            let (mut bytes, mut frames) = (Vec::new(), Vec::new());
            letter.write(&mut bytes);
            writer.write(&bytes, &mut frames);
            if stream.write_all(&frames).is_err() {
                return;
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
    });
    sender
}

/// Takes letters until the link ends or `take` wants no more; why it ended, if that is not how
/// links end.
pub(super) fn read_all(
    mut stream: &TcpStream,
    mut take: impl FnMut(Letter) -> bool,
) -> io::Result<()> {
    let mut reader = FrameReader::default();
    let (mut received, mut bytes, mut chunk) = (Vec::new(), Vec::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => received.extend(&chunk[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        let bad = |e| io::Error::new(io::ErrorKind::InvalidData, e);
        reader.read(&mut received, &mut bytes).map_err(bad)?;
        let mut at = 0;
        while let Some((letter, length)) = Letter::read(&bytes[at..])? {
            at += length;
            if !take(letter) {
                return Ok(());
            }
        }
        bytes.drain(..at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_they_were_written_and_others_are_refused() {
        let mut bytes = Vec::new();
        let letters: Vec<Letter> = KINDS
            .iter()
            .enumerate()
            .map(|(n, it)| Letter::of(*it, Rank(n as u32 * 700), SetId::new(n % 3), vec![7; n]))
            .collect();
        letters.iter().for_each(|it| it.write(&mut bytes));
        let (mut at, mut got) = (0, Vec::new());
        while let Some((letter, length)) = Letter::read(&bytes[at..]).unwrap() {
            at += length;
            got.push(letter);
        }
        assert_eq!(got, letters);
        for (at, byte) in [(3, 0xff), (4, KINDS.len() as u8), (5, 3)] {
            let mut wrong = bytes[..HEAD].to_vec();
            wrong[at] = byte;
            assert!(Letter::read(&wrong).is_err(), "byte {at}");
        }
    }
}
