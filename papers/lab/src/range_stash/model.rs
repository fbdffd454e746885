//! The model: the positions of copies of blocks, without their contents.

use rand::RngExt;
use rand::rngs::StdRng;

use super::setting::{Form, RangeStashSetting};

/// A copy of a block.
#[derive(Clone, Copy)]
struct BlockCopy {
    address: u32,
    leaf: u32,
    version: u32,
}

/// A slot that holds no block.
const EMPTY: BlockCopy = BlockCopy { address: u32::MAX, leaf: 0, version: 0 };

/// The tree and the stash of one class of ranges: the sub-ORAM `R_i` of rORAM for class `i`.
struct Tree {
    class: u8,
    /// The leaf of the first block of each range.
    position_map: Vec<u32>,
    /// All slots, in order of level and bucket.
    slots: Vec<BlockCopy>,
    /// Blocks on the client that wait for an eviction to this tree.
    stash: Vec<BlockCopy>,
    /// One plus the index in the stash, for each address; 0 if the block is not in the stash.
    place: Vec<u32>,
    evictions: u64,
    /// The number of the batch in which a copy was last found, and the copy's index in that batch,
    /// for each address.
    found: Vec<(u64, u32)>,
    batches: u64,
}

/// An ORAM of ranges that holds all blocks from the beginning.
pub(super) struct Model {
    setting: RangeStashSetting,
    trees: Vec<Tree>,
    since_eviction: u32,
    version: u32,
    coins: StdRng,
}

impl Model {
    pub(super) fn new(setting: &RangeStashSetting, mut coins: StdRng) -> Self {
        let RangeStashSetting { blocks, leaf_level, slots, .. } = *setting;
        let trees = setting.classes.iter().map(|class| {
            let ranges = (blocks >> class) as usize;
            let leaves = 0..1u32 << leaf_level;
            Tree {
                class: *class,
                position_map: (0..ranges).map(|_| coins.random_range(leaves.clone())).collect(),
                slots: vec![EMPTY; ((2 << leaf_level) - 1) * usize::from(slots)],
                stash: Vec::new(),
                place: vec![0; blocks as usize],
                evictions: 0,
                found: vec![(0, 0); blocks as usize],
                batches: 0,
            }
        });
        let trees = trees.collect();
        Self { setting: setting.clone(), trees, since_eviction: 0, version: 0, coins }
    }

    /// Writes the range that contains block `address`. The range has the class of tree number `at`.
    /// In the published form, also writes the next range. If evictions are due, makes them, and
    /// calls `left` for each tree with the number of its blocks on the client. Returns the number
    /// of blocks accessed.
    pub(super) fn access(&mut self, at: usize, address: u32, left: &mut dyn FnMut(usize)) -> u32 {
        let Self { setting, trees, coins, .. } = self;
        let range = 1u32 << trees[at].class;
        let base = address / range * range;
        let second = (base + range) % setting.blocks;
        let ranges = match setting.form {
            Form::Published if second != base => vec![base, second],
            Form::Published | Form::Volume => vec![base],
        };
        for base in &ranges {
            let fresh = coins.random_range(0..1u32 << setting.leaf_level);
            if setting.form == Form::Published {
                trees[at].remove(setting, *base, range);
            }
            trees[at].position_map[(base / range) as usize] = fresh;
        }
        self.version += 1;
        let accessed = ranges.len() as u32 * range;
        for address in ranges.iter().flat_map(|base| *base..base + range) {
            for tree in &mut *trees {
                tree.await_eviction(setting, address, self.version);
            }
        }
        self.since_eviction += accessed;
        let evictions = self.since_eviction / setting.evict_period;
        self.since_eviction %= setting.evict_period;
        if evictions > 0 {
            for tree in trees {
                tree.evict(setting, evictions);
                left(tree.stash.len());
            }
        }
        accessed
    }
}

impl Tree {
    fn leaf_of(&self, setting: &RangeStashSetting, address: u32) -> u32 {
        let range = address >> self.class;
        let within = address - (range << self.class);
        (self.position_map[range as usize] + within) & ((1 << setting.leaf_level) - 1)
    }

    /// The indices of a bucket's slots.
    fn bucket(setting: &RangeStashSetting, level: u8, bucket: u32) -> std::ops::Range<usize> {
        let slots = usize::from(setting.slots);
        let first = ((1usize << level) - 1 + bucket as usize) * slots;
        first..first + slots
    }

    /// Removes the blocks of a range from its buckets.
    fn remove(&mut self, setting: &RangeStashSetting, base: u32, range: u32) {
        let first = self.leaf_of(setting, base);
        for level in 0..=setting.leaf_level {
            for bucket in run(first, range, level) {
                for slot in &mut self.slots[Self::bucket(setting, level, bucket)] {
                    if (base..base + range).contains(&slot.address) {
                        *slot = EMPTY;
                    }
                }
            }
        }
    }

    fn await_eviction(&mut self, setting: &RangeStashSetting, address: u32, version: u32) {
        self.hold(BlockCopy { address, leaf: self.leaf_of(setting, address), version });
    }

    /// Adds a copy to the stash, where it replaces an older one.
    fn hold(&mut self, copy: BlockCopy) {
        match self.place[copy.address as usize] {
            0 => {
                self.stash.push(copy);
                self.place[copy.address as usize] = self.stash.len() as u32;
            }
            place => self.stash[place as usize - 1] = copy,
        }
    }

    /// Removes a block from the stash.
    fn forget(&mut self, address: u32) {
        let place = std::mem::take(&mut self.place[address as usize]);
        if place > 0 {
            self.stash.swap_remove(place as usize - 1);
            if let Some(moved) = self.stash.get(place as usize - 1) {
                self.place[moved.address as usize] = place;
            }
        }
    }

    /// Evicts as rORAM's `BatchEvict` does, in batches that write no bucket in storage twice.
    fn evict(&mut self, setting: &RangeStashSetting, evictions: u32) {
        let most = match setting.tree_top_levels {
            0 => 1 << setting.leaf_level,
            levels => 1 << levels,
        };
        let mut left = evictions;
        while left > 0 {
            let batch = left.min(most);
            self.evict_batch(setting, batch);
            left -= batch;
        }
    }

    fn evict_batch(&mut self, setting: &RangeStashSetting, paths: u32) {
        let first = (self.evictions % (1 << setting.leaf_level)) as u32;
        self.evictions += u64::from(paths);
        self.batches += 1;
        let levels = setting.tree_top_levels..=setting.leaf_level;
        let mut found: Vec<BlockCopy> = Vec::new();
        // A waiting copy is newer than any copy in the tree.
        let gate = |leaf: u32| offset(leaf, first, setting.tree_top_levels) < paths;
        for waiting in self.stash.iter().filter(|waiting| gate(waiting.leaf)) {
            self.found[waiting.address as usize] = (self.batches, found.len() as u32);
            found.push(*waiting);
        }
        for level in levels.clone() {
            for bucket in run(first, paths, level) {
                for slot in Self::bucket(setting, level, bucket) {
                    let copy = std::mem::replace(&mut self.slots[slot], EMPTY);
                    if copy.address == EMPTY.address {
                        continue;
                    }
                    let is_stale = setting.form == Form::Volume
                        && (self.leaf_of(setting, copy.address) != copy.leaf
                            || self.place[copy.address as usize] > 0);
                    if is_stale {
                        continue;
                    }
                    let (batch, at) = self.found[copy.address as usize];
                    if batch != self.batches {
                        self.found[copy.address as usize] = (self.batches, found.len() as u32);
                        found.push(copy);
                    } else if found[at as usize].version < copy.version {
                        found[at as usize] = copy;
                    }
                }
            }
        }
        for level in levels.rev() {
            let mut taken = vec![0; paths.min(1 << level) as usize];
            found.retain(|copy| {
                let at = offset(copy.leaf, first, level);
                let Some(taken) = taken.get_mut(at as usize) else { return true };
                if *taken == setting.slots {
                    return true;
                }
                let bucket = Self::bucket(setting, level, copy.leaf & ((1 << level) - 1));
                self.slots[bucket.start + usize::from(*taken)] = *copy;
                *taken += 1;
                self.found[copy.address as usize].1 = u32::MAX;
                false
            });
        }
        // Remove the waiting blocks that were placed in the tree.
        let placed = self.stash.iter().map(|waiting| waiting.address);
        let placed =
            placed.filter(|address| self.found[*address as usize] == (self.batches, u32::MAX));
        for address in placed.collect::<Vec<_>>() {
            self.forget(address);
        }
        found.into_iter().for_each(|copy| self.hold(copy));
    }
}

/// Number of buckets on `level` from the bucket of leaf `first` to the bucket of `leaf`, modulo the
/// number of buckets on the level.
fn offset(leaf: u32, first: u32, level: u8) -> u32 {
    leaf.wrapping_sub(first) & ((1 << level) - 1)
}

/// The buckets on `level` of `paths` adjacent paths, from the path of leaf `first` on.
fn run(first: u32, paths: u32, level: u8) -> impl Iterator<Item = u32> {
    let of_level = 1u32 << level;
    (0..paths.min(of_level)).map(move |more| (first + more) & (of_level - 1))
}

#[cfg(test)]
mod tests {
    use oblivio_core::reference::{RangeForm, RangesRead, ReadCopies, ReferenceRange};
    use rand::SeedableRng;

    use super::*;

    impl Model {
        /// Checks that in every tree the newest copy of each block is on the client or on its path.
        fn check(&self) {
            let setting = &self.setting;
            for tree in &self.trees {
                let mut newest: Vec<Option<BlockCopy>> = vec![None; setting.blocks as usize];
                for level in 0..=setting.leaf_level {
                    for bucket in 0..1 << level {
                        for slot in &tree.slots[Tree::bucket(setting, level, bucket)] {
                            if slot.address != EMPTY.address {
                                assert_eq!(slot.leaf & ((1 << level) - 1), bucket);
                                let newest = &mut newest[slot.address as usize];
                                if newest.is_none_or(|newest| newest.version < slot.version) {
                                    *newest = Some(*slot);
                                }
                            }
                        }
                    }
                }
                for waiting in &tree.stash {
                    newest[waiting.address as usize] = Some(*waiting);
                }
                for copy in newest.into_iter().flatten() {
                    assert_eq!(copy.leaf, tree.leaf_of(setting, copy.address));
                }
                for (at, waiting) in tree.stash.iter().enumerate() {
                    assert_eq!(tree.place[waiting.address as usize] as usize, at + 1);
                }
            }
        }
    }

    #[test]
    fn the_newest_copy_of_each_block_is_on_its_path_or_on_the_client() {
        for setting in [
            RangeStashSetting { blocks: 64, leaf_level: 5, ..RangeStashSetting::published(1, 4) },
            RangeStashSetting::volume(5, 10, &[0, 2], 3),
            RangeStashSetting::volume(4, 16, &[0, 1, 3], 2),
        ] {
            let mut coins = StdRng::seed_from_u64(3);
            let mut model = Model::new(&setting, StdRng::seed_from_u64(1));
            for step in 0..3000 {
                let at = coins.random_range(0..setting.classes.len());
                model.access(at, coins.random_range(0..setting.blocks), &mut |_| ());
                if step % 7 == 0 {
                    model.check();
                }
            }
        }
    }

    /// The mean number of blocks left on the client after an access, summed over all trees. The
    /// first value is from this model, and the second from the engine's literal reference.
    fn left_of(setting: &RangeStashSetting, seed: u64) -> [f64; 2] {
        const ACCESSES: u32 = 300;
        let (ranges, copies) = match setting.form {
            Form::Published => (RangesRead::Two, ReadCopies::Removed),
            Form::Volume => (RangesRead::One, ReadCopies::Left),
        };
        let form = RangeForm {
            blocks: setting.blocks.into(),
            leaf_level: setting.leaf_level,
            slots: setting.slots.into(),
            classes: setting.classes.clone(),
            ranges,
            copies,
            evict_period: setting.evict_period.into(),
        };
        let mut reference = ReferenceRange::new(form, 0, StdRng::seed_from_u64(seed));
        let mut model = Model::new(setting, StdRng::seed_from_u64(seed + 1));
        let mut coins = StdRng::seed_from_u64(seed + 2);
        // The reference must also hold all blocks from the beginning.
        for address in 0..setting.blocks {
            reference.access(address.into(), 1, Some(&[vec![]]));
        }
        let mut left = [0, 0];
        for access in 0..2 * ACCESSES {
            let at = coins.random_range(0..setting.classes.len());
            let class = setting.classes[at];
            let first = coins.random_range(0..setting.blocks >> class) << class;
            let mut of_model = 0;
            model.access(at, first, &mut |count| of_model += count);
            reference.access(first.into(), 1 << class, Some(&vec![vec![]; 1 << class]));
            if access >= ACCESSES {
                left[0] += of_model;
                left[1] += reference.stash_blocks().iter().sum::<usize>();
            }
        }
        left.map(|left| left as f64 / f64::from(ACCESSES))
    }

    /// The reference follows the paper literally, and is slow. The model leaves the same number of
    /// blocks on the client, in settings with so few slots that blocks are left.
    #[test]
    fn the_model_leaves_as_many_blocks_as_the_literal_reference() {
        const RUNS: u64 = 16;
        for setting in [
            RangeStashSetting {
                blocks: 64,
                leaf_level: 4,
                classes: vec![0, 1, 2],
                ..RangeStashSetting::published(1, 2)
            },
            RangeStashSetting {
                blocks: 64,
                leaf_level: 6,
                classes: vec![0, 2],
                ..RangeStashSetting::published(1, 1)
            },
            RangeStashSetting {
                blocks: 64,
                slots: 2,
                evict_period: 1,
                ..RangeStashSetting::volume(4, 16, &[0, 1, 2], 0)
            },
        ] {
            let runs: Vec<_> = (0..RUNS).map(|run| left_of(&setting, 100 * run)).collect();
            let [model, reference] = [0, 1].map(|which| {
                let values = runs.iter().map(|run| run[which]);
                let mean = values.clone().sum::<f64>() / RUNS as f64;
                let variance = values.map(|left| (left - mean).powi(2)).sum::<f64>();
                (mean, variance / (RUNS - 1) as f64 / RUNS as f64)
            });
            let error = (model.1 + reference.1).sqrt();
            assert!(model.0 > 1.0, "nothing is left: {setting}, {model:?}");
            let differs = (model.0 - reference.0).abs() > 4.0 * error;
            assert!(!differs, "{setting}: {model:?}, the reference {reference:?}");
        }
    }

    /// Number of blocks left on the client after all blocks have been written several times. The
    /// paths of `meeting` ranges of 64 blocks share one leaf, and the other ranges are spread over
    /// the tree.
    fn left_where_ranges_meet(meeting: u32, coins: &mut StdRng) -> usize {
        let (class, leaves) = (6, 1u32 << 10);
        let setting = RangeStashSetting {
            blocks: 40 << class,
            ..RangeStashSetting::volume(10, 10, &[class], 4)
        };
        let mut model = Model::new(&setting, StdRng::seed_from_u64(1));
        // No range of this tree is accessed, as if all accesses went to another tree.
        let spread = (40 - meeting.min(40)).max(1);
        for (range, position) in (0..).zip(&mut model.trees[0].position_map) {
            *position = match range < meeting {
                true => leaves / 2 - coins.random_range(0..1 << class),
                false => {
                    (leaves / 2 + (1 << class) + (range - meeting) * (leaves / 2 - 192) / spread)
                        % leaves
                }
            };
        }
        let mut left = 0;
        for step in 0..400 {
            model.version += 1;
            for address in (step % 40) << class..((step % 40) + 1) << class {
                model.trees[0].await_eviction(&setting, address, model.version);
            }
            model.trees[0].evict(&setting, 13);
            left = model.trees[0].stash.len();
        }
        left
    }

    /// Adjacent paths have separate buckets on the levels from the class on. These buckets have
    /// slots for a limited number of ranges that meet: five levels of five here, less those that
    /// other ranges use. If more ranges meet, blocks stay on the client forever.
    #[test]
    fn ranges_can_meet_while_their_paths_have_separate_slots() {
        let mut coins = StdRng::seed_from_u64(9);
        let mut mean = |meeting| {
            let left = (0..12).map(|_| left_where_ranges_meet(meeting, &mut coins));
            left.sum::<usize>() as f64 / 12.0
        };
        let [apart, some, many] = [2, 14, 28].map(&mut mean);
        assert!(some < apart + 10.0 && many > apart + 200.0, "{apart}, {some}, {many}");
    }
}
