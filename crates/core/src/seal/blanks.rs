//! Room in storage, and the one way to fill it.

use super::COUNTER_BYTES;
use super::xor::xor;
use crate::pieces::{Frames, Span};

/// Room for the pieces of one write. Only masked bytes and counters can be put there.
pub struct Blanks<'a> {
    buffer: &'a mut [u8],
    spans: &'a [Span],
    sealed_bytes: usize,
}

impl<'a> Blanks<'a> {
    /// The blanks that lie at `spans` in `buffer`, without overlap. What they hold before is never
    /// read.
    pub fn new(buffer: &'a mut [u8], spans: &'a [Span]) -> Self {
        Self { buffer, spans, sealed_bytes: 0 }
    }

    /// The header of piece `i`: `counter` in clear, then as many bytes as the mask has.
    #[inline]
    pub(crate) fn header<'b>(&'b mut self, i: usize, counter: u64, mask: &'b [u8]) -> Sealing<'b> {
        let start = self.spans[i].start;
        self.buffer[start..start + COUNTER_BYTES].copy_from_slice(&counter.to_be_bytes());
        self.sealed_bytes += COUNTER_BYTES;
        self.run(i, COUNTER_BYTES, mask)
    }

    /// The body of piece `i`, which starts at `offset`, with as many bytes as the mask has.
    #[inline]
    pub(crate) fn body<'b>(&'b mut self, i: usize, offset: usize, mask: &'b [u8]) -> Sealing<'b> {
        self.run(i, offset, mask)
    }

    /// The bytes of piece `i` from `offset` on, which another module of the seal has made.
    #[inline]
    pub(super) fn sealed_elsewhere(&mut self, i: usize, offset: usize, sealed: &[u8]) {
        self.sealed_bytes += sealed.len();
        self.buffer[self.spans[i].range()][offset..][..sealed.len()].copy_from_slice(sealed);
    }

    #[inline]
    fn run<'b>(&'b mut self, i: usize, offset: usize, mask: &'b [u8]) -> Sealing<'b> {
        self.sealed_bytes += mask.len();
        let piece = &mut self.buffer[self.spans[i].range()];
        Sealing { blank: &mut piece[offset..offset + mask.len()], mask }
    }

    /// Fills every blank with bytes that were sealed elsewhere: for a test that only relays them.
    ///
    /// # Panics
    /// When `sealed` does not have one frame of the right length for each blank.
    #[cfg(feature = "relay")]
    pub fn relay(self, sealed: Frames<'_>) -> Sealed<'a> {
        self.put(sealed)
    }

    /// Fills every blank with bytes that nobody needs to seal: those of [records](crate::records).
    ///
    /// # Panics
    /// When `frames` does not have one of the right length for each blank.
    pub(crate) fn put_unsealed(self, frames: Frames<'_>) -> Sealed<'a> {
        self.put(frames)
    }

    /// Fills every blank with bytes that were sealed before: those of a [trip](super::SealedTrip).
    ///
    /// # Panics
    /// When `frames` does not have one of the right length for each blank.
    pub(super) fn put_sealed(self, frames: Frames<'_>) -> Sealed<'a> {
        self.put(frames)
    }

    /// Fills every blank with the bytes that are next, which [a client](super::SealedByClient) has sealed.
    ///
    /// # Panics
    /// When there are more or fewer bytes than room.
    pub(super) fn put_of_client(self, bytes: &[u8]) -> Sealed<'a> {
        let mut rest = bytes;
        for span in self.spans {
            let (piece, behind) = rest.split_at(span.bytes);
            self.buffer[span.range()].copy_from_slice(piece);
            rest = behind;
        }
        assert!(rest.is_empty(), "a blank for every byte");
        Sealed(Frames::new(self.buffer, self.spans))
    }

    /// Fills every blank with the bytes of a bucket of another store: those of [`Moved`](crate::store::Moved).
    ///
    /// # Panics
    /// When `frames` does not have one of the right length for each blank.
    pub(crate) fn put_moved(self, frames: Frames<'_>) -> Sealed<'a> {
        self.put(frames)
    }

    fn put(self, frames: Frames<'_>) -> Sealed<'a> {
        assert_eq!(frames.len(), self.spans.len(), "one frame for each blank");
        for (i, span) in self.spans.iter().enumerate() {
            self.buffer[span.range()].copy_from_slice(frames.get(i));
        }
        Sealed(Frames::new(self.buffer, self.spans))
    }

    /// The proof that every byte has been sealed.
    ///
    /// # Panics
    /// When one has not: a defect of the scheme, and stale bytes would go to storage.
    #[inline]
    pub(crate) fn sealed(self) -> Sealed<'a> {
        let room: usize = self.spans.iter().map(|span| span.bytes).sum();
        assert_eq!(self.sealed_bytes, room, "a write seals all of its room");
        Sealed(Frames::new(self.buffer, self.spans))
    }
}

/// Pieces that the seal has filled: the proof that a [`crate::store::BucketStore`] asks for.
pub struct Sealed<'a>(Frames<'a>);

impl<'a> Sealed<'a> {
    /// What storage gets: ciphertext and counters. Public.
    pub fn frames(&self) -> Frames<'a> {
        self.0
    }
}

/// A run being sealed from its start on. Plaintext never touches the blank, and what is not written
/// becomes sealed zeros.
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
