//! Buckets as they ought to be: all that was written is there, and zeros elsewhere.

use std::collections::HashMap;
use std::ops::Range;

use oblivio_core::BucketId;
use oblivio_core::store::{Piece, TreeId, TreeShape};

/// Of a few trees.
#[derive(Clone)]
pub(crate) struct Buckets {
    pub(crate) shapes: Vec<TreeShape>,
    /// Those of which anything was written.
    written: HashMap<(TreeId, BucketId), Vec<u8>>,
}

impl Buckets {
    pub(crate) fn new(shapes: Vec<TreeShape>) -> Self {
        Self { shapes, written: HashMap::new() }
    }

    /// The bytes of the pieces that there are.
    pub(crate) fn bytes(&self, pieces: &[Piece]) -> usize {
        let ranges = pieces.iter().filter_map(|piece| self.find(piece));
        ranges.map(|(range, _)| range.len()).sum()
    }

    /// What pieces hold, one after the other.
    ///
    /// # Panics
    /// When there is no such piece.
    pub(crate) fn read(&self, pieces: &[Piece]) -> Vec<u8> {
        let read = |piece: &Piece| {
            let (range, _) = self.find(piece).expect("it is there");
            let bucket = self.written.get(&(piece.tree, piece.bucket));
            bucket.map_or(vec![0; range.len()], |bucket| bucket[range].to_vec())
        };
        pieces.iter().flat_map(read).collect()
    }

    /// # Panics
    /// When there is no such piece, or there are too many bytes or too few.
    pub(crate) fn write(&mut self, pieces: &[Piece], mut bytes: &[u8]) {
        for piece in pieces {
            let (range, bucket_bytes) = self.find(piece).expect("it is there");
            let own = bytes.split_off(..range.len()).expect("enough bytes");
            let bucket = self.written.entry((piece.tree, piece.bucket));
            bucket.or_insert_with(|| vec![0; bucket_bytes])[range].copy_from_slice(own);
        }
        assert!(bytes.is_empty(), "too many bytes");
    }

    /// Where a piece is in its bucket, and the bytes of that.
    fn find(&self, piece: &Piece) -> Option<(Range<usize>, usize)> {
        let level = self.shapes.get(usize::from(piece.tree.0))?.level_of(piece.bucket)?;
        let (start, bytes) = level.part(piece.part)?;
        Some((start as usize..(start + bytes) as usize, level.bucket_bytes as usize))
    }
}
