//! Pieces: what a trip to storage asks for, and what it brings. All of it is public.

mod frames;
mod shape;

pub use frames::{Frames, Span};
pub use shape::{LevelShape, TreeShape};

use crate::geometry::BucketId;

/// Which of the trees of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub u16);

/// Which part of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Header, labels and slots.
    Whole,
    /// The header alone: what an access-only access of RAW ORAM writes back.
    Header,
    /// One slot.
    Slot(u16),
}

/// What a trip asks for: one part of one bucket. Public by nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The tree.
    pub tree: TreeId,
    /// The bucket in that tree.
    pub bucket: BucketId,
    /// The part of that bucket.
    pub part: Part,
}
