//! Public records: the one way for bytes into storage that are not sealed.
//!
//! A superblock and an anchor say in clear what anyone may know, and carry what vouches for them; whoever reads
//! one believes nothing of it before that was checked. They lie in pairs, in trees of their own, so that a new one
//! never takes the place of the only good one. No other tree can be written here: blocks pass
//! [the seal](crate::seal) or nothing.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, StoreError, StoreErrorKind, check_sound};
use crate::geometry::BucketId;
use crate::pieces::{Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use crate::store::BucketStore;

/// Records in a tree.
pub const PAIR: u64 = 2;

/// A record is a small thing.
pub const RECORD_BYTES_MAX: usize = 64 << 10;

/// A root alone could not hold a pair.
const LEVEL: u8 = 1;

/// The shape of a tree that holds a pair of records of `record_bytes` bytes.
pub fn pair_shape(record_bytes: usize) -> TreeShape {
    let record_bytes = record_bytes as u64;
    let level = |buckets| LevelShape {
        buckets,
        slots: 1,
        header_bytes: 0,
        slots_offset: 0,
        slot_bytes: record_bytes,
        bucket_bytes: record_bytes,
    };
    TreeShape::new(vec![level(0), level(PAIR)])
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// The tree of its pair.
    pub tree: TreeId,
    /// Which of the pair: 0 or 1.
    pub index: u64,
}

impl RecordPlace {
    /// As a trip asks for it.
    pub fn piece(self) -> Piece {
        let bucket = BucketId::new(LEVEL, self.index);
        Piece { tree: self.tree, bucket, part: Part::Whole }
    }
}

/// Storage of records: every [`BucketStore`], and the [`Records`] of an array.
pub trait RecordStore {
    /// Whether `tree` holds a pair of records of `record_bytes` bytes.
    fn has_pair(&self, tree: TreeId, record_bytes: usize) -> bool;

    /// Reads records, in one trip. `each` gets the index of a place and a value that its record may
    /// have. A record never written is zeros. The caller takes the newest value that authenticates:
    /// share servers that were away show older ones.
    ///
    /// # Errors
    /// Those of [`BucketStore::read_candidates`].
    fn read_records(
        &mut self,
        places: &[RecordPlace],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError>;

    /// Writes a record to each of `places`, in one trip. Durable with the next flush.
    ///
    /// # Errors
    /// [`StoreErrorKind::Refused`] if the record is too large or a tree holds no pairs of such
    /// records; and those of [`BucketStore::write`].
    fn write_records(&mut self, places: &[RecordPlace], record: &[u8]) -> Result<(), StoreError>;

    /// Makes everything in storage durable.
    ///
    /// # Errors
    /// Those of [`BucketStore::flush`].
    fn flush_records(&mut self) -> Result<(), StoreError>;
}

impl<S: BucketStore + ?Sized> RecordStore for S {
    fn has_pair(&self, tree: TreeId, record_bytes: usize) -> bool {
        self.shape(tree) == Some(&pair_shape(record_bytes))
    }

    fn read_records(
        &mut self,
        places: &[RecordPlace],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let pieces: Vec<_> = places.iter().map(|place| place.piece()).collect();
        self.read_candidates(&pieces, each)
    }

    fn write_records(&mut self, places: &[RecordPlace], record: &[u8]) -> Result<(), StoreError> {
        let is_of_records = |place: &RecordPlace| self.has_pair(place.tree, record.len());
        if record.len() > RECORD_BYTES_MAX || !places.iter().all(is_of_records) {
            let message =
                "the store has no place for records of this length: it was made for something else";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let pieces: Vec<_> = places.iter().map(|place| place.piece()).collect();
        let spans = vec![Span { start: 0, bytes: record.len() }; pieces.len()];
        self.write(&pieces, &mut |blanks| blanks.put_unsealed(Frames::new(record, &spans)))
    }

    fn flush_records(&mut self) -> Result<(), StoreError> {
        self.flush()
    }
}

/// The records beside the blocks of an array, in the array's own store. A flush that fails breaks
/// the array.
pub struct Records<'a> {
    store: &'a mut dyn RecordStore,
    is_broken: &'a mut bool,
}

impl<'a> Records<'a> {
    /// The records in the store of an array, which is broken if `is_broken`.
    pub fn new(store: &'a mut dyn RecordStore, is_broken: &'a mut bool) -> Self {
        Self { store, is_broken }
    }

    /// Makes everything in storage durable, blocks too.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen), [`Store`](crate::ErrorKind::Store).
    pub fn flush(&mut self) -> Result<(), Error> {
        check_sound(*self.is_broken)?;
        Ok(self.flush_records()?)
    }
}

impl RecordStore for Records<'_> {
    fn has_pair(&self, tree: TreeId, record_bytes: usize) -> bool {
        self.store.has_pair(tree, record_bytes)
    }

    fn read_records(
        &mut self,
        places: &[RecordPlace],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        self.store.read_records(places, each)
    }

    fn write_records(&mut self, places: &[RecordPlace], record: &[u8]) -> Result<(), StoreError> {
        self.store.write_records(places, record)
    }

    fn flush_records(&mut self) -> Result<(), StoreError> {
        let flushed = self.store.flush_records();
        *self.is_broken |= flushed.is_err();
        flushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::LayoutKind;
    use crate::scheme::TreeConfig;
    use crate::store::MemoryStore;

    #[test]
    fn records_go_where_records_lie_and_nowhere_else() {
        let blocks = TreeConfig::path(100, 64).unwrap().shape().unwrap();
        let shapes = [pair_shape(10), blocks, pair_shape(RECORD_BYTES_MAX + 1)];
        let mut store = MemoryStore::new(&shapes, LayoutKind::Heap).unwrap();
        let place = |tree, index| RecordPlace { tree: TreeId(tree), index };
        store.write_records(&[place(0, 1)], b"0123456789").unwrap();
        let mut found = Vec::new();
        let mut take = |i, value: &[u8]| found.push((i, value.to_vec()));
        store.read_records(&[place(0, 0), place(0, 1)], &mut take).unwrap();
        store.read_records(&[place(0, 0)], &mut take).unwrap();
        assert_eq!(found, [(0, vec![0; 10]), (1, b"0123456789".to_vec()), (0, vec![0; 10])]);
        for (places, bytes) in [
            (vec![place(0, 0)], 9),
            (vec![place(1, 0)], 64),
            (vec![place(0, 0), place(1, 0)], 10),
            (vec![place(2, 0)], RECORD_BYTES_MAX + 1),
            (vec![place(3, 0)], 10),
        ] {
            let refused = store.write_records(&places, &vec![7; bytes]).unwrap_err();
            assert_eq!(refused.kind(), StoreErrorKind::Refused, "{places:?}");
        }
        let is_untouched = |_, value: &[u8]| assert_eq!(value, [0; 10]);
        store.read_records(&[place(0, 0)], &mut { is_untouched }).unwrap();
    }
}
