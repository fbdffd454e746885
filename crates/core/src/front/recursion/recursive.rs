//! Plain recursion: Tiny ORAM, section II-B (Shi et al., Asiacrypt'11). Follows the papers
//! literally, and is slow.

mod front;

use alloc::format;
use alloc::vec::Vec;

use rand_core::CryptoRng;

use crate::error::{Error, ErrorKind};
use crate::front::{Access, Oram, check_requests};
use crate::geometry::Leaf;
use crate::pieces::TreeId;
use crate::posmap::{FlatPosMap, draw_leaf};
use crate::scheme::{Location, Op, Scheme, TreeConfig};

/// Bytes of a label in a position-map block.
const LABEL_BYTES: usize = 4;

/// Parameters of plain recursion.
#[derive(Clone, Debug)]
pub struct RecursiveConfig {
    /// Number of data blocks (N).
    pub capacity: u64,
    /// Bytes of a block (B/8), of data and of the position map. A position-map block holds
    /// `block_bytes / 4` labels (X).
    pub block_bytes: usize,
    /// Maximum number of entries of the last position map, which stays in client memory; at least
    /// 1.
    pub client_entries_max: u64,
}

impl RecursiveConfig {
    /// The number of blocks of each level: first the data, then each level of the position map.
    /// Public.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if `client_entries_max` is 0 or a block holds fewer than two
    /// labels.
    pub fn blocks(&self) -> Result<Vec<u64>, Error> {
        if self.client_entries_max == 0 || self.fan_out() < 2 {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                "recursion needs at least one entry on the client and two labels in a block",
            ));
        }
        let level = |blocks: &u64| {
            (*blocks > self.client_entries_max).then(|| blocks.div_ceil(self.fan_out()))
        };
        Ok(core::iter::successors(Some(self.capacity), level).collect())
    }

    /// Labels in a position-map block (X). Public.
    pub fn fan_out(&self) -> u64 {
        (self.block_bytes / LABEL_BYTES) as u64
    }

    /// A Path ORAM tree for each level, starting with the data: trees 0, 1, 2 … of a store.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent or no tree fits.
    pub fn path_trees(&self) -> Result<Vec<TreeConfig>, Error> {
        let trees = (0..).map(TreeId).zip(self.blocks()?).map(|(tree, blocks)| {
            Ok(TreeConfig { tree, ..TreeConfig::path(blocks, self.block_bytes)? })
        });
        trees.collect()
    }
}

/// An ORAM whose position map is an ORAM, recursively.
///
/// Each access goes through all levels, from the smallest to the data. So storage sees the same
/// number of path accesses for each request.
pub struct RecursiveOram<S, R> {
    /// The scheme of each level, starting with the data.
    levels: Vec<S>,
    fan_out: u64,
    table: FlatPosMap,
    coins: R,
    accesses: u64,
    requests: u64,
}

impl<S: Scheme, R: CryptoRng> RecursiveOram<S, R> {
    /// Puts the front end in front of empty schemes, one for each tree in
    /// [`path_trees`](RecursiveConfig::path_trees), in that order. `coins` must be unpredictable to
    /// storage.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the schemes do not match `config` or have too many leaves
    /// for a label, or if there is no memory for the client.
    pub fn new(config: &RecursiveConfig, levels: Vec<S>, coins: R) -> Result<Self, Error> {
        let blocks = config.blocks()?;
        let fits = |(scheme, blocks): (&S, &u64)| {
            let tree = scheme.config();
            tree.capacity == *blocks
                && tree.block_bytes == config.block_bytes
                // A label is the leaf plus 1; 0 means none.
                && u32::from(tree.geometry.leaf_level()) < u32::BITS
        };
        let (true, true, [.., entries], [.., top]) = (
            levels.len() == blocks.len(),
            levels.iter().zip(&blocks).all(fits),
            &*blocks,
            &*levels,
        ) else {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                "there must be one scheme per level with the level's size: make them with \
                 path_trees()",
            ));
        };
        let table = FlatPosMap::new(*entries, top.config().geometry.leaf_level())?;
        Ok(Self { table, levels, fan_out: config.fan_out(), coins, accesses: 0, requests: 0 })
    }

    /// The same ORAM with other coins for later accesses.
    pub fn with_coins<Q: CryptoRng>(self, coins: Q) -> RecursiveOram<S, Q> {
        let Self { levels, fan_out, table, accesses, requests, .. } = self;
        RecursiveOram { levels, fan_out, table, coins, accesses, requests }
    }

    /// Path accesses so far, over all levels. Public.
    pub fn path_accesses(&self) -> u64 {
        self.accesses
    }

    /// Bytes of client memory for the last position map. Public.
    pub fn client_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// The scheme of each level, starting with the data.
    pub fn schemes(&self) -> &[S] {
        &self.levels
    }

    /// The schemes, for callers that wrap them.
    pub fn schemes_mut(&mut self) -> &mut [S] {
        &mut self.levels
    }

    /// A dummy request: a [`Scheme::dummy`] in each tree.
    ///
    /// # Errors
    /// The errors of [`Scheme::dummy`].
    pub fn dummy(&mut self) -> Result<(), Error> {
        let Self { levels, coins, accesses, .. } = self;
        *accesses += levels.len() as u64;
        levels.iter_mut().rev().try_for_each(|scheme| scheme.dummy(coins))
    }

    /// A background eviction in each tree: see [`Scheme::evict`].
    ///
    /// # Errors
    /// Any error of the storage.
    pub fn evict(&mut self) -> Result<(), Error> {
        let Self { levels, coins, .. } = self;
        levels.iter_mut().rev().try_for_each(|scheme| scheme.evict(coins))
    }

    /// Checks in each tree that every block exists at most once, in the stash or in a bucket on its
    /// path. A block whose position is on the client must have the leaf in the table. Storage sees
    /// scans.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] with the first violation, and any error of the storage.
    pub fn check_invariants(&mut self) -> Result<(), Error> {
        let Self { levels, table, .. } = self;
        let top = levels.len() - 1;
        let mut violation = None;
        for (level, scheme) in levels.iter_mut().enumerate() {
            let mut seen = hashbrown::HashSet::new();
            scheme.visit_blocks(&mut |location, number, leaf| {
                let defect = if !seen.insert(number) {
                    "twice"
                } else if level == top && table.get(number) != Some(leaf) {
                    "with a leaf other than the position map's"
                } else if matches!(location, Location::Bucket(bucket) if !bucket.is_on_path(leaf)) {
                    "off its path"
                } else {
                    return;
                };
                violation.get_or_insert_with(|| {
                    format!("tree {level} has a block {defect} ({location:?})")
                });
            })?;
        }
        violation.map_or(Ok(()), |message| Err(Error::new(ErrorKind::Corrupt, message)))
    }

    fn serve(&mut self, data: u64, op: &mut Op<'_>) -> Result<(), Error> {
        let Self { levels, table, coins, .. } = self;
        let number = |level: usize| (0..level).fold(data, |number, _| number / self.fan_out);
        let top = levels.len() - 1;
        let (mut from, mut to) = table.look_up_and_remap(number(top), coins);
        for level in (1..=top).rev() {
            let below_level = levels[level - 1].config().geometry.leaf_level();
            let fresh = draw_leaf(coins, below_level);
            // The current leaf of the child: random if the child was never accessed, otherwise
            // replaced by the child's label.
            let mut below = draw_leaf(coins, below_level);
            let child = (number(level - 1) % self.fan_out) as usize;
            levels[level].access(
                number(level),
                from,
                to,
                &mut Op::Update(&mut |block| {
                    let label = &mut block.as_chunks_mut::<LABEL_BYTES>().0[child];
                    if let Some(leaf) = u32::from_le_bytes(*label).checked_sub(1) {
                        below = Leaf(u64::from(leaf));
                    }
                    *label = (fresh.0 as u32 + 1).to_le_bytes();
                }),
            )?;
            (from, to) = (below, fresh);
        }
        self.accesses += levels.len() as u64;
        self.requests += 1;
        levels[0].access(data, from, to, op)
    }
}

impl<S: Scheme, R: CryptoRng> Oram for RecursiveOram<S, R> {
    fn capacity(&self) -> u64 {
        self.levels[0].config().capacity
    }

    fn block_bytes(&self) -> usize {
        self.levels[0].config().block_bytes
    }

    /// Serves requests one by one, without lookahead.
    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        check_requests(self, batch)?;
        for Access { address, op } in batch {
            self.levels.iter().try_for_each(Scheme::check_ready)?;
            self.serve(*address, op)?;
        }
        Ok(())
    }
}
