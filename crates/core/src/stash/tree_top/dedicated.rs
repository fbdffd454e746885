//! A dedicated tree top: buckets on the client with the same form as in storage.

use super::buckets::Buckets;
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::stash::Entry;

/// A dedicated tree top: its blocks, bucket by bucket.
pub(super) struct Dedicated {
    levels: u8,
    buckets: Buckets<Entry>,
}

impl Dedicated {
    pub(super) fn new(levels: u8, geometry: &Geometry) -> Self {
        Self { levels, buckets: Buckets::new(levels, geometry) }
    }

    pub(super) fn load(&mut self, leaf: Leaf, each: impl FnMut(Entry)) {
        self.buckets.drain_path(leaf, each);
    }

    pub(super) fn bucket_of(&self, leaf: Leaf, address: u64) -> Option<BucketId> {
        let mut path = (0..self.levels).map(|level| BucketId::on_path(leaf, level));
        let holds = |bucket: &BucketId| {
            self.buckets.get(*bucket).iter().any(|entry| entry.address == address)
        };
        path.find(holds)
    }

    pub(super) fn take(&mut self, leaf: Leaf, address: u64) -> Option<Entry> {
        let mut path = (0..self.levels).map(|level| BucketId::on_path(leaf, level));
        path.find_map(|bucket| self.buckets.remove(bucket, |entry| entry.address == address))
    }

    pub(super) fn has_room(&self, bucket: BucketId, geometry: &Geometry) -> bool {
        self.buckets.has_room(bucket, geometry)
    }

    pub(super) fn put(&mut self, bucket: BucketId, entry: Entry) {
        self.buckets.push(bucket, entry);
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.buckets.retain(keep);
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = (BucketId, &Entry)> {
        self.buckets.iter()
    }
}
