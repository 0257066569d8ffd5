//! What healthy hardware is measured against.

use crate::unit::{CentiDb, Span};

/// The golden thresholds of a plant: what lies beyond them is out of specification, and the
/// intent check of preflight says so (seed 000 §3.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Thresholds {
    /// The most light that a switch port may lose, its fibre included.
    pub loss_max: CentiDb,
    /// How far the loss of a fibre may lie above what it was installed with.
    pub loss_excess_max: CentiDb,
    /// The fewest bits that a link must carry for each bit error.
    pub bits_per_error_min: u64,
    /// The fewest PCIe lanes that each chip must have trained.
    pub pcie_lanes_min: u8,
    /// The oldest PCIe generation that each chip may run at.
    pub pcie_generation_min: u8,
    /// How many corrected memory errors a chip may count within an hour.
    pub chip_errors_per_hour_max: u16,
    /// How often a link may lose its signal within `flap_window` and still be called healthy.
    pub flaps_max: u16,
    /// The window in which flaps are counted.
    pub flap_window: Span,
}

impl Thresholds {
    /// What holds where a plant file says nothing.
    pub const GOLDEN: Self = Self {
        // Urata et al. 2022: the loss of a Palomar switch lies below 2 dB.
        loss_max: CentiDb::new(200),
        // Assumed: half a decibel is what a dirty connector adds.
        loss_excess_max: CentiDb::new(50),
        // Assumed: one error in 10^12 bits, the usual bar of an optical link after correction.
        bits_per_error_min: 1_000_000_000_000,
        // Assumed, as the lanes of the modelled machines are: 16 lanes of generation 3.
        pcie_lanes_min: 16,
        pcie_generation_min: 3,
        // Assumed, as no source gives a TPUv4's.
        chip_errors_per_hour_max: 50,
        // gpud: a flap is three returns within ten minutes.
        flaps_max: 2,
        flap_window: Span::mins(10),
    };
}

impl Thresholds {
    /// Where each of [`Thresholds::GOLDEN`] comes from, in the order of the fields.
    pub const SOURCES: [&'static str; 8] = [
        "Urata et al. 2022: a Palomar switch loses less than 2 dB",
        "assumed: what a dirty connector adds",
        "assumed: one error in 10^12 bits",
        "assumed: the modelled machines have 16 lanes",
        "assumed: the modelled machines have generation 3",
        "assumed: no source gives a TPUv4's",
        "gpud: a flap is three returns",
        "gpud: within ten minutes",
    ];
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::GOLDEN
    }
}
