//! The only module with `unsafe` code: prefetch hints to the processor. No hint changes a result.
#![allow(unsafe_code)]

/// Bytes of a cache line. No supported processor has shorter lines.
pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// Maximum number of bytes to prefetch. The hardware prefetcher fetches the bytes after them.
const PREFETCH_BYTES_MAX: usize = 1024;

/// Asks the processor to bring the first [`PREFETCH_BYTES_MAX`] bytes of `bytes` into its
/// second-level cache, which can have more lines in flight than the first-level cache. Does nothing
/// on other processors than x86-64.
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

/// Prefetches only the first cache line of `bytes`: see [`prefetch`].
#[inline]
pub(crate) fn prefetch_first_line(bytes: &[u8]) {
    prefetch(&bytes[..bytes.len().min(CACHE_LINE_BYTES)]);
}

/// Prefetches `bytes` without their first cache line, which must have been prefetched before: see
/// [`prefetch`].
#[inline]
pub(crate) fn prefetch_rest(bytes: &[u8]) {
    prefetch(bytes.get(CACHE_LINE_BYTES..).unwrap_or_default());
}
