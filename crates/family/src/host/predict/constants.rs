//! The constants of NCCL's tuning model, as each version has them.
//!
//! Latencies are in us, widths in GB/s.  They were measured by NCCL's authors on machines of their
//! own; a library carries them as tables, from which these were read.  2.18.5 has 2.18.3's.

use crate::host::nccl::profile::Profile;
use crate::host::predict::{Algorithm, Protocol};

/// LL, LL128 and Simple, in us.
pub(super) type Latencies = [f32; 3];

/// By algorithm: Tree, Ring, CollNet of 2.7, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT.
type ByAlgorithm = [Latencies; 8];

/// By generation (Volta, Ampere, Hopper, Blackwell) and servers (1, 2, more), GB/s.
pub(super) type Caps = [[f64; 3]; 4];

pub(super) const NVLINK: usize = 0;
pub(super) const PCI: usize = 1;
pub(super) const NET: usize = 2;

/// What a version's model is made of.
pub(super) struct Constants {
    /// What an operation takes before anything moves.
    pub(super) base: ByAlgorithm,
    /// A step over NVLink, PCI and network.
    pub(super) hardware: [ByAlgorithm; 3],
    /// LL in all: alone by generation; over servers by processor, Intel's row and AMD's.
    pub(super) ll: Caps,
    /// LL128 of a ring's channel.
    pub(super) ring_ll128: Caps,
    /// LL128 of a tree's channel.
    pub(super) tree_ll128: Caps,
    /// A tree's channel.
    pub(super) tree: Caps,
    /// A channel of trees of NVSwitches.
    pub(super) nvls_tree: Caps,
}

impl Constants {
    pub(super) fn of(profile: Profile) -> &'static Constants {
        match profile {
            Profile::V2_7_8 => &V2_7,
            Profile::V2_18_5 => &V2_18,
            Profile::V2_21_5 => &V2_21,
            Profile::V2_27_7 => &V2_27,
            Profile::V2_29_7 => &V2_29,
            Profile::V2_30_7 => &V2_30,
        }
    }
}

const NONE: Latencies = [0.0; 3];

const fn simple(us: f32) -> Latencies {
    [0.0, 0.0, us]
}

const fn with_pat(mut row: ByAlgorithm, us: f32) -> ByAlgorithm {
    row[Algorithm::Pat as usize] = simple(us);
    row
}

const NO_CAPS: Caps = [[f64::MAX; 3]; 4];

const VOLTA: [f64; 3] = [20.0; 3];

const V2_7: Constants = Constants {
    base: [[4.4, 4.4, 0.0], [3.6, 10.0, 8.4], [4.4, 4.4, 0.0], NONE, NONE, NONE, NONE, NONE],
    hardware: [
        [[0.52, 1.2, 28.0], [0.47, 1.9, 3.4], [0.5, 1.2, 4.0], NONE, NONE, NONE, NONE, NONE],
        [[1.0, 1.9, 28.0], [1.0, 2.5, 5.7], [1.0, 1.9, 5.5], NONE, NONE, NONE, NONE, NONE],
        [[5.0, 8.5, 50.0], [2.7, 4.0, 9.6], [5.0, 5.0, 10.7], NONE, NONE, NONE, NONE, NONE],
    ],
    ll: NO_CAPS,
    ring_ll128: NO_CAPS,
    tree_ll128: NO_CAPS,
    tree: NO_CAPS,
    nvls_tree: NO_CAPS,
};

const V2_18: Constants = Constants {
    base: [
        [6.8, 14.0, 0.0],
        [6.6, 14.0, 8.4],
        NONE,
        [6.8, 14.0, 0.0],
        [6.8, 14.0, 0.0],
        simple(23.0),
        simple(23.0),
        NONE,
    ],
    hardware: [
        [[0.6, 1.25, 4.0], [0.6, 1.9, 3.4], NONE, simple(8.0), simple(4.75), NONE, NONE, NONE],
        [[1.0, 1.9, 6.0], [1.0, 2.5, 5.7], NONE, simple(8.0), simple(8.0), NONE, NONE, NONE],
        [
            [5.0, 8.5, 14.0],
            [2.7, 4.0, 14.0],
            NONE,
            simple(10.7),
            simple(14.0),
            simple(18.0),
            simple(19.0),
            NONE,
        ],
    ],
    ll: [[39.0, 39.0, 20.4], [87.7, 22.5, 19.0], [87.7, 22.5, 19.0], [87.7, 22.5, 19.0]],
    ring_ll128: [VOLTA, VOLTA, [36.7; 3], [36.7; 3]],
    tree_ll128: [VOLTA, VOLTA, [36.7, 36.7, 29.0], [36.7, 36.7, 29.0]],
    tree: [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [38.7, 41.4, 36.0], [38.7, 41.4, 36.0]],
    nvls_tree: NO_CAPS,
};

const V2_21: Constants = Constants {
    base: [[6.8, 14.0, 0.0], [6.6, 14.0, 8.4], NONE, NONE, NONE, NONE, NONE, NONE],
    hardware: [
        [
            [0.6, 1.25, 28.0],
            [0.6, 1.9, 3.4],
            NONE,
            simple(3.7),
            simple(2.8),
            simple(25.0),
            simple(25.0),
            NONE,
        ],
        [[1.0, 1.9, 28.0], [1.0, 2.5, 5.7], NONE, simple(3.7), simple(2.8), NONE, NONE, NONE],
        [
            [5.0, 8.5, 28.0],
            [2.7, 4.0, 14.0],
            NONE,
            simple(31.0),
            simple(30.0),
            simple(18.0),
            simple(14.0),
            NONE,
        ],
    ],
    ll: [[39.0, 39.0, 20.4], [87.7, 22.5, 19.0], [141.0, 45.0, 35.0], [141.0, 45.0, 35.0]],
    ..V2_18
};

const V2_27: Constants = Constants {
    base: [[6.8, 14.0, 8.4], [6.6, 14.0, 8.4], NONE, NONE, NONE, NONE, NONE, [8.0; 3]],
    hardware: [
        [
            [0.6, 1.25, 4.0],
            [0.6, 1.9, 3.4],
            NONE,
            simple(3.7),
            simple(2.8),
            simple(25.0),
            simple(25.0),
            NONE,
        ],
        [[1.0, 1.9, 4.0], [1.0, 2.5, 5.7], NONE, simple(3.7), simple(2.8), NONE, NONE, NONE],
        [
            [5.0, 8.5, 14.0],
            [2.7, 4.0, 14.0],
            NONE,
            simple(31.0),
            simple(30.0),
            simple(18.0),
            simple(14.0),
            NONE,
        ],
    ],
    ll: [[39.0, 39.0, 20.4], [87.7, 22.5, 19.0], [141.0, 45.0, 35.0], [282.0, 90.0, 70.0]],
    ring_ll128: [VOLTA, VOLTA, [36.7; 3], [73.4; 3]],
    tree_ll128: [VOLTA, VOLTA, [36.7, 36.7, 29.0], [73.4, 73.4, 58.0]],
    tree: [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [38.7, 41.4, 36.0], [77.4, 82.8, 72.0]],
    nvls_tree: NO_CAPS,
};

const V2_29: Constants = Constants {
    hardware: [
        with_pat(V2_27.hardware[NVLINK], 4.0),
        with_pat(V2_27.hardware[PCI], 4.0),
        [
            [5.0, 8.5, 14.0],
            [2.7, 4.0, 14.0],
            NONE,
            simple(31.0),
            simple(30.0),
            simple(18.0),
            simple(20.9),
            simple(14.0),
        ],
    ],
    ring_ll128: [VOLTA, VOLTA, [36.7; 3], [40.0; 3]],
    tree_ll128: [VOLTA, VOLTA, [36.7, 36.7, 29.0], [55.6, 31.67, 20.0]],
    tree: [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [38.7, 41.4, 36.0], [70.0, 42.8, 24.0]],
    nvls_tree: [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [0.0, 57.7, 45.5], [0.0, 96.0, 43.8]],
    ..V2_27
};

const V2_30: Constants = Constants {
    nvls_tree: [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [0.0, 57.7, 45.5], [0.0, 96.0, 80.0]],
    ..V2_29
};

/// LL128 of a channel in 2.7, by operation.
pub(super) const LL128_FIRST: [f64; 5] = [18.8, 12.0, 18.3, 15.2, 16.7];

/// What NVLS reaches of its graph's width from 2.28 on, by generation.
pub(super) const NVLS_EFFICIENCY: [f32; 4] = [0.0, 0.0, 0.85, 0.74];

/// What a tree loses at middle sizes: the factor of so many bytes, none beyond the table.
pub(super) fn bend(profile: Profile, protocol: Protocol, bytes: u64) -> Option<f32> {
    // Below 64 B the first versions take the first factor.
    let least = u64::from(!profile.has_c2c());
    let power = (bytes >> 6).max(least).checked_ilog2()? as usize;
    let row = protocol as usize;
    if profile.is_seed() {
        return TREE_FIRST[row].get(power).copied();
    }
    TREE_LATER[row].get(power).copied()
}

const TREE_FIRST: [[f32; 22]; 3] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.5, 0.6, 0.6, 0.7, 0.7,
        0.8, 0.9, 0.9, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.6,
        0.6, 0.7, 0.8, 0.9,
    ],
];

const TREE_LATER: [[f32; 23]; 3] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9,
        0.9, 0.9, 0.9, 1.0, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8,
        0.7, 0.7, 0.8, 0.9, 0.9,
    ],
];
