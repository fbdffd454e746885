//! A model of buckets, which hold zeros until they are written.

use std::collections::HashMap;
use std::ops::Range;

use oblivio_core::BucketId;
use oblivio_core::store::{Piece, TreeId, TreeShape};

/// The buckets of a few trees.
#[derive(Clone)]
pub(crate) struct Buckets {
    pub(crate) shapes: Vec<TreeShape>,
    /// The buckets with at least one write.
    written: HashMap<(TreeId, BucketId), Vec<u8>>,
}

impl Buckets {
    pub(crate) fn new(shapes: Vec<TreeShape>) -> Self {
        Self { shapes, written: HashMap::new() }
    }

    /// Total bytes of the pieces in `pieces` that exist.
    pub(crate) fn bytes(&self, pieces: &[Piece]) -> usize {
        let ranges = pieces.iter().filter_map(|piece| self.find(piece));
        ranges.map(|(range, _)| range.len()).sum()
    }

    /// Returns the concatenated contents of `pieces`.
    ///
    /// # Panics
    /// If a piece does not exist.
    pub(crate) fn read(&self, pieces: &[Piece]) -> Vec<u8> {
        let read = |piece: &Piece| {
            let (range, _) = self.find(piece).expect("the piece exists");
            let bucket = self.written.get(&(piece.tree, piece.bucket));
            bucket.map_or(vec![0; range.len()], |bucket| bucket[range].to_vec())
        };
        pieces.iter().flat_map(read).collect()
    }

    /// Writes `bytes` to `pieces`, one after the other.
    ///
    /// # Panics
    /// If a piece does not exist, or the number of bytes is wrong.
    pub(crate) fn write(&mut self, pieces: &[Piece], mut bytes: &[u8]) {
        for piece in pieces {
            let (range, bucket_bytes) = self.find(piece).expect("the piece exists");
            let own = bytes.split_off(..range.len()).expect("enough bytes");
            let bucket = self.written.entry((piece.tree, piece.bucket));
            bucket.or_insert_with(|| vec![0; bucket_bytes])[range].copy_from_slice(own);
        }
        assert!(bytes.is_empty(), "too many bytes");
    }

    /// The range of a piece in its bucket, and the size of the bucket.
    fn find(&self, piece: &Piece) -> Option<(Range<usize>, usize)> {
        let level = self.shapes.get(usize::from(piece.tree.0))?.level_of(piece.bucket)?;
        let (start, bytes) = level.part(piece.part)?;
        Some((start as usize..(start + bytes) as usize, level.bucket_bytes as usize))
    }
}
