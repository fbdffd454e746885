//! The compared ORAMs, and the requests to the medium that an ORAM makes for a range.

use std::fmt;

use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use oblivio_models::medium::Request;

/// A compared ORAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Path ORAM as in the paper's baseline. Its position map is recursive down to one entry, with
    /// 4 labels per block, and each bucket is its own request.
    PathRecursive,
    /// Path ORAM with its position map on the client.
    PathFlat,
    /// `PathRecursive`, but evicts all blocks of a range together, in rORAM's layout ("Batched
    /// Eviction").
    BatchedEviction,
    /// rORAM with all classes and two ranges per access. The blocks read are removed and written
    /// back.
    Roram,
    /// This project's volume of blocks: RAW ORAM with Z5A5, twelve levels and the position map on
    /// the client.
    Blocks,
    /// The paper's naive alternative: a volume of blocks of 1 MiB. Its four levels on the client
    /// take the same memory as twelve levels in `Blocks`.
    Mebibytes,
    /// This project's volume with ranges of 4 KiB and 1 MiB: ten levels and all positions on the
    /// client. Only evictions write.
    Classes,
}

impl Form {
    /// All ORAMs, in the order of figures.
    pub const ALL: [Self; 7] = [
        Self::PathRecursive,
        Self::PathFlat,
        Self::BatchedEviction,
        Self::Roram,
        Self::Blocks,
        Self::Mebibytes,
        Self::Classes,
    ];

    /// The layout of the ORAM's trees, for 2^`level` blocks and ranges of up to 2^`ell` blocks.
    pub(super) fn layout(self, level: u8, ell: u8) -> Layout {
        let mut next = 0;
        let mut tree = |leaf_level: u8, bucket_bytes: u64| {
            let tree = Tree { base: next, leaf_level, bucket_bytes };
            next += bucket_bytes * ((2 << leaf_level) - 1);
            tree
        };
        // Two blocks per leaf. Volumes have up to 2.5.
        let half = level - 1;
        let trees = match self {
            Self::PathRecursive | Self::BatchedEviction => {
                let data = tree(level, PATH_BUCKET_BYTES);
                // 4 labels a block: each further tree has a quarter of the blocks, down to one.
                let maps = (0..level).rev().filter(|exponent| (level - exponent).is_multiple_of(2));
                [data]
                    .into_iter()
                    .chain(maps.map(|exponent| tree(exponent, MAP_BUCKET_BYTES)))
                    .collect()
            }
            Self::PathFlat => vec![tree(level, PATH_BUCKET_BYTES)],
            Self::Roram => (0..=ell).map(|_| tree(level, PATH_BUCKET_BYTES)).collect(),
            Self::Blocks => vec![tree(half, SLOTS_BYTES), tree(half, HEAD_BYTES)],
            Self::Mebibytes => {
                let half = half.saturating_sub(CLASS);
                vec![tree(half, SLOTS_BYTES << CLASS), tree(half, HEAD_BYTES)]
            }
            Self::Classes => (0..2)
                .flat_map(|_| [SLOTS_BYTES, HEAD_BYTES])
                .map(|bytes| tree(half, bytes))
                .collect(),
        };
        Layout { form: self, ell, trees, evictions: 0, since_eviction: 0 }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PathRecursive => "Path ORAM, recursive map",
            Self::PathFlat => "Path ORAM, flat map",
            Self::BatchedEviction => "Batched Eviction",
            Self::Roram => "rORAM",
            Self::Blocks => "this volume, blocks",
            Self::Mebibytes => "this volume, blocks of 1 MiB",
            Self::Classes => "this volume, ranges of 4 KiB and 1 MiB",
        })
    }
}

/// Bytes of a bucket with Z = 4 blocks of 4 KiB.
const PATH_BUCKET_BYTES: u64 = 4 * 4096;

/// Bytes of a bucket with four blocks of four labels: a sector.
const MAP_BUCKET_BYTES: u64 = 512;

/// Bytes of the slots of a volume's bucket (Z = 5). Headers are stored in a tree of their own.
const SLOTS_BYTES: u64 = 5 * 4096;
const HEAD_BYTES: u64 = 512;

/// Blocks accessed before a volume evicts a path (A).
const EVICT_PERIOD: u64 = 5;

/// The number of levels that a volume of blocks keeps on the client.
const BLOCKS_TOP_LEVELS: u8 = 12;
const MEBIBYTES_TOP_LEVELS: u8 = 4;
const CLASSES_TOP_LEVELS: u8 = 10;

/// The base-2 logarithm of the blocks in a volume's longer ranges of 1 MiB.
const CLASS: u8 = 8;

/// A tree on a medium, stored in order of level and bucket.
#[derive(Clone, Copy)]
struct Tree {
    base: u64,
    leaf_level: u8,
    bucket_bytes: u64,
}

impl Tree {
    fn offset(&self, level: u8, bucket: u64) -> u64 {
        self.base + ((1 << level) - 1 + bucket) * self.bucket_bytes
    }

    fn leaf(&self, coins: &mut StdRng) -> u64 {
        coins.random_range(0..1u64 << self.leaf_level)
    }

    /// Makes the requests for a path from level `from` on, one per bucket.
    fn path(&self, leaf: u64, from: u8, make: &mut dyn FnMut(Request)) {
        for level in from..=self.leaf_level {
            let offset = self.offset(level, leaf & ((1 << level) - 1));
            make(Request { offset, bytes: self.bucket_bytes, level });
        }
    }

    /// Makes the requests for paths with adjacent leaves from level `from` on, one per run of
    /// adjacent buckets.
    fn run(&self, first: u64, paths: u64, from: u8, make: &mut dyn FnMut(Request)) {
        for level in from..=self.leaf_level {
            let of_level = 1u64 << level;
            let (start, count) = (first % of_level, paths.min(of_level));
            let before_end = count.min(of_level - start);
            for (start, count) in [(start, before_end), (0, count - before_end)] {
                if count > 0 {
                    let bytes = count * self.bucket_bytes;
                    make(Request { offset: self.offset(level, start), bytes, level });
                }
            }
        }
    }
}

/// The trees of an ORAM, and its counters.
pub(super) struct Layout {
    form: Form,
    ell: u8,
    trees: Vec<Tree>,
    evictions: u64,
    since_eviction: u64,
}

impl Layout {
    /// Makes the requests for `blocks` blocks from `first` on. rORAM splits them into accesses to
    /// its longest ranges, and a volume at the boundaries of its ranges or blocks.
    pub(super) fn query(
        &mut self,
        first: u64,
        blocks: u64,
        coins: &mut StdRng,
        make: &mut dyn FnMut(Request),
    ) {
        match self.form {
            Form::PathRecursive | Form::PathFlat => {
                for _ in 0..blocks {
                    for tree in self.trees.iter().rev() {
                        let leaf = tree.leaf(coins);
                        tree.path(leaf, 0, make);
                        tree.path(leaf, 0, make);
                    }
                }
            }
            Form::BatchedEviction => {
                for _ in 0..blocks {
                    for tree in self.trees[1..].iter().rev() {
                        let leaf = tree.leaf(coins);
                        tree.path(leaf, 0, make);
                        tree.path(leaf, 0, make);
                    }
                    self.trees[0].path(self.trees[0].leaf(coins), 0, make);
                }
                self.evict(0, blocks, 0, make);
                self.evictions += blocks;
            }
            Form::Roram => {
                let longest = 1u64 << self.ell;
                let mut left = blocks;
                while left > 0 {
                    let asked = left.min(longest);
                    self.access_ranges(asked.next_power_of_two().ilog2() as usize, coins, make);
                    left -= asked;
                }
            }
            Form::Blocks => {
                (0..blocks).for_each(|_| self.access(0, 1, BLOCKS_TOP_LEVELS, coins, make));
            }
            Form::Mebibytes => {
                // A partial write of a large block reads and writes it in one access.
                for _ in first >> CLASS..=(first + blocks - 1) >> CLASS {
                    self.access(0, 1, MEBIBYTES_TOP_LEVELS, coins, make);
                }
            }
            Form::Classes => {
                // Split the request at the boundaries of ranges; the ends are read block by block.
                let (mut next, end) = (first, first + blocks);
                while next < end {
                    let range = 1 << CLASS;
                    let is_range = next % range == 0 && next + range <= end;
                    let (tree, count) = if is_range { (2, range) } else { (0, 1) };
                    self.access(tree, count, CLASSES_TOP_LEVELS, coins, make);
                    next += count;
                }
            }
        }
    }

    /// Makes the requests for rORAM's `Access`: reads two ranges of a class, writes both back, and
    /// evicts in all trees.
    fn access_ranges(&mut self, class: usize, coins: &mut StdRng, make: &mut dyn FnMut(Request)) {
        let range = 1u64 << class;
        for _ in 0..2 {
            let tree = self.trees[class];
            let leaf = tree.leaf(coins);
            tree.run(leaf, range, 0, make);
            tree.run(leaf, range, 0, make);
        }
        (0..self.trees.len()).for_each(|at| self.evict(at, 2 * range, 0, make));
        self.evictions += 2 * range;
    }

    /// Makes the requests for an access of a volume: reads `blocks` adjacent paths in trees `pair`
    /// and `pair + 1` (slots and headers), and makes the evictions that are due in every tree.
    fn access(
        &mut self,
        pair: usize,
        blocks: u64,
        top_levels: u8,
        coins: &mut StdRng,
        make: &mut dyn FnMut(Request),
    ) {
        let top_levels = top_levels.min(self.trees[0].leaf_level);
        let leaf = self.trees[pair].leaf(coins);
        self.trees[pair..pair + 2].iter().for_each(|tree| tree.run(leaf, blocks, top_levels, make));
        self.since_eviction += blocks;
        let evictions = self.since_eviction / EVICT_PERIOD;
        self.since_eviction %= EVICT_PERIOD;
        if evictions > 0 {
            for pair in (0..self.trees.len()).step_by(2) {
                // Slots and headers are read together, then written together.
                for _ in 0..2 {
                    self.trees[pair..pair + 2]
                        .iter()
                        .for_each(|tree| tree.run(self.evictions, evictions, top_levels, make));
                }
            }
        }
        self.evictions += evictions;
    }

    /// Makes the requests for rORAM's `BatchEvict`: reads `paths` adjacent paths of a tree, and
    /// writes them.
    fn evict(&self, at: usize, paths: u64, from: u8, make: &mut dyn FnMut(Request)) {
        for _ in 0..2 {
            self.trees[at].run(self.evictions, paths, from, make);
        }
    }
}
