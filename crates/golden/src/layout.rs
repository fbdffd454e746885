//! The memory layout of the controller's tree.
//!
//! The tree is divided into subtrees of `k` levels. The buckets of a subtree are contiguous, so a
//! path touches few DRAM rows.

/// The memory layout of a tree.
#[derive(Clone, Copy, Debug)]
pub struct ImageLayout {
    leaf_level: u8,
    subtree_levels: u8,
    bucket_beats: u64,
}

/// The position of a beat: a bucket, and the beat in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeatOfBucket {
    /// Level of the bucket.
    pub level: u8,
    /// Index of the bucket on its level: the leaf modulo `2^level`.
    pub index: u64,
    /// Number of the beat in the bucket: 0 holds counter and tables, the others hold blocks.
    pub beat: u64,
}

impl ImageLayout {
    /// Creates the layout of a tree with levels 0 to `leaf_level`, divided every `subtree_levels`
    /// levels. A bucket takes `bucket_beats` beats.
    pub fn new(leaf_level: u8, subtree_levels: u8, bucket_beats: u64) -> Self {
        Self { leaf_level, subtree_levels, bucket_beats }
    }

    /// Number of beats of a bucket.
    pub fn bucket_beats(&self) -> u64 {
        self.bucket_beats
    }

    /// Number of buckets of the tree.
    pub fn buckets(&self) -> u64 {
        (1 << (self.leaf_level + 1)) - 1
    }

    /// The index of a bucket in memory order. The bucket with `index` on `level` must exist.
    pub fn place(&self, level: u8, index: u64) -> u64 {
        let (root_level, depth) = self.split(level);
        let (root, below) = (index & ones(root_level), index >> root_level);
        ones(root_level) + root * self.subtree_buckets(root_level) + ones(depth) + below
    }

    /// The address of beat number `beat` of a bucket.
    pub fn address(&self, level: u8, index: u64, beat: u64) -> u64 {
        self.place(level, index) * self.bucket_beats + beat
    }

    /// The beat at an address. `None` past the end of the tree.
    pub fn beat_at(&self, address: u64) -> Option<BeatOfBucket> {
        let place = address / self.bucket_beats;
        if place >= self.buckets() {
            return None;
        }
        // The last row of subtrees that starts at or before this place.
        let (root_level, _) = self.split((place + 1).ilog2() as u8);
        let in_row = place - ones(root_level);
        let size = self.subtree_buckets(root_level);
        let (root, in_subtree) = (in_row / size, in_row % size);
        let depth = (in_subtree + 1).ilog2() as u8;
        Some(BeatOfBucket {
            level: root_level + depth,
            index: root | (in_subtree - ones(depth)) << root_level,
            beat: address % self.bucket_beats,
        })
    }

    /// The level of the root of the subtree that contains `level`, and the depth of `level` within
    /// it.
    fn split(&self, level: u8) -> (u8, u8) {
        let depth = level % self.subtree_levels;
        (level - depth, depth)
    }

    /// Number of buckets of a subtree with its root at `root_level`.
    fn subtree_buckets(&self, root_level: u8) -> u64 {
        ones(self.subtree_levels.min(self.leaf_level + 1 - root_level))
    }
}

/// A number of `bits` ones: `2^bits - 1`.
fn ones(bits: u8) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_fill_the_image_without_gaps_and_are_found_again() {
        for leaf_level in 0..=6 {
            for subtree_levels in 1..=5 {
                for bucket_beats in [1, 3, 6] {
                    let layout = ImageLayout::new(leaf_level, subtree_levels, bucket_beats);
                    let mut is_taken = vec![false; (layout.buckets() * bucket_beats) as usize];
                    for level in 0..=leaf_level {
                        for index in 0..1 << level {
                            for beat in 0..bucket_beats {
                                let address = layout.address(level, index, beat);
                                assert!(!is_taken[address as usize]);
                                is_taken[address as usize] = true;
                                let found = layout.beat_at(address);
                                assert_eq!(found, Some(BeatOfBucket { level, index, beat }));
                            }
                        }
                    }
                    assert!(is_taken.iter().all(|taken| *taken));
                    assert_eq!(layout.beat_at(is_taken.len() as u64), None);
                }
            }
        }
    }

    #[test]
    fn a_subtree_lies_in_one_stretch() {
        // Levels 0 and 1, then four subtrees of levels 2 and 3.
        let layout = ImageLayout::new(3, 2, 1);
        let places =
            |level: u8| (0..1u64 << level).map(|i| layout.place(level, i)).collect::<Vec<_>>();
        assert_eq!(places(0), [0]);
        assert_eq!(places(1), [1, 2]);
        assert_eq!(places(2), [3, 6, 9, 12]);
        assert_eq!(places(3), [4, 7, 10, 13, 5, 8, 11, 14]);
    }
}
