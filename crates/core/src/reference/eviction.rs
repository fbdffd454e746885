//! The two eviction procedures of the papers, word for word.

use alloc::vec;
use alloc::vec::Vec;

use crate::geometry::{BucketId, Geometry, Leaf};

/// A block's name and the leaf it is mapped to.
type Mapped = (u64, Leaf);

/// Algorithm 1 of Tiny ORAM without bit tricks: scan the stash once, and give each block the
/// deepest bucket that has room and is on its path. Returns the buckets from the root down, and the
/// blocks that are stuck.
///
/// A block is stuck, too, if it `may_go` not to that bucket: a question about the level, the address,
/// and what else goes to the path so far (IR-ORAM, section IV-C).
pub fn push_to_leaf(
    stash: Vec<Mapped>,
    evicted: Leaf,
    geometry: &Geometry,
    may_go: impl Fn(usize, u64, &[Vec<Mapped>]) -> bool,
) -> (Vec<Vec<Mapped>>, Vec<Mapped>) {
    let mut path = vec![Vec::new(); geometry.levels()];
    let mut stuck = Vec::new();
    for block in stash {
        let deepest = (0..geometry.levels()).rev().find(|&level| {
            let on_both =
                BucketId::on_path(evicted, level as u8) == BucketId::on_path(block.1, level as u8);
            on_both && path[level].len() < geometry.slots(level)
        });
        match deepest.filter(|level| may_go(*level, block.0, &path)) {
            Some(level) => path[level].push(block),
            None => stuck.push(block),
        }
    }
    (path, stuck)
}

/// Path ORAM's own eviction (Stefanov et al., CCS'13, Fig. 1, lines 10 to 15): from the leaf up,
/// fill each bucket with any blocks that may go there. Which ones is free, so only how many go to
/// each level, from the root down, can be compared.
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
