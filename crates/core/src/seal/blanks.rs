//! Blank pieces in storage, and the only functions that fill them.

use super::COUNTER_BYTES;
use super::xor::xor;
use crate::pieces::{Frames, Span};

/// Blank space for the pieces of one write. Only sealed bytes, counters and
/// [records](crate::records) can be written there.
pub struct Blanks<'a> {
    buffer: &'a mut [u8],
    spans: &'a [Span],
    sealed_bytes: usize,
}

impl<'a> Blanks<'a> {
    /// The blanks at `spans` in `buffer`. The spans must not overlap. The old contents of the
    /// blanks are never read.
    pub fn new(buffer: &'a mut [u8], spans: &'a [Span]) -> Self {
        Self { buffer, spans, sealed_bytes: 0 }
    }

    /// Writes `counter` unencrypted to the header of piece `i`. Returns a writer for the header's
    /// other bytes, which it masks with `mask`.
    #[inline]
    pub(crate) fn header<'b>(&'b mut self, i: usize, counter: u64, mask: &'b [u8]) -> Sealing<'b> {
        let start = self.spans[i].start;
        self.buffer[start..start + COUNTER_BYTES].copy_from_slice(&counter.to_be_bytes());
        self.sealed_bytes += COUNTER_BYTES;
        self.run(i, COUNTER_BYTES, mask)
    }

    /// Returns a writer for the body of piece `i`, which starts at `offset`. It masks bytes with
    /// `mask`.
    #[inline]
    pub(crate) fn body<'b>(&'b mut self, i: usize, offset: usize, mask: &'b [u8]) -> Sealing<'b> {
        self.run(i, offset, mask)
    }

    /// Copies bytes that another module of the seal has sealed into piece `i`, starting at
    /// `offset`.
    #[inline]
    pub(super) fn copy_sealed(&mut self, i: usize, offset: usize, sealed: &[u8]) {
        self.sealed_bytes += sealed.len();
        self.buffer[self.spans[i].range()][offset..][..sealed.len()].copy_from_slice(sealed);
    }

    #[inline]
    fn run<'b>(&'b mut self, i: usize, offset: usize, mask: &'b [u8]) -> Sealing<'b> {
        self.sealed_bytes += mask.len();
        let piece = &mut self.buffer[self.spans[i].range()];
        Sealing { blank: &mut piece[offset..offset + mask.len()], mask }
    }

    /// Fills every blank with bytes that were sealed elsewhere, for tests that only relay them.
    ///
    /// # Panics
    /// If `sealed` does not have one frame of the right length for each blank.
    #[cfg(feature = "relay")]
    pub fn relay(self, sealed: Frames<'_>) -> Sealed<'a> {
        self.put(sealed)
    }

    /// Fills every blank with bytes that need no seal. Only [records](crate::records) may use this.
    ///
    /// # Panics
    /// If `frames` does not have one of the right length for each blank.
    pub(crate) fn put_unsealed(self, frames: Frames<'_>) -> Sealed<'a> {
        self.put(frames)
    }

    /// Fills every blank with bytes that were sealed before, for a [trip](super::SealedTrip).
    ///
    /// # Panics
    /// If `frames` does not have one of the right length for each blank.
    pub(super) fn put_sealed(self, frames: Frames<'_>) -> Sealed<'a> {
        self.put(frames)
    }

    /// Fills the blanks, in order, with `bytes`, which [a client](super::SealedByClient) has
    /// sealed.
    ///
    /// # Panics
    /// If there are more or fewer bytes than the blanks hold.
    pub(super) fn put_client_sealed(self, bytes: &[u8]) -> Sealed<'a> {
        let mut rest = bytes;
        for span in self.spans {
            let (piece, behind) = rest.split_at(span.bytes);
            self.buffer[span.range()].copy_from_slice(piece);
            rest = behind;
        }
        assert!(rest.is_empty(), "the bytes must fill the blanks exactly");
        Sealed(Frames::new(self.buffer, self.spans))
    }

    /// Fills every blank with a bucket from another store, for
    /// [`SealedCopy`](crate::store::SealedCopy).
    ///
    /// # Panics
    /// If `frames` does not have one of the right length for each blank.
    pub(crate) fn put_copy(self, frames: Frames<'_>) -> Sealed<'a> {
        self.put(frames)
    }

    fn put(self, frames: Frames<'_>) -> Sealed<'a> {
        assert_eq!(frames.len(), self.spans.len(), "one frame for each blank");
        for (i, span) in self.spans.iter().enumerate() {
            self.buffer[span.range()].copy_from_slice(frames.get(i));
        }
        Sealed(Frames::new(self.buffer, self.spans))
    }

    /// Returns the proof that every byte was sealed.
    ///
    /// # Panics
    /// If a byte was not sealed. This is a defect of the scheme: stale bytes would go to storage.
    #[inline]
    pub(crate) fn sealed(self) -> Sealed<'a> {
        let room: usize = self.spans.iter().map(|span| span.bytes).sum();
        assert_eq!(self.sealed_bytes, room, "a write must seal every byte");
        Sealed(Frames::new(self.buffer, self.spans))
    }
}

/// Pieces filled by the seal: the proof that a [`crate::store::BucketStore`] requires.
pub struct Sealed<'a>(Frames<'a>);

impl<'a> Sealed<'a> {
    /// The contents that storage gets: ciphertext, counters and records. Public.
    pub fn frames(&self) -> Frames<'a> {
        self.0
    }
}

/// Seals a run of bytes, in order. Plaintext is never stored in the blank, and bytes not written
/// become sealed zeros.
pub(crate) struct Sealing<'a> {
    blank: &'a mut [u8],
    mask: &'a [u8],
}

impl Sealing<'_> {
    /// Seals `plain` into the next bytes.
    #[inline]
    pub(crate) fn write(&mut self, plain: &[u8]) {
        let (blank, blank_rest) = core::mem::take(&mut self.blank).split_at_mut(plain.len());
        let (mask, mask_rest) = self.mask.split_at(plain.len());
        xor(blank, plain, mask);
        self.blank = blank_rest;
        self.mask = mask_rest;
    }
}

impl Drop for Sealing<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.blank.is_empty() {
            self.blank.copy_from_slice(self.mask);
        }
    }
}
