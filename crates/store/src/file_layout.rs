//! Finds the positions of pieces in the file.

use oblivio_core::store::{Part, Piece, TreeId, TreeShape};
use oblivio_core::{StoreError, StoreErrorKind};

use crate::container::{Container, PlacedTree};
use crate::error::OpenError;

/// A contiguous run of bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) bytes: usize,
}

impl Extent {
    pub(crate) fn end(self) -> u64 {
        self.start + self.bytes as u64
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }

    /// Extends the extent at both ends to multiples of `granule_bytes`.
    pub(crate) fn rounded_out(self, granule_bytes: u64) -> Self {
        let start = self.start - self.start % granule_bytes;
        let end = self.end().next_multiple_of(granule_bytes);
        Self { start, bytes: (end - start) as usize }
    }
}

/// The position of a piece in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSlot {
    /// The extent of the piece.
    pub(crate) piece: Extent,
    /// The extent of the bucket that contains the piece, including the padding up to the next
    /// bucket.
    pub(crate) bucket: Extent,
    pub(crate) part: Part,
}

/// The trees of a file, with their positions.
pub(crate) struct FileLayout {
    shapes: Vec<TreeShape>,
    trees: Vec<PlacedTree>,
}

impl FileLayout {
    pub(crate) fn new(shapes: &[TreeShape]) -> Result<Self, OpenError> {
        Ok(Self { shapes: shapes.to_vec(), trees: Container::new(shapes)?.into_trees() })
    }

    pub(crate) fn shapes(&self) -> &[TreeShape] {
        &self.shapes
    }

    pub(crate) fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.shapes.get(usize::from(tree.0))
    }

    /// The position of `piece`; `None` if the store has no such piece.
    pub(crate) fn find(&self, piece: &Piece) -> Option<FileSlot> {
        let level = self.shape(piece.tree)?.level_of(piece.bucket)?;
        let (offset, bytes) = level.part(piece.part)?;
        let tree = &self.trees[usize::from(piece.tree.0)];
        let start = tree.base + tree.layout.offset(piece.bucket);
        let bucket = Extent { start, bytes: level.bucket_bytes as usize };
        Some(FileSlot {
            piece: Extent { start: start + offset, bytes: bytes as usize },
            bucket: bucket.rounded_out(crate::container::SECTOR_BYTES),
            part: piece.part,
        })
    }
}

/// The error for a piece that the store does not have.
#[cold]
pub fn absent(piece: &Piece) -> StoreError {
    let message = format!(
        "this store has no {:?} of bucket {} in tree {}",
        piece.part, piece.bucket, piece.tree.0
    );
    StoreError::new(StoreErrorKind::Refused, message)
}
