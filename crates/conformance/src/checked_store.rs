//! A store under test, and a table of its expected contents.

use std::collections::HashMap;
use std::ops::Range;

use oblivio_core::TreeConfig;
use oblivio_core::geometry::{BucketId, Geometry};
use oblivio_core::store::{
    BucketStore, Capabilities, LevelShape, Part, Piece, SealedByClient, TreeId, TreeShape,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The shapes of small trees with different levels, slots and block sizes. The last tree has no
/// buckets on levels 0 and 2, and only some on level 3.
pub(crate) fn shapes() -> [TreeShape; 3] {
    let shape = |slots: &[u16], block_bytes| {
        let geometry = Geometry::profile(slots).expect("levels with slots");
        TreeConfig::new(7, block_bytes, geometry, 1).shape().expect("a small tree")
    };
    let mut levels = shape(&[1, 2, 1, 1], 32).levels().to_vec();
    for (level, buckets) in levels.iter_mut().zip([0, 2, 0, 5]) {
        level.buckets = buckets;
    }
    [shape(&[2, 1, 3, 2], 48), shape(&[1, 5, 2], 16), TreeShape::new(levels)]
}

/// A store and its expected contents.
pub(crate) struct CheckedStore<S> {
    pub(crate) store: S,
    pub(crate) shapes: Vec<TreeShape>,
    buckets: HashMap<(TreeId, BucketId), Vec<u8>>,
    pub(crate) coins: StdRng,
}

impl<S: BucketStore> CheckedStore<S> {
    pub(crate) fn new(store: S, shapes: &[TreeShape]) -> Self {
        let coins = StdRng::seed_from_u64(0);
        Self { store, shapes: shapes.to_vec(), buckets: HashMap::new(), coins }
    }

    /// Reopens the store and keeps the table.
    pub(crate) fn reopened(self, reopen: impl FnOnce(S) -> S) -> Self {
        Self { store: reopen(self.store), ..self }
    }

    pub(crate) fn can(&self, these: Capabilities) -> bool {
        self.store.capabilities().contains(these)
    }

    /// Returns every piece of every tree that the store supports (see [`Capabilities`]).
    pub(crate) fn all_pieces(&self) -> Vec<Piece> {
        let whole = self.all_of(Part::Whole);
        let parts_of = |piece: Piece| {
            let slots = (0..self.level_shape(&piece).slots).map(Part::Slot);
            let parts = [Part::Whole, Part::Header].into_iter().chain(slots);
            parts.map(move |part| Piece { part, ..piece })
        };
        let can = self.store.capabilities();
        whole.into_iter().flat_map(parts_of).filter(|piece| can.allow(piece)).collect()
    }

    /// Returns part `part` of every bucket of every tree.
    pub(crate) fn all_of(&self, part: Part) -> Vec<Piece> {
        let trees = (0..).map(TreeId).zip(&self.shapes);
        let pieces = trees.flat_map(|(tree, shape)| {
            let buckets = (0..(1 << shape.level_count()) - 1).map(BucketId);
            let buckets = buckets.filter(|bucket| shape.contains(*bucket));
            buckets.map(move |bucket| Piece { tree, bucket, part })
        });
        pieces.collect()
    }

    fn level_shape(&self, piece: &Piece) -> &LevelShape {
        &self.shapes[usize::from(piece.tree.0)].levels()[usize::from(piece.bucket.level())]
    }

    /// The byte range of `piece` within its bucket, computed from the documentation of
    /// [`LevelShape`]. To be an independent check, this does not call the code that stores use.
    fn range(&self, piece: &Piece) -> Range<usize> {
        let shape = self.level_shape(piece);
        let (start, bytes) = match piece.part {
            Part::Whole => (0, shape.bucket_bytes),
            Part::Header => (0, shape.header_bytes),
            Part::Slot(slot) => {
                (shape.slots_offset + u64::from(slot) * shape.slot_bytes, shape.slot_bytes)
            }
        };
        start as usize..(start + bytes) as usize
    }

    fn bucket_mut(&mut self, piece: &Piece) -> &mut Vec<u8> {
        let absent = vec![0; self.level_shape(piece).bucket_bytes as usize];
        self.buckets.entry((piece.tree, piece.bucket)).or_insert(absent)
    }

    /// Draws random bytes for each of `pieces`.
    pub(crate) fn draw(&mut self, pieces: &[Piece]) -> Vec<Vec<u8>> {
        let lengths: Vec<_> = pieces.iter().map(|piece| self.range(piece).len()).collect();
        let coins = &mut self.coins;
        lengths.into_iter().map(|bytes| (0..bytes).map(|_| coins.random()).collect()).collect()
    }

    /// Writes random bytes to `pieces`, in one trip to the store and in the table.
    pub(crate) fn write(&mut self, pieces: &[Piece]) {
        let drawn = self.draw(pieces);
        for (piece, bytes) in pieces.iter().zip(&drawn) {
            let range = self.range(piece);
            self.bucket_mut(piece)[range].copy_from_slice(bytes);
        }
        let bytes = drawn.concat();
        let mut fills = 0;
        self.store
            .write(pieces, &mut |blanks| {
                fills += 1;
                SealedByClient::new(&bytes).put(blanks)
            })
            .expect("a write of pieces that exist");
        assert_eq!(fills, 1, "blanks are filled exactly once");
    }

    /// Checks that the store has exactly the requested trees.
    pub(crate) fn expect_shapes(&self) {
        for (tree, shape) in (0..).zip(&self.shapes) {
            assert_eq!(self.store.shape(TreeId(tree)), Some(shape), "tree {tree}");
        }
        let past_the_end = TreeId(self.shapes.len() as u16);
        assert_eq!(self.store.shape(past_the_end), None, "a tree that was not requested");
    }

    /// Reads `pieces` in one trip and compares their contents with the table.
    pub(crate) fn expect(&mut self, pieces: &[Piece], case: &str) {
        let expected: Vec<Vec<u8>> = pieces
            .iter()
            .map(|piece| {
                let range = self.range(piece);
                self.bucket_mut(piece)[range].to_vec()
            })
            .collect();
        let frames = self.store.read(pieces).expect("a read of pieces that exist");
        assert_eq!(frames.len(), pieces.len(), "{case}: one frame for each piece");
        for (i, piece) in pieces.iter().enumerate() {
            assert!(frames.get(i) == expected[i], "{case}: frame {i}, {piece:?}, is wrong");
        }
    }

    pub(crate) fn flush(&mut self) {
        self.store.flush().expect("a flush of a sound store");
    }
}
