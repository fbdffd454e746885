//! Buckets on their way from one store to another, as they are.

use alloc::vec::Vec;
use core::ops::Range;

use super::{BucketStore, Part, Piece, Span, TreeId};
use crate::error::{StoreError, StoreErrorKind};
use crate::geometry::BucketId;
use crate::pieces::Frames;

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Buckets.
    pub buckets: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Neighbouring buckets of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The tree.
    pub tree: TreeId,
    /// The level in that tree.
    pub level: u8,
    /// Their indices on that level.
    pub buckets: Range<u64>,
}

impl Stretch {
    /// As a trip asks for it: all of each bucket.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let bucket = |index| BucketId::new(self.level, index);
        let piece =
            move |index| Piece { tree: self.tree, bucket: bucket(index), part: Part::Whole };
        self.buckets.clone().map(piece)
    }
}

/// Buckets that were read from a store, to be put into another one without being opened.
///
/// This passes by the [seal](crate::seal), and nothing unsealed gets to storage on this way:
/// - There is no way to fill it but [`read`](Self::read), which asks a store. What a store holds came to it as
///   [`Sealed`](super::Sealed), or was never sealed by anybody, because somebody else changed it there.
/// - What it holds cannot be changed, only compared and written.
/// - It is written to where it was read, tree, level and index. What the second store gets is what the first one has
///   under the same name, which the first one could have given it.
///
/// What it brings is as untrusted as what a store answers.
#[derive(Default)]
pub struct Moved {
    pieces: Vec<Piece>,
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl Moved {
    /// Reads buckets, in place of those that were here.
    ///
    /// # Errors
    /// Those of [`BucketStore::read`], and [`StoreErrorKind::Damaged`] when the store answers with more or less than it
    /// was asked for. Nothing is here then.
    pub fn read(
        &mut self,
        from: &mut (impl BucketStore + ?Sized),
        stretch: &Stretch,
    ) -> Result<(), StoreError> {
        self.pieces.clear();
        self.buffer.clear();
        self.spans.clear();
        let pieces: Vec<_> = stretch.pieces().collect();
        let bytes = bucket_bytes(from, stretch);
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

    /// Writes those buckets that anybody ever wrote, in one trip, and says how much that is. The others are zeros, which
    /// is what a store answers of them anyway: they take no room.
    ///
    /// # Errors
    /// Those of [`BucketStore::write`], and [`StoreErrorKind::Refused`] when buckets there are not as long.
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
            let message = "the store was made for other buckets: make one for these";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let frames = Frames::new(&self.buffer, &spans);
        to.write(&pieces, &mut |blanks| blanks.put_moved(frames))?;
        let bytes = spans.iter().map(|span| span.bytes as u64).sum();
        Ok(Written { buckets: pieces.len() as u64, bytes })
    }

    /// The first of the buckets that another store does not hold as they are here.
    ///
    /// # Errors
    /// Those of [`BucketStore::read`].
    pub fn first_difference(
        &self,
        other: &mut (impl BucketStore + ?Sized),
    ) -> Result<Option<Piece>, StoreError> {
        let (ours, theirs) = (self.frames(), other.read(&self.pieces)?);
        let is_same = |i: usize| i < theirs.len() && ours.get(i) == theirs.get(i);
        Ok((0..ours.len()).find(|i| !is_same(*i)).map(|i| self.pieces[i]))
    }

    /// How long they are together.
    pub fn bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// The buckets. Ciphertext, and public records.
    pub fn frames(&self) -> Frames<'_> {
        Frames::new(&self.buffer, &self.spans)
    }
}

fn length(store: &(impl BucketStore + ?Sized), piece: &Piece) -> Option<u64> {
    store.shape(piece.tree)?.level_of(piece.bucket).map(|level| level.bucket_bytes)
}

/// Of each bucket of a stretch. What is not there has none, and cannot be read either.
fn bucket_bytes(store: &(impl BucketStore + ?Sized), stretch: &Stretch) -> u64 {
    stretch.pieces().next().and_then(|piece| length(store, &piece)).unwrap_or_default()
}

fn check_lengths(frames: Frames<'_>, count: usize, bytes: u64) -> Result<(), StoreError> {
    if frames.len() == count && frames.iter().all(|frame| frame.len() as u64 == bytes) {
        return Ok(());
    }
    let message =
        "storage answered with more or less than it was asked for: check what it is kept on";
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

    fn stretch(level: u8, buckets: Range<u64>) -> Stretch {
        Stretch { tree: TREE, level, buckets }
    }

    fn bytes_of(store: &mut MemoryStore, level: u8, index: u64) -> &mut [u8] {
        let piece = stretch(level, index..index + 1).pieces().next().unwrap();
        let range = store.span(&piece).unwrap().range();
        &mut store.contents_mut()[range]
    }

    #[test]
    fn buckets_get_where_they_were_and_those_never_written_are_left_alone() {
        let (mut from, mut to) = (store([3, 8]), store([3, 8]));
        bytes_of(&mut from, 1, 1).copy_from_slice(b"a bucket");
        bytes_of(&mut to, 1, 0).copy_from_slice(b"and this");
        let mut moved = Moved::default();
        moved.read(&mut from, &stretch(0, 0..1)).unwrap();
        assert_eq!(moved.write(&mut to).unwrap(), Written::default());
        moved.read(&mut from, &stretch(1, 0..2)).unwrap();
        assert_eq!(moved.write(&mut to).unwrap(), Written { buckets: 1, bytes: 8 });
        assert_eq!(bytes_of(&mut to, 1, 1), b"a bucket");
        assert_eq!(bytes_of(&mut to, 1, 0), b"and this");
        let differing = moved.first_difference(&mut to).unwrap().unwrap();
        assert_eq!(differing.bucket, BucketId::new(1, 0));
        bytes_of(&mut to, 1, 0).fill(0);
        assert_eq!(moved.first_difference(&mut to).unwrap(), None);
        bytes_of(&mut to, 1, 1)[7] ^= 1;
        let differing = moved.first_difference(&mut to).unwrap().unwrap();
        assert_eq!(differing.bucket, BucketId::new(1, 1));
    }

    #[test]
    fn a_store_that_was_made_for_others_gets_nothing() {
        let (mut from, mut to) = (store([3, 8]), store([3, 9]));
        bytes_of(&mut from, 1, 1).copy_from_slice(b"a bucket");
        let mut moved = Moved::default();
        moved.read(&mut from, &stretch(1, 0..2)).unwrap();
        assert_eq!(moved.write(&mut to).unwrap_err().kind(), StoreErrorKind::Refused);
        assert!(to.contents().iter().all(|byte| *byte == 0));
        let beyond = moved.read(&mut from, &stretch(2, 0..1)).unwrap_err();
        assert_eq!(beyond.kind(), StoreErrorKind::Refused);
        assert_eq!(moved.write(&mut from).unwrap(), Written::default(), "nothing is left of it");
    }
}
