//! rORAM: an ORAM whose accesses are to ranges (Chakraborti et al., "rORAM: Efficient Range ORAM
//! with O(log² N) Locality", NDSS 2019).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashMap;
use rand_core::CryptoRng;

/// The parameters of rORAM, which also select this project's variants. All are public.
#[derive(Clone, Debug)]
pub struct RangeForm {
    /// Number of blocks (N), a power of two.
    pub blocks: u64,
    /// The level of the leaves (h). `log2 N` in the paper.
    pub leaf_level: u8,
    /// Slots of a bucket (Z). 4 in the paper.
    pub slots: usize,
    /// The classes `i` that have a sub-ORAM for ranges of `2^i` blocks, ascending. `0..=ell` in the
    /// paper.
    pub classes: Vec<u8>,
    /// The ranges that an access reads.
    pub ranges: RangesRead,
    /// The treatment of copies after a read.
    pub copies: ReadCopies,
    /// Number of blocks that are read, in whole ranges, before each tree evicts one path (A). 1 in
    /// the paper.
    pub evict_period: u64,
}

/// The ranges that an access reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangesRead {
    /// The aligned range that contains the first block, and the range after it, as in the paper: a
    /// request may cross the boundary.
    Two,
    /// One aligned range: the caller splits requests at the boundaries.
    One,
}

/// The treatment of the copies in a tree after they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCopies {
    /// The copies are removed: their buckets are rewritten without them, as in the paper.
    Removed,
    /// The copies stay in the tree. The position map and the version distinguish live copies from
    /// stale ones.
    Left,
}

/// A run of consecutive paths in one sub-ORAM. Storage sees only such runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The class of the sub-ORAM.
    pub class: u8,
    /// Whether the paths are evicted. If not, they are read for a range.
    pub is_eviction: bool,
    /// The first path. On level `j`, path `p` goes through the bucket `p mod 2^j`.
    pub first: u64,
    /// The number of paths. They are consecutive and wrap around after the last leaf.
    pub paths: u64,
}

impl Run {
    /// The buckets of the run on a level, each once.
    pub fn buckets(&self, level: u8) -> impl Iterator<Item = u64> + use<> {
        let (first, of_level) = (self.first, 1 << level);
        (0..self.paths.min(of_level)).map(move |k| (first + k) % of_level)
    }
}

#[derive(Clone, Debug)]
struct BlockCopy {
    address: u64,
    /// The leaf to which the copy is mapped.
    leaf: u64,
    version: u64,
    data: Vec<u8>,
}

/// `R_i`: a tree, a stash and a position map for the ranges of one class.
struct SubOram {
    class: u8,
    /// The path of each range's first block, by range number.
    position_map: HashMap<u64, u64>,
    /// The blocks of each bucket, by level and index.
    buckets: HashMap<(u8, u64), Vec<BlockCopy>>,
    stash: BTreeMap<u64, BlockCopy>,
    /// Number of paths evicted so far.
    evictions: u64,
}

impl SubOram {
    fn new(class: u8) -> Self {
        let (position_map, buckets, stash) = Default::default();
        Self { class, position_map, buckets, stash, evictions: 0 }
    }

    fn range_of(&self, address: u64) -> u64 {
        address >> self.class
    }

    /// The path of a block, if its range is mapped.
    fn leaf_of(&self, address: u64, form: &RangeForm) -> Option<u64> {
        let first = self.position_map.get(&self.range_of(address))?;
        let within = address - (self.range_of(address) << self.class);
        Some((first + within) % form.leaves())
    }
}

impl RangeForm {
    /// The paper's parameters of rORAM, for `2^leaf_level` blocks and ranges of up to `2^ell`
    /// blocks.
    pub fn of_the_paper(leaf_level: u8, ell: u8) -> Self {
        Self {
            blocks: 1 << leaf_level,
            leaf_level,
            slots: 4,
            classes: (0..=ell).collect(),
            ranges: RangesRead::Two,
            copies: ReadCopies::Removed,
            evict_period: 1,
        }
    }

    fn leaves(&self) -> u64 {
        1 << self.leaf_level
    }

    /// The smallest class whose ranges hold `blocks` blocks.
    fn class_for(&self, blocks: u64) -> u8 {
        let class = self.classes.iter().find(|class| 1 << **class >= blocks);
        *class.expect("the largest class covers every request")
    }
}

/// The reference for range ORAM: a literal form of rORAM's `Access`, `ReadRange` and `BatchEvict`.
pub struct ReferenceRange<R> {
    form: RangeForm,
    subs: Vec<SubOram>,
    block_bytes: usize,
    /// Number of blocks that were read since the last path was evicted.
    since_eviction: u64,
    version: u64,
    coins: R,
    /// The runs of paths that storage has seen.
    pub runs: Vec<Run>,
}

impl<R: CryptoRng> ReferenceRange<R> {
    /// An empty ORAM. Blocks never written read as zeros.
    pub fn new(form: RangeForm, block_bytes: usize, coins: R) -> Self {
        let subs = form.classes.iter().map(|class| SubOram::new(*class)).collect();
        Self { form, subs, block_bytes, since_eviction: 0, version: 0, coins, runs: Vec::new() }
    }

    /// `Access(a, r, op)`: replaces the `blocks` blocks starting at `address` with `new_data`, if
    /// given, and returns their old contents. The block after the last one is the first.
    ///
    /// # Panics
    /// If no class has ranges of at least `blocks` blocks, or, with [`RangesRead::One`], if the
    /// request crosses the boundary of a range.
    pub fn access(
        &mut self,
        address: u64,
        blocks: u64,
        new_data: Option<&[Vec<u8>]>,
    ) -> Vec<Vec<u8>> {
        // Class i = ceil(log2 r), and the ranges to read.
        let class = self.form.class_for(blocks);
        let base = address >> class << class;
        let second = (base + (1 << class)) % self.form.blocks;
        let ranges = match self.form.ranges {
            // If the class has only one range, the next range is the same range.
            RangesRead::Two if second != base => vec![base, second],
            RangesRead::Two => vec![base],
            RangesRead::One => {
                assert!(
                    address - base + blocks <= 1 << class,
                    "the request must lie within one range"
                );
                vec![base]
            }
        };
        // ReadRange for each range.
        let mut read = BTreeMap::new();
        for range in &ranges {
            read.append(&mut self.read_range(class, *range));
        }
        // Apply the operation.
        self.version += 1;
        let mut old = Vec::new();
        for k in 0..blocks {
            let block = (address + k) % self.form.blocks;
            let held = read.get(&block).cloned();
            old.push(held.unwrap_or_else(|| vec![0; self.block_bytes]));
            if let Some(data) = new_data {
                read.insert(block, data[k as usize].clone());
            }
        }
        // Evict as many paths of every tree as blocks were read (for A = 1, as in the paper).
        self.since_eviction += (ranges.len() as u64) << class;
        let paths = self.since_eviction / self.form.evict_period;
        self.since_eviction %= self.form.evict_period;
        // Put fresh copies of all blocks read into every stash, then BatchEvict every tree.
        for at in 0..self.subs.len() {
            for (address, data) in &read {
                let leaf = self.leaf_for(at, *address);
                let copy = BlockCopy {
                    address: *address,
                    leaf,
                    version: self.version,
                    data: data.clone(),
                };
                self.subs[at].stash.insert(*address, copy);
            }
            self.batch_evict(at, paths);
        }
        old
    }

    /// `ReadRange_i(a)`: returns the newest copy of each block of a range, and remaps the range.
    fn read_range(&mut self, class: u8, base: u64) -> BTreeMap<u64, Vec<u8>> {
        let is_class = |other: &u8| *other == class;
        let at = self.form.classes.iter().position(is_class).expect("the form has this class");
        let blocks = 1 << class;
        let first = self.leaf_for(at, base);
        // Draw a fresh path p' and store it in the position map.
        let fresh = self.draw_leaf();
        let Self { form, subs, runs, .. } = self;
        let sub = &mut subs[at];
        sub.position_map.insert(base >> class, fresh);
        let run = Run { class, is_eviction: false, first, paths: blocks };
        runs.push(run);
        // Read the stash, and the run on every level.
        let is_wanted = |copy: &BlockCopy| (base..base + blocks).contains(&copy.address);
        let mut copies: Vec<BlockCopy> =
            sub.stash.values().filter(|copy| is_wanted(copy)).cloned().collect();
        for level in 0..=form.leaf_level {
            for bucket in run.buckets(level) {
                let bucket = sub.buckets.entry((level, bucket)).or_default();
                copies.extend(bucket.iter().filter(|copy| is_wanted(copy)).cloned());
                if form.copies == ReadCopies::Removed {
                    bucket.retain(|copy| !is_wanted(copy));
                }
            }
        }
        newest(copies).into_iter().map(|(address, copy)| (address, copy.data)).collect()
    }

    /// `BatchEvict_j(k)`: evicts the next `k` paths in reverse-lexicographic order, which is the
    /// order of leaf numbers here.
    fn batch_evict(&mut self, at: usize, paths: u64) {
        let Self { form, subs, runs, .. } = self;
        let sub = &mut subs[at];
        let first = sub.evictions % form.leaves();
        let run =
            Run { class: sub.class, is_eviction: true, first, paths: paths.min(form.leaves()) };
        sub.evictions += paths;
        if paths == 0 {
            return;
        }
        runs.push(run);
        // Read the buckets of the run and merge them with the stash, without stale copies.
        let mut copies: Vec<_> = core::mem::take(&mut sub.stash).into_values().collect();
        for level in 0..=form.leaf_level {
            for bucket in run.buckets(level) {
                copies.append(sub.buckets.entry((level, bucket)).or_default());
            }
        }
        if form.copies == ReadCopies::Left {
            copies.retain(|copy| sub.leaf_of(copy.address, form) == Some(copy.leaf));
        }
        sub.stash = newest(copies);
        // Refill greedily from the leaves up, at most Z blocks per bucket.
        for level in (0..=form.leaf_level).rev() {
            for bucket in run.buckets(level) {
                let goes = |copy: &&BlockCopy| copy.leaf % (1 << level) == bucket;
                let chosen = sub.stash.values().filter(goes).map(|copy| copy.address);
                let chosen: Vec<_> = chosen.take(form.slots).collect();
                let chosen =
                    chosen.iter().filter_map(|address| sub.stash.remove(address)).collect();
                sub.buckets.insert((level, bucket), chosen);
            }
        }
    }

    /// The path of a block in one of the trees. Maps its range first if it has no path.
    fn leaf_for(&mut self, at: usize, address: u64) -> u64 {
        if let Some(leaf) = self.subs[at].leaf_of(address, &self.form) {
            return leaf;
        }
        let first = self.draw_leaf();
        let range = self.subs[at].range_of(address);
        self.subs[at].position_map.insert(range, first);
        self.subs[at].leaf_of(address, &self.form).expect("the range was just mapped")
    }

    fn draw_leaf(&mut self) -> u64 {
        self.coins.next_u64() % self.form.leaves()
    }

    /// The number of blocks in the stash of each sub-ORAM.
    pub fn stash_blocks(&self) -> Vec<usize> {
        self.subs.iter().map(|sub| sub.stash.len()).collect()
    }

    /// Checks the invariants that hold between accesses. In every tree, the newest copy of each
    /// block is in the stash, or on the path that the position map names. It has the same version
    /// in every tree. No bucket has more blocks than slots.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn check(&self) {
        let mut addresses = BTreeSet::new();
        let mut versions: HashMap<u64, BTreeSet<u64>> = HashMap::new();
        for sub in &self.subs {
            let mut all: Vec<BlockCopy> = sub.stash.values().cloned().collect();
            all.extend(sub.buckets.values().flatten().cloned());
            for (address, copy) in newest(all) {
                addresses.insert(address);
                versions.entry(address).or_default().insert(copy.version);
                assert_eq!(sub.leaf_of(address, &self.form), Some(copy.leaf), "block {address}");
            }
            for ((level, number), bucket) in &sub.buckets {
                assert!(bucket.len() <= self.form.slots);
                assert!(bucket.iter().all(|copy| copy.leaf % (1 << level) == *number));
            }
        }
        for address in addresses {
            assert_eq!(
                versions[&address].len(),
                1,
                "block {address} must have the same version in every tree"
            );
            let everywhere = self.subs.iter().all(|sub| {
                let on_path = sub.leaf_of(address, &self.form).into_iter().flat_map(|leaf| {
                    (0..=self.form.leaf_level)
                        .filter_map(move |level| sub.buckets.get(&(level, leaf % (1 << level))))
                });
                sub.stash.contains_key(&address)
                    || on_path.flatten().any(|copy| copy.address == address)
            });
            assert!(everywhere, "block {address} must be in every tree");
        }
    }
}

/// The most recently written copy of each block. The version decides, because with
/// [`ReadCopies::Left`] an older copy may be nearer to the root.
fn newest(copies: Vec<BlockCopy>) -> BTreeMap<u64, BlockCopy> {
    let mut newest: BTreeMap<u64, BlockCopy> = BTreeMap::new();
    for copy in copies {
        let known = newest.get(&copy.address).map(|known| known.version);
        if known.is_none_or(|version| version < copy.version) {
            newest.insert(copy.address, copy);
        }
    }
    newest
}
