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
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let near = &bytes[..bytes.len().min(PREFETCH_BYTES_MAX)];
        // SAFETY: a prefetch never faults, whatever the address.
        let ask =
            |byte: &u8| unsafe { _mm_prefetch::<_MM_HINT_T1>(core::ptr::from_ref(byte).cast()) };
        near.iter().step_by(CACHE_LINE_BYTES).for_each(ask);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// The same for the first cache line of `bytes` alone.
#[inline]
pub(crate) fn prefetch_first_line(bytes: &[u8]) {
    prefetch(&bytes[..bytes.len().min(CACHE_LINE_BYTES)]);
}

/// The same for what comes after the first line, which has been asked for.
#[inline]
pub(crate) fn prefetch_rest(bytes: &[u8]) {
    prefetch(bytes.get(CACHE_LINE_BYTES..).unwrap_or_default());
}
