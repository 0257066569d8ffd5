//! The chain: a checksum of each row over all rows before it.
//!
//! `chain(n) = SHA-256(chain(n-1) ‖ n ‖ at_ns ‖ body)`, numbers as 8 bytes, most significant
//! first, and `chain(0)` is 32 zero bytes.  A row that is changed, moved, added or taken away
//! breaks it at that row.  SHA-256 because every auditor's own tools compute it.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::store::{Row, Snapshot};

/// The checksum of one row over all rows before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Chain(pub [u8; 32]);

impl Chain {
    /// Reads what [`fmt::Display`] writes.
    pub(crate) fn from_hex(text: &str) -> Option<Chain> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = str::from_utf8(pair).expect("hex digits are ASCII");
            *byte = u8::from_str_radix(pair, 16).expect("two hex digits fit a byte");
        }
        Some(Chain(bytes))
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// How far a chain has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The last row's number; 0 before the first.
    pub(crate) number: u64,
    /// The last row's checksum.
    pub(crate) chain: Chain,
}

impl Link {
    /// Before the first row.
    pub(crate) const START: Link = Link { number: 0, chain: Chain([0; 32]) };

    /// The link of `row`, given that `self` is the link of the row before.
    pub(crate) fn then(self, row: &Row) -> Link {
        let mut hash = Sha256::new();
        hash.update(self.chain.0);
        hash.update(row.number.to_be_bytes());
        hash.update(row.at_ns.to_be_bytes());
        hash.update(row.body.as_bytes());
        Link { number: row.number, chain: Chain(hash.finalize().into()) }
    }
}

/// The digest of a snapshot, which ties it to the journal up to its row.
pub(crate) fn digest(snapshot: &Snapshot, under: Chain) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(under.0);
    hash.update(snapshot.number.to_be_bytes());
    hash.update(snapshot.at_ns.to_be_bytes());
    hash.update((snapshot.version.len() as u64).to_be_bytes());
    hash.update(snapshot.version.as_bytes());
    hash.update(&snapshot.body);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected text is what `sha256sum` says of the 50 bytes.
    #[test]
    fn the_chain_is_what_other_tools_compute() {
        let row = Row { number: 1, at_ns: 2, body: "{}".to_owned() };
        let link = Link::START.then(&row);
        assert_eq!(link.number, 1);
        assert_eq!(
            link.chain.to_string(),
            "2ec439adf82db5d55ef5e90f5610fa2d5258c72272fbd2ba9ada02bb288b2720"
        );
    }

    #[test]
    fn hex_reads_back_and_nothing_else_does() {
        let chain = Link::START.then(&Row { number: 1, at_ns: 2, body: "{}".to_owned() }).chain;
        assert_eq!(Chain::from_hex(&chain.to_string()), Some(chain));
        assert_eq!(Chain::from_hex("00"), None);
        assert_eq!(Chain::from_hex(&"é".repeat(32)), None);
        assert_eq!(Chain::from_hex(&"+1".repeat(32)), None);
    }
}
