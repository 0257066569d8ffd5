//! What replicas of one cluster tell each other, and its form on a link.
//!
//! A message is a length (u32, little endian), a kind (u8) and fields of fixed width; bytes of the
//! program come last.  A link keeps order; its end is the death of who held it, unless
//! [`Message::Bye`] came before.

use std::sync::Arc;

use crate::digest::{Digest, Shape};
use crate::replica::{Look, LookPlace, Question};
use crate::verdict::{Offer, REPLICAS_MAX, SetId};

/// The longest message that is read, in bytes: contents of one send or one receive.
pub const LENGTH_MAX: usize = 1 << 31;

/// Something that came into the program: what a receive brought, or what the meta chose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event {
    /// Its place in the program's order.
    pub number: u64,
    /// Who settles it.
    pub kind: EventKind,
    /// The call that takes it; one who takes it elsewhere has strayed.
    pub shape: Shape,
    /// What came; it is kept, told and taken without being copied.
    pub bytes: Arc<Vec<u8>>,
}

/// Who settles an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The meta, for all: a clock, a wildcard's match, whether something is complete.
    Decision,
    /// Each set by its own MPI; a replica whose set has lost a member takes it from a twin.
    Data,
}

/// Where in its program a replica waits for something that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The number of the event that it waits for.
    pub event: u64,
    /// Who settles that.
    pub kind: EventKind,
    /// The call that waits.
    pub shape: Shape,
}

/// What one replica tells another of its cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// I am at a compare, with this.
    Offer(Offer),
    /// The majority's contents for one whose own were wrong.
    Bytes {
        /// At which compare.
        call: u64,
        /// The contents.
        bytes: Vec<u8>,
    },
    /// Something came in.
    Event(Event),
    /// What came in here, for one that another feeds: it takes what two sets' MPIs brought alike.
    Echo {
        /// The number of what came in.
        event: u64,
        /// What that was.
        digest: Digest,
    },
    /// What a look at a clock showed.
    Look(Look),
    /// So many looks of yours have been taken here, or let go of.
    Looked(u64),
    /// My set has lost a member: I have left MPI, feed me.
    Left,
    /// I saw the link to `set` end; before this came all that I had from it.
    Down {
        /// Who is gone.
        set: SetId,
        /// What it offered last, as far as I know.
        offers: Vec<Offer>,
    },
    /// The event that I should take is not of the call that I make.
    Accuse {
        /// Whose event.
        set: SetId,
        /// Its number.
        event: u64,
    },
    /// What a sibling whose link has ended had settled, from a survivor who has it.
    Relay {
        /// Whose it was: if that one strayed, it is nobody's.
        set: SetId,
        /// What it was.
        event: Event,
    },
    /// The program is at its end; the link's end is no death.
    Bye,
    /// Are you waiting for something, too?  A shell's question, which changes nothing.
    Ask,
    /// I am: what a shell answers.
    Here {
        /// For what, if it is an event.
        place: Option<Place>,
        /// Whether nothing but a sibling can bring that.
        at_siblings: bool,
    },
    /// What I offer in full, where shells compare that too.  It comes before the offer.
    Contents {
        /// At which compare.
        call: u64,
        /// The contents.
        bytes: Vec<u8>,
    },
    /// Whose message a receive from anybody has taken here, where who leads the cluster waits for
    /// something else: shells of the others receive it too, before the program comes to ask.  It
    /// settles nothing.
    Matched {
        /// Which receive, as all replicas count them.
        receive: u64,
        /// All calls of the program up to it.
        shape: Shape,
        /// Whose message.
        source: i32,
        /// Its tag.
        tag: i32,
    },
    /// A receive from anybody has taken no message here, and will not: whoever leads now begins it.
    /// A shell that led says this, or what it matched, of each receive that it had begun.
    Released {
        /// Which receive.
        receive: u64,
        /// How many compares were over when it led no more.
        calls: u64,
    },
}

/// A message that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Longer than any message is.
    #[error("a message of {length} bytes is longer than {LENGTH_MAX}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// Not one of the kinds.
    #[error("a message of kind {kind} with {length} bytes is none that replicas send")]
    Unknown {
        /// Its kind.
        kind: u8,
        /// Its length in bytes.
        length: usize,
    },
}

impl Message {
    /// Appends the message's form on a link to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut begin = |kind: u8| out.extend_from_slice(&[0, 0, 0, 0, kind]);
        match self {
            Self::Offer(offer) => {
                begin(1);
                write_offer(offer, out);
            }
            Self::Bytes { call, bytes } => {
                begin(2);
                write_contents(*call, bytes, out);
            }
            Self::Event(event) => {
                begin(3);
                write_event(event, out);
            }
            Self::Relay { set, event } => {
                begin(11);
                out.push(set.idx() as u8);
                write_event(event, out);
            }
            Self::Echo { event, digest } => {
                begin(14);
                out.extend_from_slice(&event.to_le_bytes());
                out.extend_from_slice(&digest.0.to_le_bytes());
            }
            Self::Look(look) => {
                begin(15);
                write_look(look, out);
            }
            Self::Looked(heard) => {
                begin(16);
                out.extend_from_slice(&heard.to_le_bytes());
            }
            Self::Left => begin(4),
            Self::Down { set, offers } => {
                begin(5);
                out.push(set.idx() as u8);
                offers.iter().for_each(|it| write_offer(it, out));
            }
            Self::Accuse { set, event } => {
                begin(6);
                out.push(set.idx() as u8);
                out.extend_from_slice(&event.to_le_bytes());
            }
            Self::Bye => begin(7),
            Self::Ask => begin(8),
            Self::Here { place, at_siblings } => {
                begin(9);
                out.push(u8::from(*at_siblings));
                place.iter().for_each(|it| write_place(it, out));
            }
            Self::Contents { call, bytes } => {
                begin(10);
                write_contents(*call, bytes, out);
            }
            Self::Matched { receive, shape, source, tag } => {
                begin(12);
                out.extend_from_slice([*receive, shape.0].map(u64::to_le_bytes).as_flattened());
                out.extend_from_slice([*source, *tag].map(i32::to_le_bytes).as_flattened());
            }
            Self::Released { receive, calls } => {
                begin(13);
                out.extend_from_slice([*receive, *calls].map(u64::to_le_bytes).as_flattened());
            }
        }
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// The first message in `bytes` and how many bytes it takes, or nothing if it is not all there.
    ///
    /// # Errors
    /// [`MessageError`] if no message starts like this.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, MessageError> {
        let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if LENGTH_MAX < length {
            return Err(MessageError::TooLong { length });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let unknown = MessageError::Unknown { kind: body.first().copied().unwrap_or(0), length };
        let message = read_body(body).ok_or(unknown)?;
        Ok(Some((message, 4 + length)))
    }
}

fn read_body(body: &[u8]) -> Option<Message> {
    let (&kind, rest) = body.split_first()?;
    Some(match kind {
        1 => Message::Offer(read_offer(rest.try_into().ok()?)),
        2 => {
            let (call, bytes) = rest.split_first_chunk()?;
            Message::Bytes { call: u64::from_le_bytes(*call), bytes: bytes.to_vec() }
        }
        3 => Message::Event(read_event(rest)?),
        4 if rest.is_empty() => Message::Left,
        5 => {
            let (&set, rest) = rest.split_first()?;
            let (rows, left) = rest.as_chunks();
            let offers = rows.iter().map(read_offer).collect();
            left.is_empty().then_some(Message::Down { set: read_set(set)?, offers })?
        }
        6 => {
            let (&set, rest) = rest.split_first()?;
            let event = u64::from_le_bytes(rest.try_into().ok()?);
            Message::Accuse { set: read_set(set)?, event }
        }
        7 if rest.is_empty() => Message::Bye,
        8 if rest.is_empty() => Message::Ask,
        9 => {
            let (&at_siblings, rest) = rest.split_first()?;
            let at_siblings = (at_siblings <= 1).then_some(at_siblings == 1)?;
            let place = if rest.is_empty() {
                None
            } else {
                let Event { number: event, kind, shape, bytes } = read_event(rest)?;
                Some(bytes.is_empty().then_some(Place { event, kind, shape })?)
            };
            Message::Here { place, at_siblings }
        }
        10 => {
            let (call, bytes) = rest.split_first_chunk()?;
            Message::Contents { call: u64::from_le_bytes(*call), bytes: bytes.to_vec() }
        }
        11 => {
            let (&set, rest) = rest.split_first()?;
            Message::Relay { set: read_set(set)?, event: read_event(rest)? }
        }
        12 => {
            let (receive, rest) = rest.split_first_chunk()?;
            let (shape, rest) = rest.split_first_chunk()?;
            let (source, tag) = rest.split_first_chunk()?;
            Message::Matched {
                receive: u64::from_le_bytes(*receive),
                shape: Shape(u64::from_le_bytes(*shape)),
                source: i32::from_le_bytes(*source),
                tag: i32::from_le_bytes(tag.try_into().ok()?),
            }
        }
        13 => {
            let (receive, calls) = rest.split_first_chunk()?;
            Message::Released {
                receive: u64::from_le_bytes(*receive),
                calls: u64::from_le_bytes(calls.try_into().ok()?),
            }
        }
        14 => {
            let (event, digest) = rest.split_first_chunk()?;
            let digest = Digest(u128::from_le_bytes(digest.try_into().ok()?));
            Message::Echo { event: u64::from_le_bytes(*event), digest }
        }
        15 => Message::Look(read_look(rest)?),
        16 => Message::Looked(u64::from_le_bytes(rest.try_into().ok()?)),
        _ => return None,
    })
}

fn write_contents(call: u64, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&call.to_le_bytes());
    out.extend_from_slice(bytes);
}

fn write_place(place: &Place, out: &mut Vec<u8>) {
    out.extend_from_slice(&place.event.to_le_bytes());
    out.push(u8::from(place.kind == EventKind::Data));
    out.extend_from_slice(&place.shape.0.to_le_bytes());
}

fn write_look(look: &Look, out: &mut Vec<u8>) {
    let (LookPlace { call, event, thread, look: number }, question) = (look.at, look.question);
    let words = [call, event, thread, number, question.clock, question.site];
    out.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
    out.extend_from_slice(&look.signals.to_le_bytes());
    out.extend_from_slice(&look.bytes);
}

fn read_look(bytes: &[u8]) -> Option<Look> {
    let (words, rest) = bytes.split_first_chunk::<48>()?;
    let (signals, bytes) = rest.split_first_chunk()?;
    let (words, _) = words.as_chunks();
    let [call, event, thread, look, clock, site] =
        [0, 1, 2, 3, 4, 5].map(|it: usize| u64::from_le_bytes(words[it]));
    let at = LookPlace { call, event, thread, look };
    let question = Question { clock, site };
    let signals = u32::from_le_bytes(*signals);
    Some(Look { at, signals, question, bytes: bytes.to_vec().into() })
}

fn read_set(number: u8) -> Option<SetId> {
    (usize::from(number) < REPLICAS_MAX).then(|| SetId::new(number.into()))
}

fn write_event(event: &Event, out: &mut Vec<u8>) {
    let Event { number, kind, shape, bytes } = event;
    write_place(&Place { event: *number, kind: *kind, shape: *shape }, out);
    out.extend_from_slice(bytes);
}

fn read_event(bytes: &[u8]) -> Option<Event> {
    let (number, rest) = bytes.split_first_chunk()?;
    let (&is_data, rest) = rest.split_first()?;
    let (shape, bytes) = rest.split_first_chunk()?;
    let kind = if is_data == 1 { EventKind::Data } else { EventKind::Decision };
    let shape = Shape(u64::from_le_bytes(*shape));
    let number = u64::from_le_bytes(*number);
    Some(Event { number, kind, shape, bytes: bytes.to_vec().into() })
}

const OFFER_LENGTH: usize = 48;

fn write_offer(offer: &Offer, out: &mut Vec<u8>) {
    // No contents are as long as 2^40 bytes, and nobody sends 2^21 signals.
    let flags = [offer.took, offer.tarries, offer.yields].map(u64::from);
    let flags = flags[0] << 61 | flags[1] << 62 | flags[2] << 63;
    let length = offer.length | u64::from(offer.signals) << 40 | flags;
    let digest = [offer.digest.0 as u64, (offer.digest.0 >> 64) as u64];
    let words = [offer.call, offer.event, offer.shape.0, length, digest[0], digest[1]];
    out.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
}

fn read_offer(bytes: &[u8; OFFER_LENGTH]) -> Offer {
    let (words, _) = bytes.as_chunks();
    let word = |idx: usize| u64::from_le_bytes(words[idx]);
    let digest = u128::from(word(4)) | u128::from(word(5)) << 64;
    Offer {
        call: word(0),
        event: word(1),
        shape: Shape(word(2)),
        length: word(3) & ((1 << 40) - 1),
        signals: (word(3) << 3 >> 43) as u32,
        yields: word(3) >> 63 != 0,
        tarries: word(3) >> 62 & 1 != 0,
        took: word(3) >> 61 & 1 != 0,
        digest: Digest(digest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Message> {
        let (shape, digest) = (Shape(5), Digest(6 << 70 | 7));
        let (signals, yields, tarries, took) = (9, true, false, true);
        let (call, event, length) = (3, 4, 8);
        let offer = Offer { call, event, shape, digest, length, signals, yields, tarries, took };
        let event = |kind| Event { number: 9, kind, shape: Shape(10), bytes: vec![1, 2, 3].into() };
        vec![
            Message::Offer(offer),
            Message::Bytes { call: 3, bytes: vec![7; 40] },
            Message::Contents { call: 5, bytes: vec![8; 3] },
            Message::Event(event(EventKind::Data)),
            Message::Event(event(EventKind::Decision)),
            Message::Relay { set: SetId::new(1), event: event(EventKind::Decision) },
            Message::Left,
            Message::Down { set: SetId::new(2), offers: vec![offer, offer] },
            Message::Down { set: SetId::new(0), offers: vec![] },
            Message::Accuse { set: SetId::new(1), event: 11 },
            Message::Bye,
            Message::Ask,
            Message::Here { place: None, at_siblings: true },
            Message::Here {
                place: Some(Place { event: 17, kind: EventKind::Data, shape: Shape(18) }),
                at_siblings: false,
            },
            Message::Matched { receive: 12, shape: Shape(17), source: -13, tag: 14 },
            Message::Released { receive: 15, calls: 16 },
            Message::Echo { event: 19, digest },
            Message::Look(Look {
                at: LookPlace { call: 20, event: 21, thread: 28, look: 22 },
                signals: 23,
                question: Question { clock: 24, site: 27 },
                bytes: vec![25; 16].into(),
            }),
            Message::Looked(26),
        ]
    }

    #[test]
    fn what_is_written_is_read_again_wherever_it_is_cut() {
        let mut stream = Vec::new();
        samples().iter().for_each(|it| it.write(&mut stream));
        let mut rest = &stream[..];
        for message in samples() {
            let (read, length) = Message::read(rest).unwrap().unwrap();
            assert_eq!(read, message);
            for cut in 0..length {
                assert_eq!(Message::read(&rest[..cut]), Ok(None));
            }
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn foreign_bytes_are_refused_and_never_panic() {
        assert!(Message::read(&[0; 5]).is_err());
        assert!(Message::read(&[1, 0, 0, 0, 99]).is_err());
        assert!(Message::read(&[0xff, 0xff, 0xff, 0xff, 1]).is_err());
        for message in samples() {
            let mut bytes = Vec::new();
            message.write(&mut bytes);
            for idx in 0..bytes.len() {
                for flip in 0..8 {
                    let mut bytes = bytes.clone();
                    bytes[idx] ^= 1 << flip;
                    let _ = Message::read(&bytes);
                }
            }
        }
    }
}
