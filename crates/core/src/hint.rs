//! The one module with `unsafe` code: hints to the processor. None of them can change a result.
#![allow(unsafe_code)]

/// Bytes of a cache line on every processor this runs on today.
pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// The first bytes of a piece that are worth a hint: of a larger one, the processor itself foresees
/// the rest.
const PREFETCH_BYTES_MAX: usize = 1024;

/// Asks the processor to bring the start of `bytes` into its nearest cache.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..bytes.len().min(PREFETCH_BYTES_MAX)).step_by(CACHE_LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: `offset` lies in `bytes`, and a prefetch never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().add(offset).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Loads every byte of `bytes`, so that memory sees a read of all of them, and forgets the result.
#[inline]
pub(crate) fn load(bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks::<32>();
    let mut sum = [0u64; 4];
    for word in words {
        let (quads, _) = word.as_chunks::<8>();
        for (sum, quad) in sum.iter_mut().zip(quads) {
            *sum ^= u64::from_ne_bytes(*quad);
        }
    }
    let rest = rest.iter().fold(0, |sum, byte| sum ^ byte);
    std::hint::black_box((sum, rest));
}
