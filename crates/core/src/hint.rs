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
