//! The two eviction procedures of the papers, in literal form.

use alloc::vec;
use alloc::vec::Vec;

use crate::geometry::{BucketId, Geometry, Leaf};

/// A block's address, and the leaf to which the block is mapped.
type Mapped = (u64, Leaf);

/// Algorithm 1 of Tiny ORAM without bit tricks: scans the stash once, and gives each block the
/// deepest bucket on its path that has a free slot. Returns the buckets from the root down, and the
/// blocks that stay in the stash.
///
/// A block also stays in the stash if `may_go` returns `false` for that bucket. Its arguments are
/// the bucket's level, the block's address, and the blocks planned for the path so far (IR-ORAM,
/// section IV-C).
pub fn push_to_leaf(
    stash: Vec<Mapped>,
    evicted: Leaf,
    geometry: &Geometry,
    may_go: impl Fn(usize, u64, &[Vec<Mapped>]) -> bool,
) -> (Vec<Vec<Mapped>>, Vec<Mapped>) {
    // Alg. 1, lines 3 and 4: the path is empty.
    let mut path = vec![Vec::new(); geometry.levels()];
    let mut stuck = Vec::new();
    // Alg. 1, lines 5 and 6: each block of the stash.
    for block in stash {
        // Alg. 1, lines 7 and 12 to 23: the deepest bucket on both paths that is not full.
        let deepest = (0..geometry.levels()).rev().find(|&level| {
            let on_both =
                BucketId::on_path(evicted, level as u8) == BucketId::on_path(block.1, level as u8);
            on_both && path[level].len() < geometry.slots(level)
        });
        match deepest.filter(|level| may_go(*level, block.0, &path)) {
            // Alg. 1, lines 8 to 11: the block takes the next slot of this bucket.
            Some(level) => path[level].push(block),
            // Alg. 1, line 22: the block is stuck in the stash.
            None => stuck.push(block),
        }
    }
    (path, stuck)
}

/// Path ORAM's own eviction (Stefanov et al., CCS'13, Fig. 1, lines 10 to 15): from the leaf up,
/// fill each bucket with any blocks that may go there. The choice of blocks is free, so the result
/// is the number of blocks on each level, from the root down.
pub fn greedy_fills(mut stash: Vec<Leaf>, evicted: Leaf, geometry: &Geometry) -> Vec<usize> {
    let mut fills = vec![0; geometry.levels()];
    for level in (0..geometry.levels()).rev() {
        let bucket = BucketId::on_path(evicted, level as u8);
        stash.retain(|leaf| {
            let goes = fills[level] < geometry.slots(level) && bucket.is_on_path(*leaf);
            fills[level] += usize::from(goes);
            !goes
        });
    }
    fills
}
