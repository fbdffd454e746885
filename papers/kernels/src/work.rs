//! What all kernels do between their accesses.

use std::hint::black_box;

/// 64-bit words of a line of memory.
pub(crate) const WORDS_PER_LINE: usize = 8;

/// 64-bit words of so many KiB.
pub(crate) fn words(kib: usize) -> usize {
    kib * 1024 / size_of::<u64>()
}

/// Mixes a number so that the next cannot be foreseen (the finaliser of `SplitMix64`).
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Computes in registers: a handful of instructions for each of `steps`.
#[inline]
pub(crate) fn work(steps: u32, mut value: u64) -> u64 {
    for step in 0..steps {
        value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(step & 31);
    }
    value
}

/// An array of zeros that is really there: the compiler must not see through it.
pub(crate) fn array(words: usize) -> Vec<u64> {
    black_box(vec![0; words])
}
