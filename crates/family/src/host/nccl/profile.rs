//! The versions whose decisions are reproduced, and the constants in which they differ.
//! Notes §3a–§3e.

use std::fmt;
use std::str::FromStr;

use crate::host::nccl::width::Width;

/// A version of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// July 2020: the version of seed 002, with its quirks.
    V2_7_8,
    /// 2023, before files of several hosts were merged.
    V2_18_5,
    /// 2024, the last whose P2P went by the kind of processor.
    V2_21_5,
    /// 2025.
    V2_27_7,
    /// 2026, the last in which a GPU hangs on the bus itself.
    V2_29_7,
    /// The newest whose decisions are known.
    V2_30_7,
}

impl Profile {
    /// All of them, oldest first.
    pub const ALL: [Profile; 6] = [
        Profile::V2_7_8,
        Profile::V2_18_5,
        Profile::V2_21_5,
        Profile::V2_27_7,
        Profile::V2_29_7,
        Profile::V2_30_7,
    ];

    /// As NCCL's own header has it: 22707 is 2.27.7.
    pub fn code(self) -> u32 {
        match self {
            Profile::V2_7_8 => 20708,
            Profile::V2_18_5 => 21805,
            Profile::V2_21_5 => 22105,
            Profile::V2_27_7 => 22707,
            Profile::V2_29_7 => 22907,
            Profile::V2_30_7 => 23007,
        }
    }

    /// Whether this is the seed's version.
    pub fn is_seed(self) -> bool {
        self == Profile::V2_7_8
    }

    /// Whether GPUs hang on a device node of their own.
    pub fn has_devices(self) -> bool {
        self >= Profile::V2_30_7
    }

    /// Whether ports stay when the job does not leave the server, from 2.28.7 on.
    pub fn keeps_ports(self) -> bool {
        self >= Profile::V2_29_7
    }

    /// Whether chip-to-chip links are a kind of their own, and all that came with 2.22 to 2.26:
    /// functions of a card told apart, P2P by distance alone, no link from a GPU to itself.
    pub fn has_c2c(self) -> bool {
        self >= Profile::V2_27_7
    }

    /// Whether the quote that began a value of a file ends it; before, a double one does.
    pub(crate) fn ends_values_as_begun(self) -> bool {
        self.has_c2c()
    }

    /// Whether ids carry the host.
    pub fn has_hosts(self) -> bool {
        self >= Profile::V2_21_5
    }

    /// Bound on channels: 64 since 2.22.
    pub(crate) fn channels(self) -> usize {
        if self.has_c2c() { 64 } else { 32 }
    }

    /// One NVLink of a GPU of that compute capability.
    pub(crate) fn nvlink(self, sm: i32) -> Width {
        if self.is_seed() {
            return Width(if sm == 60 { 18.0 } else { 21.0 });
        }
        Width(match sm {
            100.. if self.has_c2c() => 40.1,
            90.. if self == Profile::V2_18_5 => 20.0,
            90.. => 20.6,
            86 => 12.0,
            70.. => 20.0,
            60.. => 18.0,
            _ => 20.0,
        })
    }

    /// What one lane of that `link_speed` carries, in NCCL's units of 100 Mbit/s.
    pub(crate) fn lane(self, speed: &str) -> f32 {
        const OLD: [(&str, f32); 4] =
            [("2.5 GT/s", 15.0), ("5 GT/s", 30.0), ("8 GT/s", 60.0), ("16 GT/s", 120.0)];
        const NEW: [(&str, f32); 6] = [
            ("32 GT/s", 240.0),
            ("5.0 GT/s PCIe", 30.0),
            ("8.0 GT/s PCIe", 60.0),
            ("16.0 GT/s PCIe", 120.0),
            ("32.0 GT/s PCIe", 240.0),
            ("64.0 GT/s PCIe", 480.0),
        ];
        /// Generation 3, which NCCL assumes where it knows no better.
        const UNKNOWN: f32 = 60.0;
        let new: &[(&str, f32)] = if self.is_seed() { &[] } else { &NEW };
        // A prefix decides: "32 GT/s PCIe/s" is "32 GT/s".
        OLD.iter().chain(new).find(|(it, _)| speed.starts_with(it)).map_or(UNKNOWN, |(_, it)| *it)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Profile::V2_7_8 => "2.7.8",
            Profile::V2_18_5 => "2.18.5",
            Profile::V2_21_5 => "2.21.5",
            Profile::V2_27_7 => "2.27.7",
            Profile::V2_29_7 => "2.29.7",
            Profile::V2_30_7 => "2.30.7",
        })
    }
}

/// A version that is not reproduced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("NCCL {found} is not reproduced; choose one of {}", names())]
pub struct UnknownProfile {
    found: String,
}

fn names() -> String {
    Profile::ALL.map(|it| it.to_string()).join(", ")
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let found = Profile::ALL.into_iter().find(|it| it.to_string() == text);
        found.ok_or_else(|| UnknownProfile { found: text.to_owned() })
    }
}
