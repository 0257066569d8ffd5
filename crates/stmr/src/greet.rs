//! How two ends of a job find out over a network that they belong to it.
//!
//! ```text
//! caller                                  callee
//!   │ ── magic, a number used once ──────► │
//!   │ ◄────── magic, a number used once ── │
//!   │ ── proof, who I am and call ───────► │  a stranger, or a call for another: refused
//!   │ ◄──────────────── proof, who I am ── │
//! ```
//!
//! A proof is a MAC (HMAC-SHA256, RFC 2104) under the job's secret of the side, both numbers and
//! what is said with it: it shows that its maker knows the secret and does not tell it, and is
//! worth nothing in another greeting or for the other side.  The callee proves nothing to whom it
//! has not believed.  What follows on the link is neither sealed nor hidden: as the seed does, a
//! job trusts the network between its hosts not to write into connections that it carries.

use std::fmt;

use hmac::digest::Key;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::digest::Digest;

/// Bytes of the job's secret, of a number that is used once and of a proof.
pub const SECRET_BYTES: usize = 32;

/// What a greeting begins with: what it is, and its version.
const MAGIC: [u8; 8] = *b"selvedg1";

const HELLO_BYTES: usize = MAGIC.len() + SECRET_BYTES;

const BODY_BYTES: usize = 8 + 8 + 4 + 16;

/// What all processes of a job know and nobody else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; SECRET_BYTES]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

impl Secret {
    /// One of bytes that nobody can foresee.
    #[must_use]
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// As processes are told it.
    #[must_use]
    pub fn to_text(self) -> String {
        self.0.iter().map(|it| format!("{it:02x}")).collect()
    }

    /// What [`Secret::to_text`] wrote.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        if text.len() != 2 * SECRET_BYTES || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; SECRET_BYTES];
        for (idx, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * idx..2 * idx + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// The MAC over all parts one behind the other.
    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        // A key that is shorter than a block is filled up with zeros (RFC 2104, section 2).
        let mut key = Key::<Hmac<Sha256>>::default();
        key[..SECRET_BYTES].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&key);
        parts.iter().for_each(|it| mac.update(it));
        mac
    }
}

/// Who calls or is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A replica, by its rank and set.
    Replica(u32, u8),
    /// Who started the job.
    Launcher,
    /// Who speaks for a host to the launcher.
    Agent,
    /// The link of a host that says nothing and whose end is the host's.
    Pulse,
}

impl End {
    fn words(self) -> [u32; 2] {
        match self {
            Self::Replica(rank, set) => [rank, u32::from(set)],
            Self::Launcher => [u32::MAX, 1],
            Self::Agent => [u32::MAX, 2],
            Self::Pulse => [u32::MAX, 3],
        }
    }

    fn of(words: [u32; 2]) -> Option<Self> {
        match words {
            [u32::MAX, 1] => Some(Self::Launcher),
            [u32::MAX, 2] => Some(Self::Agent),
            [u32::MAX, 3] => Some(Self::Pulse),
            [u32::MAX, _] => None,
            [rank, set] => Some(Self::Replica(rank, u8::try_from(set).ok()?)),
        }
    }
}

/// What an end says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Who it is.
    pub from: End,
    /// Whom it means: an address may lead elsewhere than its owner thinks.
    pub to: End,
    /// Its process number.
    pub pid: u32,
    /// What its program is, or which host it speaks for.
    pub digest: Digest,
}

impl Card {
    fn to_bytes(self) -> [u8; BODY_BYTES] {
        let mut row = [0; BODY_BYTES];
        let [[a, b], [c, d]] = [self.from.words(), self.to.words()];
        for (at, word) in [a, b, c, d, self.pid].iter().enumerate() {
            row[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        row[20..].copy_from_slice(&self.digest.0.to_le_bytes());
        row
    }

    fn read(row: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(row.get(at..at + 4)?.try_into().ok()?));
        Some(Self {
            from: End::of([word(0)?, word(4)?])?,
            to: End::of([word(8)?, word(12)?])?,
            pid: word(16)?,
            digest: Digest(u128::from_le_bytes(row.get(20..)?.try_into().ok()?)),
        })
    }
}

/// Why the other end is not one of this job's that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GreetError {
    /// It says something else.
    #[error("what it says is no greeting of this version")]
    NoGreeting,
    /// Its proof is none.
    #[error("it does not know this job's secret")]
    NoProof,
    /// It is of this job, and at the wrong door.
    #[error("it calls {to:?}, and this is {own:?}")]
    NotMeant {
        /// Whom it means.
        to: End,
        /// Who this is.
        own: End,
    },
}

/// Which side of a greeting this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It has called.
    Caller,
    /// It was called.
    Callee,
}

impl Side {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Caller => b"caller",
            Self::Callee => b"callee",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Caller => Self::Callee,
            Self::Callee => Self::Caller,
        }
    }
}

/// What to do after some bytes came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// To be sent.
    pub send: Vec<u8>,
    /// The greeting is over, and this is who is there.
    pub met: Option<Card>,
}

/// One greeting, of which bytes go through whatever its owner has.
#[derive(Clone, Debug)]
pub struct Greeting {
    side: Side,
    secret: Secret,
    own: Card,
    once: [u8; SECRET_BYTES],
    theirs: Option<[u8; SECRET_BYTES]>,
    received: Vec<u8>,
}

impl Greeting {
    /// One that begins with `once`, which nobody can foresee and is used once.  Who is called names
    /// its caller in [`Card::to`] when that is known: until then it may be anybody's.
    #[must_use]
    pub fn new(side: Side, secret: Secret, own: Card, once: [u8; SECRET_BYTES]) -> Self {
        Self { side, secret, own, once, theirs: None, received: Vec::new() }
    }

    /// What is sent first.
    #[must_use]
    pub fn hello(&self) -> Vec<u8> {
        [&MAGIC[..], &self.once].concat()
    }

    /// Whether the other end has greeted, as those of this version do.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.theirs.is_some()
    }

    /// How many bytes are to be read next, and not more: what follows is not the greeting's.
    #[must_use]
    pub fn wants(&self) -> usize {
        let whole = if self.theirs.is_none() { HELLO_BYTES } else { SECRET_BYTES + BODY_BYTES };
        whole - self.received.len()
    }

    /// Takes what came.
    ///
    /// # Errors
    /// [`GreetError`]: the link is to be closed.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Turn, GreetError> {
        self.received.extend(bytes);
        let magic = self.received.len().min(MAGIC.len());
        if self.theirs.is_none() && self.received[..magic] != MAGIC[..magic] {
            return Err(GreetError::NoGreeting);
        }
        if self.wants() != 0 {
            return Ok(Turn::default());
        }
        let received = std::mem::take(&mut self.received);
        if self.theirs.is_none() {
            let mut theirs = [0; SECRET_BYTES];
            theirs.copy_from_slice(&received[MAGIC.len()..]);
            self.theirs = Some(theirs);
            let send = if self.side == Side::Caller { self.proof() } else { Vec::new() };
            return Ok(Turn { send, met: None });
        }
        let (proof, body) = received.split_at(SECRET_BYTES);
        // Takes as long wherever they differ.
        self.mac(self.side.other(), body).verify_slice(proof).map_err(|_| GreetError::NoProof)?;
        let card = Card::read(body).ok_or(GreetError::NoGreeting)?;
        if card.to != self.own.from {
            return Err(GreetError::NotMeant { to: card.to, own: self.own.from });
        }
        let mut send = Vec::new();
        if self.side == Side::Callee {
            self.own.to = card.from;
            send = self.proof();
        } else if card.from != self.own.to {
            return Err(GreetError::NotMeant { to: self.own.to, own: card.from });
        }
        Ok(Turn { send, met: Some(card) })
    }

    fn proof(&self) -> Vec<u8> {
        let body = self.own.to_bytes();
        [&self.mac(self.side, &body).finalize().into_bytes()[..], &body].concat()
    }

    /// The proof of a side, with what it says.
    fn mac(&self, side: Side, body: &[u8]) -> Hmac<Sha256> {
        let theirs = self.theirs.unwrap_or_default();
        let [caller, callee] = match self.side {
            Side::Caller => [&self.once, &theirs],
            Side::Callee => [&theirs, &self.once],
        };
        self.secret.mac(&[&MAGIC, side.word(), caller, callee, body])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLER: End = End::Replica(3, 1);
    const CALLEE: End = End::Replica(3, 0);

    fn secret(byte: u8) -> Secret {
        Secret::new([byte; SECRET_BYTES])
    }

    fn card(from: End, to: End) -> Card {
        Card { from, to, pid: 77, digest: Digest::of(b"a program") }
    }

    fn ends(caller_secret: Secret, to: End) -> [Greeting; 2] {
        let caller = card(CALLER, to);
        let callee = Card { pid: 78, ..card(CALLEE, CALLEE) };
        [
            Greeting::new(Side::Caller, caller_secret, caller, [5; SECRET_BYTES]),
            Greeting::new(Side::Callee, secret(1), callee, [6; SECRET_BYTES]),
        ]
    }

    /// Carries bytes to and fro, so many at a time; who met whom, or the first refusal.
    fn greet(ends: &mut [Greeting; 2], step: usize) -> Result<[Option<Card>; 2], GreetError> {
        let mut met = [None; 2];
        let mut ways = [ends[1].hello(), ends[0].hello()];
        while ways.iter().any(|it| !it.is_empty()) {
            for idx in 0..2 {
                let n = step.min(ends[idx].wants()).min(ways[idx].len());
                let bytes: Vec<u8> = ways[idx].drain(..n).collect();
                if bytes.is_empty() {
                    continue;
                }
                let turn = ends[idx].take(&bytes)?;
                met[idx] = met[idx].or(turn.met);
                ways[1 - idx].extend(turn.send);
            }
        }
        Ok(met)
    }

    #[test]
    fn two_ends_of_a_job_meet_however_their_bytes_come() {
        for step in [1, 7, 40, 1000] {
            let met = greet(&mut ends(secret(1), CALLEE), step).unwrap();
            let [at_caller, at_callee] = met.map(Option::unwrap);
            assert_eq!((at_caller.from, at_caller.pid), (CALLEE, 78));
            assert_eq!((at_callee.from, at_callee.pid), (CALLER, 77));
            assert_eq!(at_callee.digest, Digest::of(b"a program"));
        }
    }

    #[test]
    fn another_secret_is_refused_by_who_is_called_before_it_proves_anything() {
        let mut pair = ends(secret(2), CALLEE);
        let theirs = pair[1].hello();
        let proof = pair[0].take(&theirs).unwrap().send;
        let hello = pair[0].hello();
        assert_eq!(pair[1].take(&hello), Ok(Turn::default()));
        assert_eq!(pair[1].take(&proof), Err(GreetError::NoProof));
    }

    #[test]
    fn a_call_that_means_another_is_refused() {
        let other = End::Replica(3, 2);
        let refused = greet(&mut ends(secret(1), other), 40);
        assert_eq!(refused, Err(GreetError::NotMeant { to: other, own: CALLEE }));
    }

    #[test]
    fn garbage_is_refused_at_its_first_byte_that_is_none_of_a_greeting() {
        let mut callee = ends(secret(1), CALLEE)[1].clone();
        assert_eq!(callee.take(b"sel"), Ok(Turn::default()));
        assert_eq!(callee.take(b"GET"), Err(GreetError::NoGreeting));
    }

    #[test]
    fn every_flip_in_a_greeting_is_refused_and_a_proof_is_of_no_use_again() {
        let [caller, callee] = ends(secret(1), CALLEE);
        let mut asked = caller.clone();
        let proof = asked.take(&callee.hello()).unwrap().send;
        let run = |hello: &[u8], proof: &[u8], once: u8| {
            let mut callee = Greeting { once: [once; SECRET_BYTES], ..callee.clone() };
            callee.take(hello)?;
            callee.take(proof)
        };
        assert!(run(&caller.hello(), &proof, 6).unwrap().met.is_some());
        assert_eq!(run(&caller.hello(), &proof, 7), Err(GreetError::NoProof), "said again");
        for bit in 0..8 * (HELLO_BYTES + proof.len()) {
            let mut both = [caller.hello(), proof.clone()].concat();
            both[bit / 8] ^= 1 << (bit % 8);
            let (hello, proof) = both.split_at(HELLO_BYTES);
            assert!(run(hello, proof, 6).is_err(), "bit {bit}");
        }
        // What a callee sends is no proof of a caller's.
        let mut mirrored = callee.clone();
        mirrored.take(&callee.hello()).unwrap();
        assert_eq!(mirrored.take(&mirrored.clone().proof()), Err(GreetError::NoProof));
    }

    #[test]
    fn a_mac_is_that_of_the_standard_and_a_secret_is_read_as_it_was_written() {
        // RFC 4231, test case 1, whose key of 20 bytes is filled up with zeros.
        let mut key = [0; SECRET_BYTES];
        key[..20].fill(0x0b);
        let mac = Secret::new(key).mac(&[b"Hi ", b"There"]).finalize().into_bytes().into();
        let wanted = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
        assert_eq!(Secret::new(mac).to_text(), wanted);
        assert_eq!(Secret::from_text(wanted), Some(Secret::new(mac)));
        for wrong in ["", &wanted[1..], &wanted.replace('b', "g"), &wanted.replace("b0", "é")] {
            assert_eq!(Secret::from_text(wrong), None, "{wrong}");
        }
    }
}
