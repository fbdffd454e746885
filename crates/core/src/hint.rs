//! The one module with `unsafe` code: hints to the processor. None of them can change a result.
#![allow(unsafe_code)]

/// Bytes of a cache line on every processor this runs on today.
pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// The first bytes of a piece that are worth a hint: of a larger one, the processor itself foresees
/// the rest.
const PREFETCH_BYTES_MAX: usize = 1024;

/// Asks the processor to bring the start of `bytes` into its second-level cache: it can wait for
/// more lines there at once than in the first.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let end = bytes.len().min(PREFETCH_BYTES_MAX);
        let mut offset = 0;
        while offset < end {
            // SAFETY: `offset` lies in `bytes`, and a prefetch never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().add(offset).cast()) }
            offset += CACHE_LINE_BYTES;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
