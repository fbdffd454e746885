//! Copies sealed buckets from one store to another, without opening them.

use alloc::vec::Vec;
use core::ops::Range;

use super::{BucketStore, Part, Piece, Span, TreeId};
use crate::error::{StoreError, StoreErrorKind};
use crate::geometry::BucketId;
use crate::pieces::Frames;

/// The amount of data that [`SealedCopy::write`] has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of buckets written.
    pub buckets: u64,
    /// The number of bytes in these buckets.
    pub bytes: u64,
}

/// Consecutive buckets of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRange {
    /// The tree of the buckets.
    pub tree: TreeId,
    /// The level of the buckets in that tree.
    pub level: u8,
    /// The indices of the buckets on that level.
    pub buckets: Range<u64>,
}

impl BucketRange {
    /// The pieces to request in a trip: each bucket as a whole.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let bucket = |index| BucketId::new(self.level, index);
        let piece =
            move |index| Piece { tree: self.tree, bucket: bucket(index), part: Part::Whole };
        self.buckets.clone().map(piece)
    }
}

/// Buckets read from one store, to be written to another without being opened.
///
/// This bypasses the [seal](crate::seal), but nothing unsealed can reach storage this way:
/// - It can be filled only by [`read`](Self::read), from a store. A store's contents arrived as
///   [`Sealed`](super::Sealed), or were tampered with in the store.
/// - Its contents cannot be changed, only compared and written.
/// - They are written to the tree, level and index they were read from. So the second store gets
///   only bytes that the first store already has under the same name.
///
/// The contents are as untrusted as the answer of a store.
#[derive(Default)]
pub struct SealedCopy {
    pieces: Vec<Piece>,
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl SealedCopy {
    /// Reads buckets, replacing the current contents.
    ///
    /// # Errors
    /// The errors of [`BucketStore::read`], and [`StoreErrorKind::Damaged`] if the store's answer
    /// has the wrong length. After an error the contents are empty.
    pub fn read(
        &mut self,
        from: &mut (impl BucketStore + ?Sized),
        range: &BucketRange,
    ) -> Result<(), StoreError> {
        self.pieces.clear();
        self.buffer.clear();
        self.spans.clear();
        let pieces: Vec<_> = range.pieces().collect();
        let bytes = bucket_bytes(from, range);
        let frames = from.read(&pieces)?;
        check_lengths(frames, pieces.len(), bytes)?;
        for i in 0..frames.len() {
            let frame = frames.get(i);
            self.spans.push(Span { start: self.buffer.len(), bytes: frame.len() });
            self.buffer.extend_from_slice(frame);
        }
        self.pieces = pieces;
        Ok(())
    }

    /// Writes the buckets that are not all zeros, in one trip, and returns their amount. Leaves out
    /// all other buckets, because a bucket never written to `to` reads as zeros anyway. Makes no
    /// trip if no bucket is left.
    ///
    /// # Errors
    /// The errors of [`BucketStore::write`], and [`StoreErrorKind::Refused`] if the buckets of `to`
    /// have other lengths.
    pub fn write(&self, to: &mut (impl BucketStore + ?Sized)) -> Result<Written, StoreError> {
        let frames = self.frames();
        let written = |(i, _): &(usize, &Piece)| frames.get(*i).iter().any(|byte| *byte != 0);
        let (which, pieces): (Vec<_>, Vec<_>) =
            self.pieces.iter().enumerate().filter(written).map(|(i, piece)| (i, *piece)).unzip();
        if pieces.is_empty() {
            return Ok(Written::default());
        }
        let spans: Vec<_> = which.iter().map(|i| self.spans[*i]).collect();
        let fits = |(piece, span): (&Piece, &Span)| length(to, piece) == Some(span.bytes as u64);
        if !pieces.iter().zip(&spans).all(fits) {
            let message = "the target store has buckets of other lengths: make a new store";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let frames = Frames::new(&self.buffer, &spans);
        to.write(&pieces, &mut |blanks| blanks.put_copy(frames))?;
        let bytes = spans.iter().map(|span| span.bytes as u64).sum();
        Ok(Written { buckets: pieces.len() as u64, bytes })
    }

    /// The piece of the first bucket whose contents differ from those in the store `other`.
    ///
    /// # Errors
    /// The errors of [`BucketStore::read`].
    pub fn first_difference(
        &self,
        other: &mut (impl BucketStore + ?Sized),
    ) -> Result<Option<Piece>, StoreError> {
        let (ours, theirs) = (self.frames(), other.read(&self.pieces)?);
        let is_same = |i: usize| i < theirs.len() && ours.get(i) == theirs.get(i);
        Ok((0..ours.len()).find(|i| !is_same(*i)).map(|i| self.pieces[i]))
    }

    /// The total length of the buckets, in bytes.
    pub fn bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// The buckets as frames: ciphertext, and public records.
    pub fn frames(&self) -> Frames<'_> {
        Frames::new(&self.buffer, &self.spans)
    }
}

fn length(store: &(impl BucketStore + ?Sized), piece: &Piece) -> Option<u64> {
    store.shape(piece.tree)?.level_of(piece.bucket).map(|level| level.bucket_bytes)
}

/// Bytes of each bucket of a range. 0 if the store has no such range.
fn bucket_bytes(store: &(impl BucketStore + ?Sized), range: &BucketRange) -> u64 {
    range.pieces().next().and_then(|piece| length(store, &piece)).unwrap_or_default()
}

fn check_lengths(frames: Frames<'_>, count: usize, bytes: u64) -> Result<(), StoreError> {
    if frames.len() == count && frames.iter().all(|frame| frame.len() as u64 == bytes) {
        return Ok(());
    }
    let message = "storage returned data of the wrong length: check its medium";
    Err(StoreError::new(StoreErrorKind::Damaged, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::LayoutKind;
    use crate::store::{LevelShape, MemoryStore, TreeShape};

    const TREE: TreeId = TreeId(1);

    fn store(bytes: [usize; 2]) -> MemoryStore {
        let shape = |bytes| {
            TreeShape::new(vec![LevelShape::of_heads(1, bytes), LevelShape::of_heads(2, bytes)])
        };
        MemoryStore::new(&bytes.map(shape), LayoutKind::Striped).unwrap()
    }

    fn range(level: u8, buckets: Range<u64>) -> BucketRange {
        BucketRange { tree: TREE, level, buckets }
    }

    fn bytes_of(store: &mut MemoryStore, level: u8, index: u64) -> &mut [u8] {
        let piece = range(level, index..index + 1).pieces().next().unwrap();
        let range = store.span(&piece).unwrap().range();
        &mut store.contents_mut()[range]
    }

    #[test]
    fn buckets_keep_their_place_and_unwritten_ones_are_skipped() {
        let (mut from, mut to) = (store([3, 8]), store([3, 8]));
        bytes_of(&mut from, 1, 1).copy_from_slice(b"a bucket");
        bytes_of(&mut to, 1, 0).copy_from_slice(b"and this");
        let mut copy = SealedCopy::default();
        copy.read(&mut from, &range(0, 0..1)).unwrap();
        assert_eq!(copy.write(&mut to).unwrap(), Written::default());
        copy.read(&mut from, &range(1, 0..2)).unwrap();
        assert_eq!(copy.write(&mut to).unwrap(), Written { buckets: 1, bytes: 8 });
        assert_eq!(bytes_of(&mut to, 1, 1), b"a bucket");
        assert_eq!(bytes_of(&mut to, 1, 0), b"and this");
        let differing = copy.first_difference(&mut to).unwrap().unwrap();
        assert_eq!(differing.bucket, BucketId::new(1, 0));
        bytes_of(&mut to, 1, 0).fill(0);
        assert_eq!(copy.first_difference(&mut to).unwrap(), None);
        bytes_of(&mut to, 1, 1)[7] ^= 1;
        let differing = copy.first_difference(&mut to).unwrap().unwrap();
        assert_eq!(differing.bucket, BucketId::new(1, 1));
    }

    #[test]
    fn a_store_for_other_buckets_is_refused() {
        let (mut from, mut to) = (store([3, 8]), store([3, 9]));
        bytes_of(&mut from, 1, 1).copy_from_slice(b"a bucket");
        let mut copy = SealedCopy::default();
        copy.read(&mut from, &range(1, 0..2)).unwrap();
        assert_eq!(copy.write(&mut to).unwrap_err().kind(), StoreErrorKind::Refused);
        assert!(to.contents().iter().all(|byte| *byte == 0));
        let beyond = copy.read(&mut from, &range(2, 0..1)).unwrap_err();
        assert_eq!(beyond.kind(), StoreErrorKind::Refused);
        assert_eq!(
            copy.write(&mut from).unwrap(),
            Written::default(),
            "the contents are empty after an error"
        );
    }
}
