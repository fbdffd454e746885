//! Something for each slot of the levels nearest the root.

use crate::geometry::{BucketId, Geometry, Leaf};

/// For each bucket of the levels `0..levels`, what it holds, in the order in which it came.
pub(super) struct Buckets<T> {
    levels: u8,
    held: Vec<Vec<T>>,
}

impl<T> Buckets<T> {
    pub(super) fn new(levels: u8, geometry: &Geometry) -> Self {
        let held = (0..(1u64 << levels) - 1)
            .map(|id| Vec::with_capacity(geometry.slots(usize::from(BucketId(id).level()))))
            .collect();
        Self { levels, held }
    }

    /// The bucket on `level` of the path to `leaf`.
    pub(super) fn on_path(&mut self, leaf: Leaf, level: u8) -> &mut Vec<T> {
        self.get_mut(BucketId::on_path(leaf, level))
    }

    /// All that is on the path to `leaf`, the root's first. It is empty then.
    pub(super) fn drain_path(&mut self, leaf: Leaf, mut each: impl FnMut(T)) {
        for level in 0..self.levels {
            self.on_path(leaf, level).drain(..).for_each(&mut each);
        }
    }

    /// A bucket that is here.
    pub(super) fn get_mut(&mut self, bucket: BucketId) -> &mut Vec<T> {
        &mut self.held[bucket.0 as usize]
    }

    /// Whether `bucket` is here and has a free slot.
    pub(super) fn has_room(&self, bucket: BucketId, geometry: &Geometry) -> bool {
        let slots = || geometry.slots(usize::from(bucket.level()));
        self.held.get(bucket.0 as usize).is_some_and(|held| held.len() < slots())
    }

    /// Drops what is not to be kept.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.held.iter_mut().for_each(|bucket| bucket.retain(&mut keep));
    }

    /// Everything, with its bucket.
    pub(super) fn iter(&self) -> impl Iterator<Item = (BucketId, &T)> {
        let buckets = (0..).map(BucketId).zip(&self.held);
        buckets.flat_map(|(id, held)| held.iter().map(move |item| (id, item)))
    }
}
