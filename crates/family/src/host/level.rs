//! What the numbers in NCCL's messages mean: "distance 7 > 4" is another thing in each version.
//! Notes §3a.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;

/// A released version of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// 2 in 2.27.7.
    pub major: u32,
    /// 27 in 2.27.7.
    pub minor: u32,
    /// 7 in 2.27.7.
    pub patch: u32,
}

/// A text that is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no version of NCCL; write it as 2.27.7")]
pub struct NoRelease {
    text: String,
}

/// Versions that count path types alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The first of them.
    pub since: Release,
    /// Path types in order: the first has number 0.
    pub kinds: &'static [PathKind],
}

/// All schemes, oldest first.
pub const SCHEMES: [Scheme; 5] = {
    use PathKind::{C2c, Dis, Loc, Net, Nvb, Nvl, P2c, Phb, Pix, Pxb, Pxn, Sys};
    const fn scheme(minor: u32, patch: u32, kinds: &'static [PathKind]) -> Scheme {
        Scheme { since: Release { major: 2, minor, patch }, kinds }
    }
    [
        scheme(6, 4, &[Loc, Nvl, Pix, Pxb, Phb, Sys, Net]),
        scheme(8, 3, &[Loc, Nvl, Nvb, Pix, Pxb, Phb, Sys, Net]),
        scheme(12, 7, &[Loc, Nvl, Nvb, Pix, Pxb, Pxn, Phb, Sys, Net, Dis]),
        scheme(26, 2, &[Loc, Nvl, Nvb, C2c, Pix, Pxb, Pxn, Phb, Sys, Net, Dis]),
        scheme(27, 3, &[Loc, Nvl, Nvb, C2c, Pix, Pxb, P2c, Pxn, Phb, Sys, Net, Dis]),
    ]
};

impl Scheme {
    /// The scheme of a version, none for those before the first that is known here.
    pub fn of(release: Release) -> Option<Scheme> {
        SCHEMES.into_iter().rev().find(|it| it.since <= release)
    }

    /// The path type with that number.
    pub fn kind(self, number: usize) -> Option<PathKind> {
        self.kinds.get(number).copied()
    }

    /// The number of a path type.
    pub fn number(self, kind: PathKind) -> Option<usize> {
        self.kinds.iter().position(|it| *it == kind)
    }
}

impl Release {
    /// The version of a profile.
    pub fn of(profile: Profile) -> Release {
        let code = profile.code();
        // 2.7.8 is 20708 from 2.9 on, and its own header's 2708 is not used here.
        Release { major: code / 10_000, minor: code / 100 % 100, patch: code % 100 }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Release {
    type Err = NoRelease;

    /// Takes 2.27.7, 2.27 and what NCCL prints of itself, 2.27.7+cuda12.9.
    fn from_str(text: &str) -> Result<Self, NoRelease> {
        let error = || NoRelease { text: text.to_owned() };
        let number = text.split(['+', '-']).next().unwrap_or(text);
        let mut parts = number.split('.').map(|it| it.parse::<u32>().map_err(|_| error()));
        let major = parts.next().ok_or_else(error)??;
        let minor = parts.next().ok_or_else(error)??;
        let patch = parts.next().transpose()?.unwrap_or(0);
        if parts.next().is_some() { Err(error()) } else { Ok(Release { major, minor, patch }) }
    }
}

/// A path type in words.
pub fn words(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Loc => "the device itself",
        PathKind::Nvl => "NVLink",
        PathKind::Nvb => "NVLink by way of another GPU",
        PathKind::C2c => "the chip-to-chip link",
        PathKind::Pix => "one PCI switch at most",
        PathKind::Pxb => "several PCI switches, no CPU",
        PathKind::P2c => "chip-to-chip to the CPU, PCI from there",
        PathKind::Pxn => "NVLink to the GPU next to the port",
        PathKind::Phb => "through a CPU",
        PathKind::Sys => "between CPUs",
        PathKind::Net => "over the network",
        PathKind::Dis => "not connected",
    }
}

#[cfg(test)]
mod tests {
    use super::{Release, SCHEMES, Scheme};
    use crate::host::nccl::path::PathKind;
    use crate::host::nccl::profile::Profile;

    #[test]
    fn seven_means_another_thing_in_each_version() {
        let seven = |text: &str| {
            let release: Release = text.parse().expect("a version");
            Scheme::of(release).and_then(|it| it.kind(7)).map(PathKind::name)
        };
        let versions = ["2.4.8", "2.7.8", "2.8.3", "2.18.5+cuda12.2", "2.26.2", "2.27", "2.30.7"];
        let expected =
            [None, None, Some("NET"), Some("SYS"), Some("PHB"), Some("PHB"), Some("PXN")];
        assert_eq!(versions.map(seven), expected);
    }

    #[test]
    fn every_scheme_counts_from_near_to_far() {
        for scheme in SCHEMES {
            assert!(scheme.kinds.is_sorted(), "{}", scheme.since);
        }
    }

    #[test]
    fn a_profile_s_scheme_knows_what_the_profile_knows() {
        for profile in Profile::ALL {
            let release = Release::of(profile);
            assert_eq!(release.to_string(), profile.to_string());
            let scheme = Scheme::of(release).expect("paths have types");
            let known = PathKind::ALL.into_iter().filter(|it| it.exists_in(profile));
            assert!(known.eq(scheme.kinds.iter().copied()), "{profile}");
        }
    }
}
