//! Buckets of the levels nearest the root, with one item per slot.

use alloc::vec;
use alloc::vec::Vec;

use crate::geometry::{BucketId, Geometry, Leaf};

/// The items in each bucket of the levels `0..levels`, in order of arrival.
pub(super) struct Buckets<T> {
    levels: u8,
    /// The number of items in each bucket.
    held: Vec<u16>,
    /// The items of all buckets in one array with `stride` places per bucket, so that a bucket's
    /// items are found without indirection. Allocated with the first item.
    places: Vec<T>,
    stride: usize,
}

impl<T: Copy> Buckets<T> {
    pub(super) fn new(levels: u8, geometry: &Geometry) -> Self {
        let slots = (0..usize::from(levels)).map(|level| geometry.slots(level));
        Self {
            levels,
            held: vec![0; (1 << levels) - 1],
            places: Vec::new(),
            stride: slots.max().unwrap_or(0),
        }
    }

    /// Removes all items on the path to `leaf`, beginning at the root, and passes them to `each`.
    #[inline]
    pub(super) fn drain_path(&mut self, leaf: Leaf, mut each: impl FnMut(T)) {
        for level in 0..self.levels {
            let bucket = BucketId::on_path(leaf, level);
            self.get(bucket).iter().for_each(|item| each(*item));
            self.held[bucket.0 as usize] = 0;
        }
    }

    /// The items of a bucket of these levels.
    #[inline]
    pub(super) fn get(&self, bucket: BucketId) -> &[T] {
        match usize::from(self.held[bucket.0 as usize]) {
            0 => &[],
            held => &self.places[bucket.0 as usize * self.stride..][..held],
        }
    }

    /// Adds an item to a bucket that has a free slot.
    #[inline]
    pub(super) fn push(&mut self, bucket: BucketId, item: T) {
        if self.places.is_empty() {
            self.places = vec![item; self.held.len() * self.stride];
        }
        let held = &mut self.held[bucket.0 as usize];
        self.places[bucket.0 as usize * self.stride..][..self.stride][usize::from(*held)] = item;
        *held += 1;
    }

    /// Removes the first item of a bucket that satisfies `is_it`. The remaining items keep their
    /// order.
    pub(super) fn remove(&mut self, bucket: BucketId, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let at = self.get(bucket).iter().position(is_it)?;
        let held = &mut self.held[bucket.0 as usize];
        let rest = &mut self.places[bucket.0 as usize * self.stride..][..usize::from(*held)][at..];
        rest.rotate_left(1);
        *held -= 1;
        rest.last().copied()
    }

    /// Whether `bucket` belongs to these levels and has a free slot.
    pub(super) fn has_room(&self, bucket: BucketId, geometry: &Geometry) -> bool {
        let slots = || geometry.slots(usize::from(bucket.level()));
        self.held.get(bucket.0 as usize).is_some_and(|held| usize::from(*held) < slots())
    }

    /// Drops the items for which `keep` returns false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for bucket in (0..self.held.len() as u64).map(BucketId) {
            let items = self.get(bucket).to_vec();
            self.held[bucket.0 as usize] = 0;
            items.into_iter().filter(&mut keep).for_each(|item| self.push(bucket, item));
        }
    }

    /// Every item with its bucket.
    pub(super) fn iter(&self) -> impl Iterator<Item = (BucketId, &T)> {
        let buckets = (0..self.held.len() as u64).map(BucketId);
        buckets.flat_map(|bucket| self.get(bucket).iter().map(move |item| (bucket, item)))
    }
}
