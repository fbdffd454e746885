//! Fills an empty tree at once, in place of an access for each block.
//!
//! Each block goes into the deepest bucket of its path that has room. So buckets are fuller near the
//! leaves than after as many accesses, and emptier near the root, until accesses have mixed them: within
//! as many as there are buckets on a level. Whoever measures a tree in use lets it run before.

use super::client::Client;
use super::{Home, PathBackend, Populate};
use crate::error::{Error, ErrorKind};
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::memory::zeros;
use crate::stash::Entry;
use crate::store::BucketStore;

impl<S: BucketStore> Populate for PathBackend<S> {
    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error> {
        self.client.begin()?;
        let config = self.client.config.clone();
        let mut placed = Placed::new(&config.geometry, config.capacity)?;
        let mut left = Vec::new();
        for (address, leaf) in blocks {
            if address >= config.capacity || !config.geometry.contains_leaf(leaf) {
                let message = "there is no such address, or no such leaf, in this tree";
                return Err(Error::new(ErrorKind::InvalidRequest, message));
            }
            if !placed.put(address, leaf) {
                left.push((address, leaf));
            }
        }
        let zero = self.client.blocks.zero();
        let mut entries = Vec::new();
        for bucket in (0..config.geometry.buckets()).map(BucketId) {
            if bucket.level() < config.tree_top_levels {
                let home = Home::TreeTop(bucket);
                left.extend(placed.tags(bucket).filter(|tag| !bring(&mut self.client, home, *tag)));
                continue;
            }
            let tags = placed.tags(bucket);
            entries.clear();
            entries.extend(tags.map(|(address, leaf)| Entry { address, leaf, place: zero }));
            entries.resize(config.geometry.slots(bucket.level().into()), Entry::dummy(zero));
            let counter = self.io.fresh_counter()?;
            self.io.seal_bucket(bucket, counter, &entries, &self.client.blocks)?;
        }
        for tag in left {
            let within_bound = self.client.stash.len() < config.stash_blocks_max;
            if !(within_bound && bring(&mut self.client, Home::Stash, tag)) {
                let message =
                    "more blocks than the stash may hold found no bucket: use a larger tree";
                return Err(Error::new(ErrorKind::StashFull, message));
            }
        }
        self.client.end();
        Ok(())
    }
}

fn bring(client: &mut Client, home: Home, (address, leaf): (u64, Leaf)) -> bool {
    let zeros = vec![0; client.config.block_bytes];
    client.bring_back(home, address, leaf, &zeros)
}

/// Which blocks are in which buckets.
struct Placed<'g> {
    geometry: &'g Geometry,
    /// The first slot of each level.
    starts: Vec<usize>,
    /// For each slot of the tree, level after level, an address and a leaf.
    tags: Vec<u64>,
    /// How many blocks each bucket has.
    held: Vec<u8>,
}

impl<'g> Placed<'g> {
    fn new(geometry: &'g Geometry, capacity: u64) -> Result<Self, Error> {
        let tag_bits = capacity.ilog2() + 1 + u32::from(geometry.leaf_level());
        let slots = usize::try_from(geometry.tree_slots()).ok();
        let tags = slots.filter(|_| tag_bits <= u64::BITS).and_then(zeros);
        let held = usize::try_from(geometry.buckets()).ok().and_then(zeros);
        let (Some(tags), Some(held)) = (tags, held) else {
            let message = "no memory for the tags of the whole tree: use a smaller one";
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        };
        let starts = (0..geometry.levels()).scan(0, |next, level| {
            let start = *next;
            *next += geometry.slots(level) << level;
            Some(start)
        });
        Ok(Self { geometry, starts: starts.collect(), tags, held })
    }

    /// Gives a block the deepest slot of its path, if there is one.
    fn put(&mut self, address: u64, leaf: Leaf) -> bool {
        let leaf_level = self.geometry.leaf_level();
        for bucket in (0..=leaf_level).rev().map(|level| BucketId::on_path(leaf, level)) {
            let held = usize::from(self.held[bucket.0 as usize]);
            if held < self.geometry.slots(bucket.level().into()) {
                let slot = self.first_slot(bucket) + held;
                self.tags[slot] = address << leaf_level | leaf.0;
                self.held[bucket.0 as usize] += 1;
                return true;
            }
        }
        false
    }

    /// The blocks of a bucket.
    fn tags(&self, bucket: BucketId) -> impl Iterator<Item = (u64, Leaf)> {
        let leaf_level = self.geometry.leaf_level();
        let held = self.held[bucket.0 as usize].into();
        let tags = &self.tags[self.first_slot(bucket)..][..held];
        tags.iter().map(move |tag| (tag >> leaf_level, Leaf(tag & ((1 << leaf_level) - 1))))
    }

    fn first_slot(&self, bucket: BucketId) -> usize {
        let level = usize::from(bucket.level());
        self.starts[level] + bucket.index() as usize * self.geometry.slots(level)
    }
}
