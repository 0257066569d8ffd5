//! `NCCL_ALGO` and `NCCL_PROTO`: lists such as `Ring`, `^Tree`, and from 2.24 on also one for each
//! operation: `ring;allreduce:tree`.

use crate::host::nccl::profile::Profile;
use crate::host::predict::{Algorithm, Op, Protocol};

/// What the variables leave to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// Algorithms by operation.
    algorithms: [[bool; 5]; 5],
    /// Protocols by operation.
    protocols: [[bool; 3]; 5],
    /// Whether `NCCL_PROTO` says which of an operation, so that LL128 is used wherever it is named.
    named: [bool; 5],
}

/// A word that has no meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWord {
    /// It is no algorithm or protocol of that version.
    #[error("{variable} names {word:?}; NCCL {profile} knows {known}")]
    Unknown {
        /// Which variable.
        variable: &'static str,
        /// Which word.
        word: String,
        /// The version.
        profile: Profile,
        /// What there is.
        known: String,
    },
    /// An operation that there is not.
    #[error("{variable} names no operation: {word:?} is none of {known}")]
    UnknownOp {
        /// Which variable.
        variable: &'static str,
        /// Which word.
        word: String,
        /// What there is.
        known: String,
    },
    /// Lists for operations, in a version that has one list for all.
    #[error("{variable} is {value:?}; NCCL {profile} takes one list for all operations")]
    NoPrefix {
        /// Which variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The version.
        profile: Profile,
    },
    /// A second list without an operation.
    #[error("{variable} is {value:?}; only its first list may be without an operation")]
    LateList {
        /// Which variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
}

/// Algorithms that NCCL has and that need a network which reduces: they may be named.
const OF_COLLNET: [&str; 2] = ["CollnetDirect", "CollnetChain"];

impl Wishes {
    /// The variables that are read here.
    pub const NAMES: [&str; 2] = ["NCCL_ALGO", "NCCL_PROTO"];

    /// Reads the variables; the last of one name counts.
    ///
    /// # Errors
    /// [`NoWord`].
    pub fn read(profile: Profile, env: &[(String, String)]) -> Result<Wishes, NoWord> {
        let mut wishes =
            Wishes { algorithms: [[true; 5]; 5], protocols: [[true; 3]; 5], named: [false; 5] };
        let value = |name| env.iter().rev().find(|it| it.0 == name).map(|it| it.1.as_str());
        if let Some(value) = value("NCCL_ALGO").filter(|it| !it.is_empty()) {
            let names = Algorithm::ALL.map(Algorithm::name);
            let list = List { variable: "NCCL_ALGO", value, profile, names: &names };
            list.read(|op, set| {
                // Until 2.23 a ring was never taken from what had nothing else.
                let keeps_ring = !has_prefixes(profile) && op != Op::AllReduce;
                for (at, &set) in set.iter().enumerate() {
                    let keeps = keeps_ring && Algorithm::ALL[at] == Algorithm::Ring;
                    wishes.algorithms[op as usize][at] = set || keeps;
                }
            })?;
        }
        if let Some(value) = value("NCCL_PROTO").filter(|it| !it.is_empty()) {
            let names = Protocol::ALL.map(Protocol::name);
            let list = List { variable: "NCCL_PROTO", value, profile, names: &names };
            list.read(|op, set| {
                wishes.protocols[op as usize].copy_from_slice(set);
                wishes.named[op as usize] = true;
            })?;
        }
        Ok(wishes)
    }

    /// Whether an algorithm may be used for `op`.
    pub(super) fn has_algorithm(&self, op: Op, algorithm: Algorithm) -> bool {
        self.algorithms[op as usize][algorithm as usize]
    }

    /// Whether a protocol may be used for `op`, and whether the user has said so himself.
    pub(super) fn protocol(&self, op: Op, protocol: Protocol) -> (bool, bool) {
        (self.protocols[op as usize][protocol as usize], self.named[op as usize])
    }
}

/// Whether a list may be for one operation.
fn has_prefixes(profile: Profile) -> bool {
    22400 <= profile.code()
}

struct List<'a> {
    variable: &'static str,
    value: &'a str,
    profile: Profile,
    names: &'a [&'static str],
}

impl List<'_> {
    fn read(&self, mut set: impl FnMut(Op, &[bool])) -> Result<(), NoWord> {
        let (variable, value, profile) = (self.variable, self.value.to_owned(), self.profile);
        for (idx, entry) in self.value.split(';').filter(|it| !it.is_empty()).enumerate() {
            let (ops, elements) = match entry.split_once(':') {
                Some(_) if !has_prefixes(profile) => {
                    return Err(NoWord::NoPrefix { variable, value, profile });
                }
                Some((prefix, elements)) => (vec![self.op(prefix)?], elements),
                None if idx != 0 => return Err(NoWord::LateList { variable, value }),
                None => (Op::ALL.to_vec(), entry),
            };
            let chosen = self.elements(elements)?;
            ops.into_iter().for_each(|op| set(op, &chosen));
        }
        Ok(())
    }

    fn op(&self, word: &str) -> Result<Op, NoWord> {
        const NAMES: [&str; 5] = ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"];
        let found = NAMES.iter().position(|it| it.eq_ignore_ascii_case(word));
        found.map(|it| Op::ALL[it]).ok_or_else(|| NoWord::UnknownOp {
            variable: self.variable,
            word: word.to_owned(),
            known: NAMES.join(", "),
        })
    }

    fn elements(&self, text: &str) -> Result<Vec<bool>, NoWord> {
        let (text, set) = match text.strip_prefix('^') {
            Some(rest) => (rest, false),
            None => (text, true),
        };
        let mut chosen = vec![!set; self.names.len()];
        for word in text.split(',').filter(|it| !it.is_empty()) {
            match self.names.iter().position(|it| it.eq_ignore_ascii_case(word)) {
                Some(at) => chosen[at] = set,
                None if self.is_of_collnet(word) => {}
                None => {
                    return Err(NoWord::Unknown {
                        variable: self.variable,
                        word: word.to_owned(),
                        profile: self.profile,
                        known: self.names.join(", "),
                    });
                }
            }
        }
        Ok(chosen)
    }

    fn is_of_collnet(&self, word: &str) -> bool {
        let is_named = |it: &&str| it.eq_ignore_ascii_case(word);
        self.variable == "NCCL_ALGO"
            && (OF_COLLNET.iter().any(is_named) || word.eq_ignore_ascii_case("CollNet"))
    }
}
