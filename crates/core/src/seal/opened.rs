//! Opening sealed bytes.

use super::xor::{xor, xor_in_place};

/// Opens consecutive sealed bytes with their masks, in order.
pub(crate) struct Opened<'a> {
    sealed: &'a [u8],
    mask: &'a [u8],
}

impl<'a> Opened<'a> {
    /// A reader for the bytes of `sealed` that `mask` covers.
    #[inline]
    pub(crate) fn new(sealed: &'a [u8], mask: &'a [u8]) -> Self {
        Self { sealed: &sealed[..mask.len()], mask }
    }

    /// Opens the next `plain.len()` bytes into `plain`.
    #[inline]
    pub(crate) fn read(&mut self, plain: &mut [u8]) {
        let (sealed, sealed_rest) = self.sealed.split_at(plain.len());
        let (mask, mask_rest) = self.mask.split_at(plain.len());
        xor(plain, sealed, mask);
        self.sealed = sealed_rest;
        self.mask = mask_rest;
    }

    /// Skips the next bytes.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.sealed = &self.sealed[bytes..];
        self.mask = &self.mask[bytes..];
    }
}

/// Opens sealed `bytes` in place, with the mask `mask`.
#[inline]
pub(crate) fn open_in_place(bytes: &mut [u8], mask: &[u8]) {
    xor_in_place(bytes, mask);
}
