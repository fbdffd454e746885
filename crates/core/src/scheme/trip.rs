//! The buckets of one round trip to storage, which are a path or a part of a path.

use alloc::vec::Vec;
use core::ops::Range;

use crate::bucket::{BucketFormat, LevelFormat};
use crate::geometry::{BucketId, Leaf};
use crate::pieces::{Part, Piece, TreeId};
use crate::seal::BATCH_BYTES;

/// Consecutive buckets of the path to a leaf, from one level down.
pub(super) struct Trip {
    tree: TreeId,
    leaf: Leaf,
    /// The level of the first bucket.
    first_level: u8,
    pieces: Vec<Piece>,
}

/// A bucket of a trip.
#[derive(Clone, Copy)]
pub(super) struct TripBucket<'a> {
    /// The index of the bucket in the trip.
    pub(super) i: usize,
    pub(super) id: BucketId,
    pub(super) leaf: Leaf,
    /// The sizes of the bucket's parts.
    pub(super) sizes: &'a LevelFormat,
}

impl Trip {
    pub(super) fn new(tree: TreeId) -> Self {
        Self { tree, leaf: Leaf(0), first_level: 0, pieces: Vec::new() }
    }

    /// Sets the trip to whole buckets on the given levels of the path to `leaf`.
    #[inline]
    pub(super) fn set_path(&mut self, leaf: Leaf, levels: Range<u8>) {
        let tree = self.tree;
        self.leaf = leaf;
        self.first_level = levels.start;
        self.pieces.clear();
        self.pieces.extend(levels.map(|level| Piece {
            tree,
            bucket: BucketId::on_path(leaf, level),
            part: Part::Whole,
        }));
    }

    /// Narrows the trip to the headers of its buckets.
    #[inline]
    pub(super) fn narrow_to_headers(&mut self) {
        self.pieces.iter_mut().for_each(|piece| piece.part = Part::Header);
    }

    #[inline]
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The buckets in order.
    #[inline]
    pub(super) fn buckets<'a>(
        &'a self,
        format: &'a BucketFormat,
    ) -> impl Iterator<Item = TripBucket<'a>> + Clone {
        let levels = &format.levels()[usize::from(self.first_level)..];
        self.pieces.iter().zip(levels).enumerate().map(move |(i, (piece, sizes))| TripBucket {
            i,
            id: piece.bucket,
            leaf: self.leaf,
            sizes,
        })
    }

    /// Splits the trip into batches of buckets whose masks are computed together. Unless the
    /// buckets are large, a single batch holds the whole trip.
    #[inline]
    pub(super) fn batches<'a>(&'a self, format: &'a BucketFormat) -> Batches<'a> {
        Batches { trip: self, format, next: 0 }
    }
}

/// The batches of a trip: see [`Trip::batches`].
pub(super) struct Batches<'a> {
    trip: &'a Trip,
    format: &'a BucketFormat,
    next: usize,
}

impl<'a> Batches<'a> {
    /// The buckets of the next batch; `None` after the last batch.
    #[inline]
    pub(super) fn next(
        &mut self,
    ) -> Option<impl Iterator<Item = TripBucket<'a>> + Clone + use<'a>> {
        let rest = self.trip.buckets(self.format).skip(self.next);
        let mut bytes = 0;
        let fitting = rest.clone().take_while(|bucket| {
            bytes += bucket.sizes.bucket_bytes();
            bytes <= BATCH_BYTES
        });
        let count = fitting.count().max(1);
        self.next += count;
        let batch = rest.take(count);
        batch.clone().next().is_some().then_some(batch)
    }
}
