//! Helpers that all kernels share.

use std::hint::black_box;

/// 64-bit words in a line of memory (64 bytes).
pub(crate) const WORDS_PER_LINE: usize = 8;

/// 64-bit words in `kib` KiB.
pub(crate) fn words(kib: usize) -> usize {
    kib * 1024 / size_of::<u64>()
}

/// Hashes a number with the finaliser of `SplitMix64`.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Computes in registers for `steps` steps of a few instructions each. The result depends on every
/// step.
#[inline]
pub(crate) fn work(steps: u32, mut value: u64) -> u64 {
    for step in 0..steps {
        value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(step & 31);
    }
    value
}

/// An array of zeros that the compiler cannot optimize away.
pub(crate) fn array(words: usize) -> Vec<u64> {
    black_box(vec![0; words])
}
