//! What a channel may carry, in the order in which it is tried.  Notes §5.7.

use crate::host::nccl::profile::Profile;

/// Speeds in GB/s, fastest first, for GPUs of that compute capability.
pub(super) fn speeds(profile: Profile, sm: i32, inter: bool) -> &'static [f32] {
    if profile.is_seed() {
        return &SEED;
    }
    match (sm, inter) {
        (100.., false) if profile.keeps_ports() => &INTRA_100_NEW,
        (100.., true) if profile.has_devices() => &INTER_100_NEW,
        (100.., true) if profile.keeps_ports() => &INTER_100_2_29,
        (100.., false) if profile.has_c2c() => &INTRA_100,
        (100.., true) if profile.has_c2c() => &INTER_100,
        (90.., false) if !profile.has_hosts() => &INTRA_90_OLD,
        (90.., true) if !profile.has_hosts() => &INTER_90_OLD,
        (90.., false) => &INTRA_90,
        (90.., true) => &INTER_90,
        (_, false) => &INTRA,
        (_, true) => &INTER,
    }
}

const SEED: [f32; 17] =
    [42.0, 24.0, 21.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2, 0.24, 0.12];

const INTRA: [f32; 13] = [40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0];

const INTER: [f32; 19] = [
    48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2,
    0.24, 0.12,
];

/// 2.18.
const INTRA_90_OLD: [f32; 9] = [60.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 6.0, 3.0];

const INTER_90_OLD: [f32; 16] =
    [48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12];

const INTRA_90: [f32; 11] = [60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0];

const INTER_90: [f32; 17] = [
    48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24,
    0.12,
];

const INTRA_100: [f32; 11] = [90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0];

const INTER_100: [f32; 18] = [
    96.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2,
    0.24, 0.12,
];

/// 2.28 and later.
const INTRA_100_NEW: [f32; 12] =
    [90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0];

const INTER_100_2_29: [f32; 19] = [
    96.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4,
    1.2, 0.24, 0.12,
];

const INTER_100_NEW: [f32; 20] = [
    96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0,
    2.4, 1.2, 0.24, 0.12,
];
