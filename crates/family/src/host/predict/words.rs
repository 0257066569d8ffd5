//! The variables of the tuning model.  `NCCL_ALGO` and `NCCL_PROTO` are lists such as `Ring`,
//! `^Tree`, and from 2.24 on also one for each operation: `ring;allreduce:tree`.

use crate::host::nccl::profile::Profile;
use crate::host::predict::{Algorithm, Op, Protocol};

/// What the variables leave to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct Wishes {
    /// Algorithms by operation.
    algorithms: [[bool; Algorithm::ALL.len()]; 5],
    /// Protocols by operation.
    protocols: [[bool; 3]; 5],
    /// Whether `NCCL_PROTO` says which of an operation, so that LL128 is used wherever it is named.
    named: [bool; 5],
    /// Servers from which on a network reduces: `NCCL_COLLNET_NODE_THRESHOLD`.
    pub(super) collnet_nodes: usize,
    /// Whether PAT is used; NCCL's own rule where `NCCL_PAT_ENABLE` does not say.
    pub(super) pat: Option<bool>,
    /// What a post to the network costs a processor, in us; by its maker where
    /// `NCCL_NET_OVERHEAD` does not say.
    pub(super) net_overhead_us: Option<f32>,
    /// Whether LL128 goes over chip-to-chip links: `NCCL_LL128_C2C`.
    pub(super) ll128_c2c: bool,
    /// Variables that are set and that this version does not read.
    pub(super) unread: Vec<&'static str>,
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
    /// A value that is no number.
    #[error("{variable} is {value:?}; a whole number is expected")]
    NoNumber {
        /// Which variable.
        variable: &'static str,
        /// Its value.
        value: String,
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

const ALGO: &str = "NCCL_ALGO";
const PROTO: &str = "NCCL_PROTO";
const THRESHOLD: &str = "NCCL_COLLNET_NODE_THRESHOLD";
const PAT: &str = "NCCL_PAT_ENABLE";
const OVERHEAD: &str = "NCCL_NET_OVERHEAD";
const OVER_C2C: &str = "NCCL_LL128_C2C";

impl Wishes {
    /// The variables that are read here, and the first of our versions that reads each.
    pub const VARIABLES: [(&str, Profile); 6] = [
        (ALGO, Profile::V2_7_8),
        (PROTO, Profile::V2_7_8),
        (THRESHOLD, Profile::V2_18_5),
        (PAT, Profile::V2_27_7),
        (OVERHEAD, Profile::V2_18_5),
        (OVER_C2C, Profile::V2_27_7),
    ];

    /// Whether a variable is read here.
    pub fn names(name: &str) -> bool {
        Wishes::VARIABLES.iter().any(|it| it.0 == name)
    }

    /// Reads the variables; the last of one name counts.
    ///
    /// # Errors
    /// [`NoWord`].
    pub fn read(profile: Profile, env: &[(String, String)]) -> Result<Wishes, NoWord> {
        let mut wishes = Wishes {
            algorithms: [[true; Algorithm::ALL.len()]; 5],
            protocols: [[true; 3]; 5],
            named: [false; 5],
            collnet_nodes: 2,
            pat: None,
            net_overhead_us: None,
            ll128_c2c: true,
            unread: Vec::new(),
        };
        for (variable, since) in Wishes::VARIABLES {
            let value = env.iter().rev().find(|it| it.0 == variable).map(|it| it.1.as_str());
            let Some(value) = value.filter(|it| !it.is_empty()) else { continue };
            if profile < since {
                wishes.unread.push(variable);
            } else {
                wishes.set(profile, variable, value)?;
            }
        }
        Ok(wishes)
    }

    fn set(&mut self, profile: Profile, variable: &'static str, value: &str) -> Result<(), NoWord> {
        let number = || {
            let value = value.trim();
            value.parse::<i64>().map_err(|_| NoWord::NoNumber { variable, value: value.to_owned() })
        };
        match variable {
            ALGO => {
                let known: Vec<_> =
                    Algorithm::ALL.into_iter().filter(|it| it.exists_in(profile)).collect();
                let names: Vec<_> = known.iter().map(|it| it.name()).collect();
                let list = List { variable, value, profile, names: &names };
                list.read(|op, set| {
                    // Until 2.18 a ring was never taken from what had nothing else.
                    let keeps_ring = profile <= Profile::V2_18_5 && op != Op::AllReduce;
                    for (&algorithm, &set) in known.iter().zip(set) {
                        let keeps = keeps_ring && algorithm == Algorithm::Ring;
                        self.algorithms[op as usize][algorithm as usize] = set || keeps;
                    }
                })?;
            }
            PROTO => {
                let names = Protocol::ALL.map(Protocol::name);
                let list = List { variable, value, profile, names: &names };
                list.read(|op, set| {
                    self.protocols[op as usize].copy_from_slice(set);
                    self.named[op as usize] = true;
                })?;
            }
            THRESHOLD => self.collnet_nodes = usize::try_from(number()?).unwrap_or(0),
            PAT => self.pat = Some(number()?).filter(|it| *it != 2).map(|it| it != 0),
            OVERHEAD => {
                let posts = Some(number()?).filter(|it| *it != -2);
                self.net_overhead_us = posts.map(|it| (it as f64 * 0.001) as f32);
            }
            _ => self.ll128_c2c = number()? != 0,
        }
        Ok(())
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
    names: &'a [&'a str],
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
}
