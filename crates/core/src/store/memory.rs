//! Untrusted storage in the memory of this machine.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{
    Blanks, BucketStore, Capabilities, Fill, Frames, LevelShape, Piece, Span, TreeId, TreeShape,
};
use crate::error::{Error, ErrorKind, StoreError, StoreErrorKind};
use crate::hint::{self, CACHE_LINE_BYTES};
use crate::layout::{Layout, LayoutKind, LevelPlace};
pub use crate::memory::Pages;
use crate::memory::{NoMemory, Region};

/// A store that keeps all trees in one anonymous mapping (without the feature `mmap`: in one
/// allocation), with huge pages if the system provides them.
///
/// In the mapping, pages that were never written take no memory. So creating a store takes no time,
/// whatever its size.
pub struct MemoryStore {
    arena: Region,
    trees: Vec<Tree>,
    spans: Vec<Span>,
}

struct Tree {
    shape: TreeShape,
    levels: Box<[Level]>,
}

/// The location and shape of the buckets of one level. They are stored together, because a trip
/// needs both for every bucket.
struct Level {
    /// Offset in bytes of the tree in the arena.
    base: u64,
    place: LevelPlace,
    shape: LevelShape,
}

impl Tree {
    fn new(shape: &TreeShape, layout: &Layout, base: u64) -> Self {
        let level = |(level, shape): (u8, &LevelShape)| Level {
            base,
            place: layout.level(level).clone(),
            shape: *shape,
        };
        Self { shape: shape.clone(), levels: (0..).zip(shape.levels()).map(level).collect() }
    }
}

impl MemoryStore {
    /// A store for trees of these shapes, starting with `TreeId(0)`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if a shape is refused by [`Layout::new`], the trees exceed the
    /// address space, or the system has no memory for them.
    pub fn new(shapes: &[TreeShape], kind: LayoutKind) -> Result<Self, Error> {
        let mut trees = Vec::with_capacity(shapes.len());
        let mut bytes = 0u64;
        for shape in shapes {
            let layout = Layout::new(shape, kind, CACHE_LINE_BYTES as u64)?;
            let base = bytes;
            bytes = bytes
                .checked_add(layout.bytes())
                .and_then(|end| end.checked_next_multiple_of(CACHE_LINE_BYTES as u64))
                .ok_or_else(|| {
                    Error::new(
                        ErrorKind::InvalidConfig,
                        "the trees exceed 2^64 bytes: use a smaller capacity",
                    )
                })?;
            trees.push(Tree::new(shape, &layout, base));
        }
        let refused = |cause: NoMemory| {
            Error::new(
                ErrorKind::InvalidConfig,
                format!("no memory for trees of {bytes} bytes ({cause}): use a smaller capacity"),
            )
        };
        let arena = Region::new(bytes).map_err(refused)?;
        Ok(Self { arena, trees, spans: Vec::new() })
    }

    /// The layout that was fastest in our measurements of stores in memory. It has no padding. With
    /// huge pages, placing the buckets of a path close together gains nothing. Without them,
    /// consider [`LayoutKind::Subtree`] with the page size.
    pub fn default_layout() -> LayoutKind {
        LayoutKind::Striped
    }

    /// The kind of pages that the system provided.
    pub fn pages(&self) -> Pages {
        self.arena.pages()
    }

    /// The complete contents of storage, which the adversary could dump.
    pub fn contents(&self) -> &[u8] {
        self.arena.bytes()
    }

    /// The complete contents of storage, for tampering by an active adversary or a test.
    pub fn contents_mut(&mut self) -> &mut [u8] {
        self.arena.bytes_mut()
    }

    /// The span of `piece` in [`Self::contents`], if the store has the piece.
    pub fn span(&self, piece: &Piece) -> Option<Span> {
        find(&self.trees, piece)
    }

    /// Computes the spans of `pieces`.
    #[inline]
    fn locate(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        let Self { trees, spans, .. } = self;
        spans.resize(pieces.len(), Span { start: 0, bytes: 0 });
        for (span, piece) in spans.iter_mut().zip(pieces) {
            *span = find(trees, piece).ok_or_else(|| absent(piece))?;
        }
        Ok(())
    }
}

#[inline(always)]
fn find(trees: &[Tree], piece: &Piece) -> Option<Span> {
    let tree = trees.get(usize::from(piece.tree.0))?;
    let Level { base, place, shape } = tree.levels.get(usize::from(piece.bucket.level()))?;
    if piece.bucket.index() >= shape.buckets {
        return None;
    }
    let (offset, bytes) = shape.part(piece.part)?;
    let start = base + place.offset(piece.bucket.index()) + offset;
    Some(Span { start: start as usize, bytes: bytes as usize })
}

impl BucketStore for MemoryStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.trees.get(usize::from(tree.0)).map(|tree| &tree.shape)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTS
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        for span in pieces.iter().filter_map(|piece| self.span(piece)) {
            hint::prefetch(&self.arena.bytes()[span.range()]);
        }
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.locate(pieces)?;
        // The last pieces of a path are not in any cache, so prefetch them first. Only their first
        // lines: the reader prefetches the rest of each piece while it works.
        for span in self.spans.iter().rev() {
            hint::prefetch_first_line(&self.arena.bytes()[span.range()]);
        }
        Ok(Frames::new(self.arena.bytes(), &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.locate(pieces)?;
        fill(Blanks::new(self.arena.bytes_mut(), &self.spans));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cold]
fn absent(piece: &Piece) -> StoreError {
    StoreError::new(
        StoreErrorKind::Refused,
        format!(
            "this store has no {:?} of bucket {} in tree {}",
            piece.part, piece.bucket, piece.tree.0
        ),
    )
}
