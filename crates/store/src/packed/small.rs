//! Small trees, such as those of superblocks and anchors, which are kept in heads.

use oblivio_core::store::{Part, Piece, Span, TreeShape};

/// The buckets of the smallest trees of a store, in memory.
///
/// Which trees these are follows from the shapes: the smallest ones, as long as all of them
/// together have at most a given number of bytes.
pub(super) struct SmallTrees {
    /// The buckets of each tree; `None` for a tree that is not small.
    trees: Vec<Option<SmallTree>>,
    bytes: Vec<u8>,
}

struct SmallTree {
    /// The offset of each level.
    levels: Vec<usize>,
}

impl SmallTrees {
    /// Zeros in all buckets of the small trees of `shapes`.
    pub(super) fn new(shapes: &[TreeShape], bytes_max: usize) -> Self {
        let mut by_size: Vec<_> = (0..shapes.len()).collect();
        by_size.sort_by_key(|tree| shapes[*tree].tree_bytes());
        let mut trees: Vec<_> = shapes.iter().map(|_| None).collect();
        let mut bytes = 0;
        for tree in by_size {
            let tree_bytes = usize::try_from(shapes[tree].tree_bytes()).ok();
            let Some(end) = tree_bytes.and_then(|tree| tree.checked_add(bytes)) else { break };
            if end > bytes_max {
                break;
            }
            let levels = shapes[tree].levels().iter().map(|level| {
                let start = bytes;
                bytes += (level.buckets * level.bucket_bytes) as usize;
                start
            });
            trees[tree] = Some(SmallTree { levels: levels.collect() });
        }
        Self { trees, bytes: vec![0; bytes] }
    }

    /// Whether a tree is kept here.
    pub(super) fn contains(&self, tree: u16) -> bool {
        self.trees.get(usize::from(tree)).is_some_and(Option::is_some)
    }

    /// The position of a bucket in [`bytes`](Self::bytes); `None` if its tree is not small. The
    /// bucket exists and has `bucket_bytes` bytes.
    pub(super) fn find(&self, piece: &Piece, bucket_bytes: usize) -> Option<Span> {
        debug_assert_eq!(piece.part, Part::Whole);
        let tree = self.trees.get(usize::from(piece.tree.0))?.as_ref()?;
        let level = tree.levels.get(usize::from(piece.bucket.level()))?;
        let start = level + piece.bucket.index() as usize * bucket_bytes;
        Some(Span { start, bytes: bucket_bytes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use oblivio_core::BucketId;
    use oblivio_core::store::{LevelShape, TreeId};

    use super::*;

    #[test]
    fn the_smallest_trees_that_fit_are_kept() {
        let shape = |levels: &[(u64, usize)]| {
            let level = |(buckets, bytes): &(u64, usize)| LevelShape::of_heads(*buckets, *bytes);
            TreeShape::new(levels.iter().map(level).collect())
        };
        let shapes = [shape(&[(1, 50)]), shape(&[(1, 10), (2, 5)]), shape(&[(0, 0), (1, 1000)])];
        let small = SmallTrees::new(&shapes, 70);
        assert_eq!([0, 1, 2, 3].map(|tree| small.contains(tree)), [true, true, false, false]);
        assert_eq!(small.bytes().len(), 70);
        let find = |tree, level, index, bytes| {
            let bucket = BucketId::new(level, index);
            let piece = Piece { tree: TreeId(tree), bucket, part: Part::Whole };
            small.find(&piece, bytes).map(Span::range)
        };
        assert_eq!(find(1, 0, 0, 10), Some(0..10));
        assert_eq!(find(1, 1, 1, 5), Some(15..20));
        assert_eq!(find(0, 0, 0, 50), Some(20..70));
        assert_eq!(find(2, 1, 0, 1000), None);
        assert_eq!(SmallTrees::new(&shapes, 69).bytes().len(), 20);
        assert_eq!(SmallTrees::new(&shapes, 0).bytes().len(), 0);
    }
}
