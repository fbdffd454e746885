//! The parameters of a range ORAM, which never change after its creation.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use rand_core::CryptoRng;

use super::access::RangeArray;
use super::plan::{self, RangeCost};
use super::state::{self, Head, RangeRestore};
use super::{NAME, impossible};
use crate::durable::section::Fields;
use crate::durable::{
    AnyStore, Cost, Durable, DurableConfig, Fact, FactValue, RangePolicy, Restore, StateSize,
};
use crate::error::Error;
use crate::geometry::Geometry;
use crate::pieces::{TreeId, TreeShape};
use crate::scheme::{
    RawConfig, RotatingTrees, TREE_TOP_LEVELS_MAX, TreeConfig, WINDOW_ACCESSES_MAX,
};
use crate::seal::{Era, MasterKey};

/// The parameters of a range ORAM. Public. The papers' names are in parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeParams {
    /// Number of blocks (N).
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// The level of the leaves, in every tree (L of Tiny ORAM, h of rORAM).
    pub leaf_level: u8,
    /// Number of levels that the client keeps, from the root on. Two to this power is `W`, the
    /// number of evictions that a saved state survives.
    pub tree_top_levels: u8,
    /// Slots of a bucket (Z).
    pub slots: u16,
    /// Number of blocks accessed before each eviction (A).
    pub evict_period: u32,
    /// Maximum number of blocks, per tree, that stay on the client because no eviction to the tree
    /// had room for them (C).
    pub stash_blocks_max: u32,
    /// The classes, ascending: for each `i` there is a sub-ORAM of ranges of `2^i` blocks.
    pub classes: Vec<u8>,
    /// The ranges that a disk requests. The disk must consist of whole ranges: of the fixed class
    /// for [`RangePolicy::Fixed`], and of the largest class for [`RangePolicy::Exact`].
    pub policy: RangePolicy,
}

/// Maximum bytes of a range: the record of an access must fit into the client's log.
pub(super) const RANGE_BYTES_MAX: u64 = 32 << 20;

/// Maximum class: log₂ of the blocks of a range.
const CLASS_MAX: u8 = 16;

/// Number of trees of the store per sub-ORAM: one for slots, and one for heads (tags and tables of
/// buckets).
const TREES_PER_CLASS: usize = 2;

impl RangeParams {
    /// The parameters that are [encoded](DurableConfig::encode) as `params`.
    pub(super) fn decode(blocks: u64, block_bytes: u32, params: &[u8]) -> Result<Self, Error> {
        let decoded = Self::read(blocks, block_bytes, Fields::new(params))
            .map_err(|_| impossible("the parameters of `range` have the wrong length"))?;
        decoded.check()?;
        Ok(decoded)
    }

    fn read(blocks: u64, block_bytes: u32, mut fields: Fields<'_>) -> Result<Self, Error> {
        let (leaf_level, tree_top_levels, slots) = (fields.u8()?, fields.u8()?, fields.u16()?);
        let (evict_period, stash_blocks_max, classes) =
            (fields.u32()?, fields.u32()?, fields.u32()?);
        let policy = policy_of(fields.u8()?);
        fields.end()?;
        let classes = (0..32).filter(|class| classes >> class & 1 == 1).collect();
        Ok(Self {
            blocks,
            block_bytes,
            leaf_level,
            tree_top_levels,
            slots,
            evict_period,
            stash_blocks_max,
            classes,
            policy,
        })
    }

    /// Checks that an ORAM with these parameters can exist.
    pub(super) fn check(&self) -> Result<(), Error> {
        let Self { blocks, block_bytes, tree_top_levels, evict_period, classes, policy, .. } = self;
        if classes.first() != Some(&0) || !classes.is_sorted_by(|a, b| a < b) {
            return Err(impossible(
                "the classes of ranges must ascend, and begin with the size of a block",
            ));
        }
        let largest = self.largest_class();
        if largest > CLASS_MAX
            || self.range_blocks_max() * u64::from(*block_bytes) > RANGE_BYTES_MAX
        {
            return Err(impossible(format!(
                "a range has at most 2^{CLASS_MAX} blocks and {} MiB: leave larger classes out",
                RANGE_BYTES_MAX >> 20
            )));
        }
        if self.range_blocks_max() > *blocks {
            return Err(impossible(format!(
                "a range of 2^{largest} blocks is larger than the disk: leave larger classes out"
            )));
        }
        if let RangePolicy::Fixed(class) = policy
            && !classes.contains(class)
        {
            return Err(impossible(
                "the fixed size of ranges is not among their classes: add it to the classes",
            ));
        }
        let whole = whole_range_blocks(*policy, classes);
        if !blocks.is_multiple_of(whole) {
            return Err(impossible(format!(
                "the disk ends within a range: choose a multiple of {whole} blocks"
            )));
        }
        let fits_in_batch = *tree_top_levels <= TREE_TOP_LEVELS_MAX
            && self.evictions_max() <= self.spare_evictions();
        if *evict_period > 0 && !fits_in_batch {
            return Err(impossible(format!(
                "a range of 2^{largest} blocks evicts {} paths at once, but {tree_top_levels} \
                 levels on the client allow batches of {}: choose smaller ranges, larger blocks, \
                 a longer eviction period, or more levels on the client (up to 12)",
                self.evictions_max(),
                1u64 << (*tree_top_levels).min(63)
            )));
        }
        self.shapes()?;
        let in_storage = (2u64 << self.leaf_level) - (1 << tree_top_levels);
        if in_storage * u64::from(self.slots) < *blocks {
            return Err(impossible(format!(
                "{in_storage} buckets in storage with {} slots each do not hold {blocks} blocks: \
                 choose more slots, a shorter eviction period, or fewer levels on the client",
                self.slots
            )));
        }
        Ok(())
    }

    /// The class of the longest ranges.
    pub(super) fn largest_class(&self) -> u8 {
        self.classes.last().copied().unwrap_or(0)
    }

    /// Number of blocks of a range of the largest class.
    pub(super) fn range_blocks_max(&self) -> u64 {
        1 << self.largest_class().min(63)
    }

    /// A human-readable description of what storage learns from the classes.
    fn what_is_seen(&self, in_words: impl Fn(&u64) -> String) -> String {
        match self.policy {
            RangePolicy::Classes => {
                "the number of accesses of each size: which parts of requests were long, and \
                 how they lay between the borders of ranges"
                    .into()
            }
            RangePolicy::Exact => {
                "the number of requests of each size, rounded up to a class; not where they lay"
                    .into()
            }
            RangePolicy::Fixed(class) => {
                let bytes = u64::from(self.block_bytes) << class;
                format!(
                    "the number of accesses, all of {}; each takes up to the time of {} \
                     accesses to blocks",
                    in_words(&bytes),
                    1u64 << class
                )
            }
        }
    }

    /// `W`: the number of evictions that a saved state survives, and the maximum number of
    /// evictions in a batch.
    pub(super) fn spare_evictions(&self) -> u64 {
        1 << self.tree_top_levels
    }

    /// The number of most recent evictions whose keys are kept: twice the sum of the number of
    /// leaves and `W`.
    pub(super) fn recognised_evictions(&self) -> u64 {
        2 * ((1 << self.leaf_level) + self.spare_evictions())
    }

    /// Maximum number of evictions in a batch (k).
    pub(super) fn evictions_max(&self) -> u64 {
        let period = u64::from(self.evict_period).max(1);
        self.range_blocks_max().div_ceil(period)
    }

    /// Maximum number of blocks that wait on the client for an eviction of their path. A block's
    /// eviction comes at most `W` evictions after its access, and `A` blocks are accessed per
    /// eviction.
    pub(super) fn waiting_blocks_max(&self) -> u64 {
        u64::from(self.evict_period) * self.spare_evictions()
    }

    /// Maximum number of blocks on a client. A block counts once, even if it waits for several
    /// trees.
    pub(super) fn client_blocks_max(&self) -> u64 {
        self.waiting_blocks_max() + self.stuck_blocks_max() + self.window_accesses_max()
    }

    /// Maximum number of blocks, over all trees, that stay on the client because no eviction had
    /// room for them.
    pub(super) fn stuck_blocks_max(&self) -> u64 {
        self.classes.len() as u64 * u64::from(self.stash_blocks_max)
    }

    /// Number of arena slots to reserve for blocks on the client. Exceeds
    /// [`Self::client_blocks_max`], because it counts a block once for each class.
    pub(super) fn room_blocks(&self) -> u64 {
        let per_class = self.waiting_blocks_max()
            + u64::from(self.stash_blocks_max)
            + self.window_accesses_max();
        per_class * self.classes.len() as u64
    }

    /// Maximum number of blocks in transit while a range is read or a batch of evictions is made:
    /// one level of the range, or the blocks of the batch, each counted twice: sealed and opened.
    pub(super) fn blocks_in_batch_max(&self) -> u64 {
        let of_level = self.range_blocks_max() * u64::from(self.slots);
        of_level.max(2 * self.evictions_max() * self.path_blocks())
    }

    /// Maximum number of accesses planned together. It covers two of the longest ranges, so that
    /// one can begin while the other is read.
    pub(super) fn window_accesses_max(&self) -> u64 {
        (2 * self.range_blocks_max()).max(WINDOW_ACCESSES_MAX as u64)
    }

    /// Number of slots in storage on one path.
    pub(super) fn path_blocks(&self) -> u64 {
        u64::from(self.leaf_level + 1 - self.tree_top_levels) * u64::from(self.slots)
    }

    /// The configuration of a tree, which is the same for all classes.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) if there is no such tree.
    pub(super) fn tree(&self, trees: RotatingTrees) -> Result<RawConfig, Error> {
        let geometry = Geometry::uniform(self.leaf_level, self.slots)?;
        let (block_bytes, stash_blocks_max) =
            (self.block_bytes as usize, self.stash_blocks_max as usize);
        let tree = TreeConfig {
            tree_top_levels: self.tree_top_levels,
            tree: trees.slots,
            ..TreeConfig::new(self.blocks, block_bytes, geometry, stash_blocks_max)
        };
        Ok(RawConfig { tree, evict_period: self.evict_period })
    }

    /// Groups the trees of the store by class, in the order of the classes.
    pub(super) fn trees_of_classes(&self, trees: &[TreeId]) -> Result<Vec<RotatingTrees>, Error> {
        if trees.len() != TREES_PER_CLASS * self.classes.len() {
            return Err(impossible("a range ORAM needs two trees for each class"));
        }
        let pairs = trees.as_chunks::<TREES_PER_CLASS>().0.iter();
        Ok(pairs
            .map(|[slots, heads]| RotatingTrees { slots: *slots, heads: *heads, taken: *heads })
            .collect())
    }

    /// Entries of the position map of a class.
    pub(super) fn entries(&self, class: u8) -> u64 {
        self.blocks.div_ceil(1 << class)
    }
}

/// Under `policy`, the size of a disk must be a multiple of this number of blocks.
pub(super) fn whole_range_blocks(policy: RangePolicy, classes: &[u8]) -> u64 {
    let whole = match policy {
        RangePolicy::Classes => 0,
        RangePolicy::Exact => classes.last().copied().unwrap_or(0),
        RangePolicy::Fixed(class) => class,
    };
    1 << whole.min(63)
}

/// The encoding of `RangePolicy::Exact`.
const EXACT: u8 = u8::MAX;

/// Encodes a policy: 0 for `Classes`, 255 for `Exact`, else the class plus 1.
fn policy_byte(policy: RangePolicy) -> u8 {
    match policy {
        RangePolicy::Classes => 0,
        RangePolicy::Exact => EXACT,
        RangePolicy::Fixed(class) => class.saturating_add(1),
    }
}

fn policy_of(byte: u8) -> RangePolicy {
    match byte {
        0 => RangePolicy::Classes,
        EXACT => RangePolicy::Exact,
        fixed => RangePolicy::Fixed(fixed - 1),
    }
}

impl DurableConfig for RangeParams {
    fn scheme(&self) -> &'static str {
        NAME
    }

    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn encode(&self) -> Vec<u8> {
        let classes = self.classes.iter().fold(0u32, |mask, class| mask | 1 << class);
        let mut bytes = vec![self.leaf_level, self.tree_top_levels];
        bytes.extend(self.slots.to_le_bytes());
        bytes.extend(self.evict_period.to_le_bytes());
        bytes.extend(self.stash_blocks_max.to_le_bytes());
        bytes.extend(classes.to_le_bytes());
        bytes.push(policy_byte(self.policy));
        bytes
    }

    fn shapes(&self) -> Result<Vec<TreeShape>, Error> {
        let pair = self.tree(RotatingTrees::from(TreeId(0)))?.rotating_shapes()?;
        Ok(self.classes.iter().flat_map(|_| pair.clone()).collect())
    }

    fn cost(&self) -> Result<Cost, Error> {
        plan::cost(self)
    }

    fn state_size(&self) -> Result<StateSize, Error> {
        state::size(self)
    }

    fn facts(&self) -> Vec<Fact> {
        let number = |number: u64| FactValue::Number(number);
        let levels = u64::from(self.leaf_level) + 1;
        let bytes = |class: &u8| u64::from(self.block_bytes) << class;
        let sizes: Vec<_> = self.classes.iter().map(bytes).collect();
        let in_words = |bytes: &u64| match bytes % 1024 {
            0 => format!("{} KiB", bytes / 1024),
            _ => format!("{bytes} bytes"),
        };
        let named: Vec<_> = sizes.iter().map(in_words).collect();
        let costs: Vec<_> =
            self.classes.iter().flat_map(|class| plan::range_cost(self, *class)).collect();
        let of_each = |bytes: fn(&RangeCost) -> f64| {
            FactValue::Numbers(costs.iter().map(|cost| bytes(cost) as u64).collect())
        };
        let mut facts = vec![
            Fact::Line("ranges", format!("of {}", named.join(", "))),
            Fact::Line("storage sees", self.what_is_seen(in_words)),
            Fact::Line(
                "trees",
                format!(
                    "{}, each with {levels} levels, {} of them on the client; Z = {}, A = {}",
                    self.classes.len(),
                    self.tree_top_levels,
                    self.slots,
                    self.evict_period
                ),
            ),
            Fact::Line("position map", "in client memory, one for each size of ranges".into()),
            Fact::Value("range_bytes", FactValue::Numbers(sizes)),
            Fact::Value("range_read_bytes", of_each(|cost| cost.read_bytes)),
            Fact::Value("range_written_bytes", of_each(|cost| cost.written_bytes)),
            Fact::Value("levels", number(levels)),
            Fact::Value("tree_top_levels", number(self.tree_top_levels.into())),
            Fact::Value("slots", number(self.slots.into())),
            Fact::Value("evict_period", number(self.evict_period.into())),
            Fact::Value("stash_blocks_max", number(self.stash_blocks_max.into())),
        ];
        let policy = match self.policy {
            RangePolicy::Classes => "classes",
            RangePolicy::Exact => "exact",
            RangePolicy::Fixed(class) => {
                facts.push(Fact::Value("fixed_range_bytes", number(bytes(&class))));
                "fixed"
            }
        };
        facts.push(Fact::Value("range_policy", FactValue::Word(policy)));
        facts
    }

    fn create(
        &self,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        coins: &mut dyn CryptoRng,
    ) -> Result<Box<dyn Durable>, Error> {
        self.check()?;
        let mut coins = coins;
        let eras = self.classes.iter().map(|_| vec![Era::begin(0, &mut coins)]).collect();
        let head = Head { evictions: 1 << self.leaf_level, blocks_since_eviction: 0, eras };
        let mut array = RangeArray::new(self, key, trees, store, head)?;
        array.draw_positions(&mut coins);
        Ok(Box::new(array))
    }

    fn restore(&self) -> Result<Box<dyn Restore>, Error> {
        Ok(Box::new(RangeRestore::new(self)?))
    }
}
