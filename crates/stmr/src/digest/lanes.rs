//! Long contents folded into eight lanes of 16 bytes, a round of AES for each 16 bytes.
//!
//! Of all that a processor can do at once to 16 bytes a round of AES mixes them best.  A lane goes
//! through the round, and the bytes are its key: they are added to it.  As a round can be undone,
//! two contents of which one block of a lane is different always leave different lanes; of which
//! several are, they leave the same if what the one changed is, rounds later, what the other
//! changes, which no error knows.  It is no protection against one who means to be taken for
//! another.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128i, _mm_aesenc_si128};

use aes::hazmat::{Block8, cipher_round_par};
use multiversion::{multiversion, target::match_target};

/// Eight rows of 16 bytes.
pub(super) type Lanes = [[u8; 16]; 8];

/// How many bytes of contents are folded at once: twice what lanes have.
pub(super) const BLOCK: usize = 256;

/// The lanes before any block: each with its own number, so that no two are alike.
pub(super) const NONE: Lanes =
    [[0; 16], [1; 16], [2; 16], [3; 16], [4; 16], [5; 16], [6; 16], [7; 16]];

/// Folds blocks into the lanes: the first 16 bytes of each into the first lane, the next into the
/// second, and so on.
///
/// By the processor's own instruction if it has one, which is asked at run time.
#[multiversion(targets("x86_64+aes+avx"))]
pub(super) fn fold(lanes: &mut Lanes, blocks: &[[u8; BLOCK]]) {
    match_target! {
        "x86_64+aes+avx" => {
            let mut states: [__m128i; 8] = bytemuck::must_cast(*lanes);
            for block in blocks {
                let halves: &[Lanes; 2] = bytemuck::must_cast_ref(block);
                for keys in halves {
                    for (state, key) in states.iter_mut().zip(keys) {
                        *state = _mm_aesenc_si128(*state, bytemuck::must_cast(*key));
                    }
                }
            }
            *lanes = bytemuck::must_cast(states);
        },
        _ => fold_anywhere(lanes, blocks),
    }
}

/// The same on any processor.
fn fold_anywhere(lanes: &mut Lanes, blocks: &[[u8; BLOCK]]) {
    let mut states = Block8::from(lanes.map(Into::into));
    for block in blocks {
        let halves: [Lanes; 2] = bytemuck::must_cast(*block);
        for keys in halves {
            cipher_round_par(&mut states, &Block8::from(keys.map(Into::into)));
        }
    }
    *lanes = states.0.map(|it| it.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_the_same_on_any_processor() {
        let blocks: Vec<[u8; BLOCK]> = (0..9_u8)
            .map(|block| std::array::from_fn(|idx| (idx as u8).wrapping_mul(7) ^ block))
            .collect();
        for n in 0..blocks.len() {
            let (mut here, mut anywhere) = (NONE, NONE);
            fold(&mut here, &blocks[..n]);
            fold_anywhere(&mut anywhere, &blocks[..n]);
            assert_eq!(here, anywhere, "{n} blocks");
        }
    }

    /// The round of AES of the standard's own example: FIPS 197, appendix B, rounds 1 and 2.
    #[test]
    fn rounds_are_those_of_the_standard() {
        let start = 0x193d_e3be_a0f4_e22b_9ac6_8d2a_e9f8_4808_u128.to_be_bytes();
        let key = 0xa0fa_fe17_8854_2cb1_23a3_3939_2a6c_7605_u128.to_be_bytes();
        let next_key = 0xf2c2_95f2_7a96_b943_5935_807a_7359_f67f_u128.to_be_bytes();
        let after = 0xaa8f_5f03_61dd_e3ef_82d2_4ad2_6832_469a_u128.to_be_bytes();
        let mut lanes = [start; 8];
        fold(&mut lanes, &[bytemuck::must_cast([[key; 8], [next_key; 8]])]);
        assert_eq!(lanes, [after; 8]);
    }
}
