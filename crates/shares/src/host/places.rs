//! The places of buckets in the files of a server.
//!
//! An eviction overwrites nothing that the state before it needs, so that a server can roll back
//! (ADR 16). Siblings have one place, because they are empty when they are written. Leaves and the
//! root have two places, used in turn. The number of evictions determines which place is current,
//! and whether a bucket is in use.

use oblivio_core::BucketId;
use oblivio_core::Leaf;
use oblivio_core::geometry::evictions_of_bucket;

use crate::tree::Tree;

/// One of the files of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// The file with the record of the server's progress, and two areas for the root.
    Root,
    /// The file with the buckets between the root and the leaves.
    Siblings,
    /// The file with two places for each leaf.
    Leaves,
}

/// The place of a bucket: consecutive slots in one of the server's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketPlace {
    pub(super) file: File,
    /// The number of slots in the file before the bucket's first slot.
    pub(super) first_slot: u64,
}

/// The place of a bucket after `evictions` evictions; `None` if the bucket is then all zeros.
pub(super) fn place(tree: Tree, bucket: BucketId, evictions: u64) -> Option<BucketPlace> {
    let (level, index, slots) = (bucket.level(), bucket.index(), tree.slots() as u64);
    if level == 0 {
        let first_slot = evictions % 2 * tree.accesses() as u64;
        return Some(BucketPlace { file: File::Root, first_slot });
    }
    if level == tree.height() {
        // A leaf is written whenever the bucket above it is on the path.
        let written = evictions_of_bucket(evictions, Leaf(index), level - 1);
        let first_slot = (2 * index + written % 2) * slots;
        return Some(BucketPlace { file: File::Leaves, first_slot });
    }
    tree.is_in_use(bucket, evictions)
        .then(|| BucketPlace { file: File::Siblings, first_slot: first_of_sibling(tree, bucket) })
}

/// The place to which an eviction writes a sibling. The state before the eviction has no blocks
/// there.
pub(super) fn place_of_sibling(tree: Tree, bucket: BucketId) -> BucketPlace {
    BucketPlace { file: File::Siblings, first_slot: first_of_sibling(tree, bucket) }
}

fn first_of_sibling(tree: Tree, bucket: BucketId) -> u64 {
    // The root has a file of its own.
    (bucket.0 - 1) * tree.slots() as u64
}

/// The number of slots in a file.
pub(super) fn slots_of_file(tree: Tree, file: File) -> u64 {
    let slots = tree.slots() as u64;
    match file {
        File::Root => 2 * tree.accesses() as u64,
        File::Siblings => (tree.leaves() - 2) * slots,
        File::Leaves => 2 * tree.leaves() * slots,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::tree::Preset;

    /// Each bucket is where the number of evictions says, and no eviction overwrites the state
    /// before it. The test simulates evictions bucket by bucket, with the contents and the place of
    /// each bucket.
    #[test]
    fn places_match_evictions_and_no_eviction_overwrites_the_state_before_it() {
        for height in 1..=5 {
            let tree = Tree::new(height, Preset { slots: 5, accesses: 3 }).unwrap();
            let mut holds: HashMap<BucketId, Option<BucketPlace>> = HashMap::new();
            for number in 0..200 {
                let before: Vec<_> =
                    holds.iter().filter_map(|(bucket, place)| Some((*bucket, (*place)?))).collect();
                for triplet in tree.triplets(number) {
                    holds.insert(triplet.source, None);
                    if triplet.is_last {
                        for leaf in [triplet.destination, triplet.sibling] {
                            holds.insert(leaf, place(tree, leaf, number + 1));
                        }
                    } else {
                        assert_eq!(place(tree, triplet.sibling, number), None, "{triplet:?}");
                        holds
                            .insert(triplet.sibling, Some(place_of_sibling(tree, triplet.sibling)));
                        holds.insert(triplet.destination, None);
                    }
                }
                for (bucket, written) in holds.iter().filter(|it| it.0.level() > 0) {
                    assert_eq!(place(tree, *bucket, number + 1), *written, "{bucket}, {number}");
                }
                // This eviction must write only to places that were unused before it.
                let is_new = |it: &(BucketId, BucketPlace)| !before.contains(it);
                let after = holds.iter().filter_map(|(bucket, place)| Some((*bucket, (*place)?)));
                for (bucket, place) in after.filter(is_new) {
                    assert!(before.iter().all(|(_, other)| *other != place), "{bucket}, {number}");
                }
                assert_ne!(
                    place(tree, BucketId::ROOT, number),
                    place(tree, BucketId::ROOT, number + 1)
                );
            }
        }
    }

    #[test]
    fn every_place_is_in_its_file_and_no_two_overlap() {
        for height in 1..=6 {
            let tree = Tree::new(height, Preset { slots: 5, accesses: 3 }).unwrap();
            let buckets = (0..(2 << height) - 1).map(BucketId);
            for bucket in buckets.filter(|it| it.level() > 0) {
                for evictions in 0..130 {
                    let Some(BucketPlace { file, first_slot }) = place(tree, bucket, evictions)
                    else {
                        continue;
                    };
                    assert!(first_slot + 5 <= slots_of_file(tree, file));
                    assert_eq!(first_slot % 5, 0);
                }
            }
        }
    }
}
