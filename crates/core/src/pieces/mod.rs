//! Pieces: the parts of buckets that a trip to storage requests, and the bytes that it returns. All
//! of this is public.

mod frames;
mod shape;

pub use frames::{Frames, Span};
pub use shape::{LevelShape, TreeShape};

use crate::geometry::BucketId;

/// The number of a tree in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub u16);

/// A part of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The whole bucket: header, labels and slots.
    Whole,
    /// The header alone, which an access-only access of RAW ORAM writes back.
    Header,
    /// One slot, given by its index.
    Slot(u16),
}

/// One part of one bucket, which a trip requests. Public by nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The tree.
    pub tree: TreeId,
    /// The bucket in that tree.
    pub bucket: BucketId,
    /// The part of that bucket.
    pub part: Part,
}
