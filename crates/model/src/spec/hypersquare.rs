//! Hyper-square machines in a plant file: boards of four chips in a mesh (seed 004).

use std::fmt::Write as _;

use crate::fabric::LinkKind;
use crate::limits;
use crate::spec::error::Wrong;
use crate::spec::plant::Family;
use crate::spec::reader::{Reader, Table, shortened};
use crate::unit::{BitRate, Length, Span};

pub(super) const KEYS: &[&str] =
    &["groups", "pitch_mm", "wire", "reach_mm", "ns_per_m", "gbps", "control"];
const WIRES: &[&str] = &["copper", "fibre"];

/// How long a bit takes over one metre, in nanoseconds.  Assumed: two thirds of the speed of light,
/// for copper and for glass.
pub const NS_PER_M: u16 = 5;

/// One hyper-square machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyperSquare {
    /// Rows and columns of boards; each board is one group of four chips (seed 004, claim 11).
    pub groups: [u16; 2],
    /// From a chip to its like on the next board, and so the length of every cable.
    pub pitch: Length,
    /// What the cables between boards are.
    pub wire: Wire,
    /// The longest cable of that kind.
    pub reach: Length,
    /// How long a bit takes over one metre, in nanoseconds.
    pub ns_per_m: u16,
    /// What each chip-to-chip link carries in each direction.
    pub rate: BitRate,
}

/// What cables between boards are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// Passive copper (seed 004, claim 10).
    Copper,
    /// Optical fibre.
    Fibre,
}

impl Wire {
    /// What links of `kind` run on, where the kind says it.
    pub const fn of(kind: LinkKind) -> Option<Self> {
        match kind {
            LinkKind::Ici | LinkKind::Board => Some(Wire::Copper),
            LinkKind::Fibre => Some(Wire::Fibre),
            LinkKind::Pcie | LinkKind::NvLink | LinkKind::Ethernet | LinkKind::Socket => None,
        }
    }

    /// The word of the file.
    pub const fn word(self) -> &'static str {
        match self {
            Wire::Copper => "copper",
            Wire::Fibre => "fibre",
        }
    }

    /// The longest cable where the file says nothing.
    pub const fn reach(self) -> Length {
        match self {
            // IEEE 802.3ck: passive copper at 100 Gb/s a lane, up to 2 m.
            Wire::Copper => Length::mm(2_000),
            // Assumed: 100 m of multi-mode fibre.
            Wire::Fibre => Length::mm(100_000),
        }
    }
}

impl HyperSquare {
    /// A machine of so many groups with every default.
    pub const fn of_groups(groups: [u16; 2]) -> Self {
        Self {
            groups,
            // Assumed: boards side by side in a cabinet, cables included.
            pitch: Length::mm(600),
            wire: Wire::Copper,
            reach: Wire::Copper.reach(),
            ns_per_m: NS_PER_M,
            // Assumed: 50 GB/s.
            rate: BitRate::gbps(400),
        }
    }

    /// How many boards there are.
    pub fn n_groups(&self) -> usize {
        usize::from(self.groups[0]) * usize::from(self.groups[1])
    }

    /// Between two chips of a board: half the way to the next board, so that chips stand at equal
    /// distances.
    pub const fn board_length(&self) -> Length {
        Length::mm(self.pitch.as_mm() / 2)
    }

    /// How long a bit takes over `length`.
    pub const fn delay(&self, length: Length) -> Span {
        length.time_at(self.ns_per_m)
    }
}

/// Reads `16x16`.
///
/// # Errors
/// What is wrong with the text.
pub fn groups_of(text: &str) -> Result<[u16; 2], Wrong> {
    let side = |it: &str| it.bytes().all(|b| b.is_ascii_digit()).then(|| it.parse().ok())?;
    let read = text.split_once('x').and_then(|(rows, columns)| Some([side(rows)?, side(columns)?]));
    let in_range = |it: &[u16; 2]| it.iter().all(|n| (1..=limits::GROUPS_SIDE_MAX).contains(n));
    read.filter(in_range).ok_or_else(|| Wrong::BadForm {
        key: "groups",
        value: shortened(text),
        form: "rows and columns of groups such as \"16x16\", each 1 to 64",
    })
}

pub(super) fn read(reader: &mut Reader, table: &Table<'_>) -> Option<Family> {
    let (text, at) = reader.need_text(table, "groups", "groups = \"16x16\"")?;
    let groups = groups_of(text).map_err(|wrong| reader.fault(at, wrong)).ok();
    let wire = reader.word(table, "wire", WIRES);
    let mut number = |key, max| reader.number(table, key, 1, max);
    let pitch = number("pitch_mm", u64::from(limits::WIRE_MM_MAX));
    let reach = number("reach_mm", u64::from(limits::WIRE_MM_MAX));
    let ns_per_m = number("ns_per_m", 100);
    let rate = number("gbps", 1_000_000);
    let mut it = HyperSquare::of_groups(groups?);
    let length = |n| Length::mm(u32::try_from(n).expect("bounded by the reader"));
    it.wire = wire.map_or(it.wire, |idx| [Wire::Copper, Wire::Fibre][idx]);
    it.pitch = pitch.map_or(it.pitch, length);
    it.reach = reach.map_or(it.wire.reach(), length);
    it.ns_per_m =
        ns_per_m.map_or(it.ns_per_m, |n| u16::try_from(n).expect("bounded by the reader"));
    it.rate = rate.map_or(it.rate, BitRate::gbps);
    if it.reach < it.pitch {
        let (wire, length, reach) = (it.wire.word(), it.pitch, it.reach);
        let key = ["pitch_mm", "wire", "reach_mm"].into_iter().find(|it| table.has(it));
        let at = table.value_at(key.unwrap_or("groups"));
        reader.fault(at, Wrong::WireTooLong { wire, length, reach });
        return None;
    }
    Some(Family::HyperSquare(it))
}

pub(super) fn render(out: &mut String, it: &HyperSquare) {
    let default = HyperSquare::of_groups(it.groups);
    let _ = writeln!(out, "groups = \"{}x{}\"", it.groups[0], it.groups[1]);
    if it.pitch != default.pitch {
        let _ = writeln!(out, "pitch_mm = {}", it.pitch.as_mm());
    }
    if it.wire != default.wire {
        let _ = writeln!(out, "wire = \"{}\"", it.wire.word());
    }
    if it.reach != it.wire.reach() {
        let _ = writeln!(out, "reach_mm = {}", it.reach.as_mm());
    }
    if it.ns_per_m != default.ns_per_m {
        let _ = writeln!(out, "ns_per_m = {}", it.ns_per_m);
    }
    if it.rate != default.rate {
        let _ = writeln!(out, "gbps = {}", it.rate.bps() / 1_000_000_000);
    }
}

/// What it is, in words.
pub(super) fn words(it: &HyperSquare) -> String {
    let [rows, columns] = it.groups;
    let (wire, reach) = (it.wire.word(), it.reach);
    format!(
        "{rows}x{columns} groups, {} apart on {wire} of at most {reach}, {}ns/m, {}",
        it.pitch, it.ns_per_m, it.rate
    )
}
