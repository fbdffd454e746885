//! Public records: the only way to write unsealed bytes to storage.
//!
//! A record is a volume's superblock (its description of itself) or its anchor (the number and the
//! name of the client's latest checkpoint). Records are not encrypted. They carry their own
//! authentication, which a reader checks before it trusts anything else in them. Records are kept
//! in pairs, in trees of their own, so that a new record never overwrites the only good one. No
//! other tree can be written here: blocks must pass [the seal](crate::seal).

use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, StoreError, StoreErrorKind, check_not_broken};
use crate::geometry::BucketId;
use crate::pieces::{Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use crate::store::BucketStore;

/// Number of records in a tree of records.
pub const PAIR: u64 = 2;

/// Maximum number of bytes of a record.
pub const RECORD_BYTES_MAX: usize = 64 << 10;

/// The level of a tree that holds both records. The root level is empty, because it has room for
/// only one bucket.
const LEVEL: u8 = 1;

/// The shape of a tree for a pair of records of `record_bytes` bytes.
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

/// The location of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// The tree of the pair of records.
    pub tree: TreeId,
    /// The index of the record in its pair: 0 or 1.
    pub index: u64,
}

impl RecordPlace {
    /// The piece of storage that holds the record, for a request.
    pub fn piece(self) -> Piece {
        let bucket = BucketId::new(LEVEL, self.index);
        Piece { tree: self.tree, bucket, part: Part::Whole }
    }
}

/// Storage of records. Implemented by every [`BucketStore`], and by the [`Records`] of an array.
pub trait RecordStore {
    /// Whether `tree` holds a pair of records of `record_bytes` bytes.
    fn has_pair(&self, tree: TreeId, record_bytes: usize) -> bool;

    /// Reads records in one trip. Calls `each` with the index of a place in `places` and a possible
    /// value of its record, at least once per place. A record never written is zeros. The caller
    /// takes the newest value that authenticates, because share servers that missed writes return
    /// older ones.
    ///
    /// # Errors
    /// The errors of [`BucketStore::read_candidates`].
    fn read_records(
        &mut self,
        places: &[RecordPlace],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError>;

    /// Writes `record` to each of `places`, in one trip. The record is durable after the next
    /// flush.
    ///
    /// # Errors
    /// [`StoreErrorKind::Refused`] if the record is too large or a tree has no pair of records of
    /// this length; and the errors of [`BucketStore::write`].
    fn write_records(&mut self, places: &[RecordPlace], record: &[u8]) -> Result<(), StoreError>;

    /// Makes everything in storage durable.
    ///
    /// # Errors
    /// The errors of [`BucketStore::flush`].
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
            let message = "the store was not made for records of this length: make a new store";
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

/// The records in an array's own store, next to its blocks. If flushing them fails, the array
/// becomes unusable.
pub struct Records<'a> {
    store: &'a mut dyn RecordStore,
    is_broken: &'a mut bool,
}

impl<'a> Records<'a> {
    /// The records in the store of an array. `is_broken` is the array's flag for an earlier
    /// failure.
    pub fn new(store: &'a mut dyn RecordStore, is_broken: &'a mut bool) -> Self {
        Self { store, is_broken }
    }

    /// Makes everything in storage durable, including blocks.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen), [`Store`](crate::ErrorKind::Store).
    pub fn flush(&mut self) -> Result<(), Error> {
        check_not_broken(*self.is_broken)?;
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
    fn records_are_written_only_to_their_own_trees() {
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
