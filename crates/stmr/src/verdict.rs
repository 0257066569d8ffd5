//! Who is right when the replicas of a cluster offer different contents.
//!
//! All live replicas hold the same offers and call [`judge`] on them, so all hold the same verdict
//! without telling each other (seed 003, definitions 5 to 8).

use crate::digest::{Digest, Shape};

/// Which replica of its cluster, and so which set: 0, 1 or 2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(u8);

/// The most replicas that a cluster has.
pub const REPLICAS_MAX: usize = 3;

impl SetId {
    /// The set of this number.
    ///
    /// # Panics
    /// If there is no such set.
    #[must_use]
    pub fn new(number: usize) -> Self {
        assert!(number < REPLICAS_MAX, "set {number} of {REPLICAS_MAX}");
        Self(number as u8)
    }

    /// Its number.
    #[must_use]
    pub fn idx(self) -> usize {
        self.0.into()
    }

    /// The first `replicas` sets.
    pub fn all(replicas: usize) -> impl Iterator<Item = Self> {
        (0..replicas.min(REPLICAS_MAX)).map(Self::new)
    }
}

/// Some of a cluster's replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sets(u8);

impl Sets {
    /// None.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn contains(self, set: SetId) -> bool {
        self.0 & 1 << set.0 != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = SetId> {
        SetId::all(REPLICAS_MAX).filter(move |it| self.contains(*it))
    }
}

impl From<SetId> for Sets {
    fn from(set: SetId) -> Self {
        Self(1 << set.0)
    }
}

impl FromIterator<SetId> for Sets {
    fn from_iter<T: IntoIterator<Item = SetId>>(sets: T) -> Self {
        Self(sets.into_iter().fold(0, |all, it| all | 1 << it.0))
    }
}

impl std::fmt::Debug for SetId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "set{}", self.0)
    }
}

impl std::fmt::Display for SetId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "set{}", self.0)
    }
}

/// What a replica is about to let out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offer {
    /// How many compares this replica has made before.
    pub call: u64,
    /// How many events it has taken before.
    pub event: u64,
    /// What the call is.
    pub shape: Shape,
    /// Its contents.
    pub digest: Digest,
    /// Their length in bytes.
    pub length: u64,
    /// How many signals this replica has heard of; it is no part of what is compared.
    pub signals: u32,
    /// It would rather not lead from here on; no part of what is compared either.
    pub yields: bool,
    /// What is compared was held back for long; no part of what is compared either.
    pub tarries: bool,
    /// A message has come here for the receive that the program would cancel; no part of what is
    /// compared either.
    pub took: bool,
}

impl Offer {
    /// Whether both are the same contents from the same place of the same program.
    #[must_use]
    pub fn agrees(&self, other: &Self) -> bool {
        self.is_same_call(other) && self.digest == other.digest
    }

    /// Whether both come from the same place of the same program.
    #[must_use]
    pub fn is_same_call(&self, other: &Self) -> bool {
        (self.call, self.event, self.shape, self.length)
            == (other.call, other.event, other.shape, other.length)
    }
}

/// What a replica offered at some compares: two or three, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Offers(Vec<Offer>);

impl Offers {
    pub(crate) fn at(&self, call: u64) -> Option<&Offer> {
        self.0.iter().find(|it| it.call == call)
    }

    pub(crate) fn keep(&mut self, offer: Offer) {
        if self.0.last().is_none_or(|it| it.call < offer.call) {
            self.0.push(offer);
            return;
        }
        let idx = self.0.partition_point(|it| it.call < offer.call);
        if self.0[idx].call == offer.call {
            self.0[idx] = offer;
        } else {
            self.0.insert(idx, offer);
        }
    }

    pub(crate) fn forget_before(&mut self, call: u64) {
        self.0.retain(|it| call <= it.call);
    }

    pub(crate) fn all(&self) -> &[Offer] {
        &self.0
    }
}

/// What became of a compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A majority agrees on `offer`.
    Agreed {
        /// What the majority offers.
        offer: Offer,
        /// Whose contents differ; they are marked, and send the majority's.
        wrong: Vec<SetId>,
        /// Who makes another call; nothing can mend them.
        strayed: Vec<SetId>,
    },
    /// More than one replica of the cluster erred: the program starts again (definition 8).
    Restart(Double),
}

/// Why a cluster cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Double {
    /// Two replicas are left and differ, or three make different calls.
    #[error("its replicas differ and no majority is right")]
    NoMajority,
    /// Three replicas make the same call with three different contents, which no single fault does.
    #[error(
        "all three replicas make the same call with different contents: two errors at once, or the \
         program is not deterministic here"
    )]
    NotDeterministic,
    /// One replica is left, so there is nobody to compare with.
    #[error("one replica is left, with nobody to compare with")]
    Lone,
    /// There was one only, and it died.
    #[error("it died, and has no replica that could go on (-r 1)")]
    Gone,
    /// Every set has lost a member, so nobody can be fed.
    #[error("every set has lost a process, so no whole copy of the program is left")]
    NoWholeSet,
    /// One died while others may have been in MPI_Init, and may stay there for ever.
    #[error("a replica died before all processes had come through MPI_Init")]
    Early,
}

impl Double {
    /// Whether replicas died, and none differed.
    #[must_use]
    pub fn is_of_deaths(self) -> bool {
        match self {
            Self::Lone | Self::Gone | Self::NoWholeSet | Self::Early => true,
            Self::NoMajority | Self::NotDeterministic => false,
        }
    }
}

/// The verdict on what `replicas` replicas offer; a dead one may have offered before it died.
///
/// A majority is two: with three offers one may differ, with two none.
#[must_use]
pub fn judge(offers: &[Option<&Offer>], replicas: usize) -> Verdict {
    let needed = replicas.min(2);
    let mut all = offers.iter().flatten();
    if let Some(&&offer) = all.next()
        && needed <= 1 + all.clone().count()
        && all.all(|it| it.agrees(&offer))
    {
        return Verdict::Agreed { offer, wrong: Vec::new(), strayed: Vec::new() };
    }
    let there: Vec<(SetId, &Offer)> = SetId::all(offers.len())
        .zip(offers)
        .filter_map(|(set, offer)| Some((set, (*offer)?)))
        .collect();
    let majority = there
        .iter()
        .find(|(_, offer)| there.iter().filter(|it| it.1.agrees(offer)).count() >= needed);
    let Some(&(_, &offer)) = majority else {
        let same_call = there.windows(2).all(|it| it[0].1.is_same_call(it[1].1));
        return Verdict::Restart(match there.len() {
            0 | 1 => Double::Lone,
            3.. if same_call => Double::NotDeterministic,
            _ => Double::NoMajority,
        });
    };
    let others = || there.iter().filter(|it| !it.1.agrees(&offer));
    let is_same = |it: &&(SetId, &Offer)| it.1.is_same_call(&offer);
    Verdict::Agreed {
        offer,
        wrong: others().filter(is_same).map(|it| it.0).collect(),
        strayed: others().filter(|it| !is_same(it)).map(|it| it.0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: [Option<(u64, u128)>; 3], wanted: &str) {
        let offers = rows.map(|row| {
            row.map(|(shape, digest)| Offer {
                call: 7,
                event: 9,
                shape: Shape(shape),
                digest: Digest(digest),
                length: 4,
                // Who heard of more has not erred.
                signals: digest as u32,
                yields: digest == 2,
                tarries: digest == 2,
                took: digest == 2,
            })
        });
        let told = match judge(&offers.each_ref().map(Option::as_ref), 3) {
            Verdict::Agreed { wrong, strayed, .. } => {
                format!("wrong {wrong:?} strayed {strayed:?}")
            }
            Verdict::Restart(why) => format!("{why:?}"),
        };
        assert_eq!(told, wanted, "{rows:?}");
    }

    #[test]
    fn two_of_three_decide_and_one_of_two_does_not() {
        let (a, b, c, other) = (Some((1, 1)), Some((1, 2)), Some((1, 3)), Some((2, 1)));
        check([a, a, a], "wrong [] strayed []");
        check([b, a, a], "wrong [set0] strayed []");
        check([a, b, a], "wrong [set1] strayed []");
        check([a, a, other], "wrong [] strayed [set2]");
        check([a, b, c], "NotDeterministic");
        check([a, b, other], "NoMajority");
        check([a, None, a], "wrong [] strayed []");
        check([a, None, b], "NoMajority");
        check([None, a, None], "Lone");
    }

    #[test]
    fn one_replica_alone_is_always_agreed() {
        let (shape, digest) = (Shape(1), Digest(1));
        let offer = Offer {
            call: 0,
            event: 0,
            shape,
            digest,
            length: 0,
            signals: 0,
            yields: false,
            tarries: false,
            took: false,
        };
        assert!(matches!(judge(&[Some(&offer)], 1), Verdict::Agreed { .. }));
    }
}
