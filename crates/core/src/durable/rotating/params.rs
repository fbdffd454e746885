//! The parameters of a durable RAW ORAM, which never change after its creation.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use rand_core::CryptoRng;

use super::state::{self, RawRestore};
use super::{DurableRawOram, RotatingConfig, RotatingShapes, plan};
use crate::durable::section::Fields;
use crate::durable::{
    AnyStore, ArrayRequirements, Cost, Durable, DurableConfig, DurableScheme, Fact, FactValue,
    Restore, Slots, StateSize,
};
use crate::error::{Error, ErrorKind};
use crate::geometry::Geometry;
use crate::pieces::{TreeId, TreeShape};
use crate::posmap::Recursion;
use crate::scheme::{RawConfig, RotatingTrees, TreeConfig};
use crate::seal::{EraSealer, MasterKey};
use crate::stash::TreeTopKind;

/// RAW ORAM with rotating evictions as a durable scheme.
pub struct DurableRaw;

/// The parameters of a durable RAW ORAM. Public. The papers' names are in parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawParams {
    /// Number of blocks (N).
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// The level of the leaves (L).
    pub leaf_level: u8,
    /// Slots of a bucket (Z).
    pub slots: Slots,
    /// Number of accesses before each eviction (A).
    pub evict_period: u32,
    /// Maximum number of blocks in the stash when an access begins (C).
    pub stash_blocks_max: u32,
    /// Number of levels that the client keeps, from the root on.
    pub tree_top_levels: u8,
    /// Number of ways of the sets in which the client finds blocks of the tree top by address
    /// (IR-Stash). 0 if it finds them only by leaf.
    pub tree_top_ways: u16,
    /// The split of the position map between client and tree; `None` if the whole map is in client
    /// memory.
    pub recursion: Option<MapRecursion>,
}

/// The bounds on the part of a position map that stays on the client. The rest is in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRecursion {
    /// Maximum number of entries in client memory.
    pub client_entries_max: u64,
    /// Maximum number of position-map blocks on the client.
    pub plb_blocks: u32,
}

const NAME: &str = "raw";

impl DurableScheme for DurableRaw {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "RAW ORAM of Tiny ORAM, with rotating evictions: for disks of any size"
    }

    fn plan(&self, requirements: &ArrayRequirements) -> Result<Box<dyn DurableConfig>, Error> {
        Ok(Box::new(plan::fulfil(requirements)?))
    }

    fn decode(
        &self,
        blocks: u64,
        block_bytes: u32,
        params: &[u8],
    ) -> Result<Box<dyn DurableConfig>, Error> {
        Ok(Box::new(RawParams::decode(blocks, block_bytes, params)?))
    }
}

impl RawParams {
    /// The parameters that are [encoded](DurableConfig::encode) as `params`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if no parameters encode to `params`, or if no ORAM can have
    /// these parameters.
    pub fn decode(blocks: u64, block_bytes: u32, params: &[u8]) -> Result<Self, Error> {
        let decoded = Self::read(blocks, block_bytes, Fields::new(params));
        let decoded =
            decoded.map_err(|_| impossible("the parameters of `raw` have the wrong length"))?;
        if decoded.encode() != params {
            return Err(impossible("the parameters of `raw` are not encoded canonically"));
        }
        decoded.check()?;
        Ok(decoded)
    }

    fn read(blocks: u64, block_bytes: u32, mut fields: Fields<'_>) -> Result<Self, Error> {
        let (leaf_level, tree_top_levels) = (fields.u8()?, fields.u8()?);
        let (slots, tree_top_ways) = (fields.u16()?, fields.u16()?);
        let (evict_period, stash_blocks_max) = (fields.u32()?, fields.u32()?);
        let recursion =
            MapRecursion { client_entries_max: fields.u64()?, plb_blocks: fields.u32()? };
        let slots = match slots {
            0 => Slots::PerLevel(
                (0..=leaf_level).map(|_| fields.u16()).collect::<Result<Vec<_>, _>>()?,
            ),
            same => Slots::Same(same),
        };
        fields.end()?;
        Ok(Self {
            blocks,
            block_bytes,
            leaf_level,
            slots,
            evict_period,
            stash_blocks_max,
            tree_top_levels,
            tree_top_ways,
            recursion: (recursion != NO_RECURSION).then_some(recursion),
        })
    }

    /// Levels and slots of the tree.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if there is no such tree.
    pub fn geometry(&self) -> Result<Geometry, Error> {
        match &self.slots {
            Slots::Same(slots) => Geometry::uniform(self.leaf_level, *slots),
            Slots::PerLevel(slots) => Geometry::profile(slots),
        }
    }

    /// The configuration of the ORAM in the given trees of a store.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters contradict each other.
    pub fn config(&self, trees: RotatingTrees) -> Result<RotatingConfig, Error> {
        let geometry = self.geometry()?;
        let block_bytes = self.block_bytes as usize;
        let recursion = self.recursion.map(|recursion| Recursion {
            data_blocks: self.blocks,
            client_entries_max: recursion.client_entries_max,
            plb_blocks: recursion.plb_blocks as usize,
        });
        let blocks = match &recursion {
            Some(recursion) => recursion.tree_blocks(block_bytes, geometry.leaf_level())?,
            None => self.blocks,
        };
        let stash_blocks_max = self.stash_blocks_max as usize;
        let tree = TreeConfig {
            tree_top_levels: self.tree_top_levels,
            tree_top: match self.tree_top_ways {
                0 => TreeTopKind::Dedicated,
                ways => TreeTopKind::SetAssociative { ways },
            },
            tree: trees.slots,
            ..TreeConfig::new(blocks, block_bytes, geometry, stash_blocks_max)
        };
        let raw = RawConfig { tree, evict_period: self.evict_period };
        Ok(RotatingConfig { raw, recursion, trees })
    }

    /// The configuration of the ORAM if it uses the first trees of its store.
    pub(super) fn anywhere(&self) -> Result<RotatingConfig, Error> {
        self.config(RotatingTrees::from(TreeId(0)))
    }

    fn in_trees(&self, trees: &[TreeId]) -> Result<RotatingConfig, Error> {
        match *trees {
            [slots, heads] => self.config(RotatingTrees { slots, heads, taken: heads }),
            [slots, heads, taken] => self.config(RotatingTrees { slots, heads, taken }),
            _ => Err(impossible("RAW ORAM needs two trees, or three with its map in a tree")),
        }
    }

    /// Checks that an ORAM with these parameters can exist.
    fn check(&self) -> Result<(), Error> {
        if let Slots::PerLevel(slots) = &self.slots
            && slots.iter().all(|each| *each == slots[0])
        {
            return Err(impossible("the slots per level are all the same: use a single number"));
        }
        self.anywhere()?.shapes().map(drop)
    }
}

impl DurableConfig for RawParams {
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
        let (same, per_level) = match &self.slots {
            Slots::Same(slots) => (*slots, &[][..]),
            Slots::PerLevel(slots) => (0, &slots[..]),
        };
        let recursion = self.recursion.unwrap_or(NO_RECURSION);
        let mut bytes = vec![self.leaf_level, self.tree_top_levels];
        bytes.extend(same.to_le_bytes());
        bytes.extend(self.tree_top_ways.to_le_bytes());
        bytes.extend(self.evict_period.to_le_bytes());
        bytes.extend(self.stash_blocks_max.to_le_bytes());
        bytes.extend(recursion.client_entries_max.to_le_bytes());
        bytes.extend(recursion.plb_blocks.to_le_bytes());
        bytes.extend(per_level.iter().flat_map(|slots| slots.to_le_bytes()));
        bytes
    }

    fn shapes(&self) -> Result<Vec<TreeShape>, Error> {
        let RotatingShapes { slots, heads, taken } = self.anywhere()?.shapes()?;
        Ok([slots, heads].into_iter().chain(taken).collect())
    }

    fn cost(&self) -> Result<Cost, Error> {
        plan::cost(self)
    }

    fn state_size(&self) -> Result<StateSize, Error> {
        state::size(self)
    }

    fn facts(&self) -> Vec<Fact> {
        let levels = u64::from(self.leaf_level) + 1;
        let number = |number: u64| FactValue::Number(number);
        let (slots, slots_value) = match &self.slots {
            Slots::Same(slots) => (slots.to_string(), number(u64::from(*slots))),
            Slots::PerLevel(slots) => (
                slots.iter().map(u16::to_string).collect::<Vec<_>>().join(" "),
                FactValue::Numbers(slots.iter().copied().map(u64::from).collect()),
            ),
        };
        vec![
            Fact::Line(
                "tree",
                format!(
                    "{levels} levels, {} of them on the client; Z = {slots}, A = {}",
                    self.tree_top_levels, self.evict_period
                ),
            ),
            Fact::Line("position map", self.position_map()),
            Fact::Line("stash", format!("{} blocks: {}", self.stash_blocks_max, self.stash())),
            Fact::Value("levels", number(levels)),
            Fact::Value("tree_top_levels", number(self.tree_top_levels.into())),
            Fact::Value("tree_top_ways", number(self.tree_top_ways.into())),
            Fact::Value("slots", slots_value),
            Fact::Value("evict_period", number(self.evict_period.into())),
            Fact::Value("stash_blocks_max", number(self.stash_blocks_max.into())),
        ]
    }

    fn may_serve_on_client(&self) -> bool {
        true
    }

    fn create(
        &self,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        coins: &mut dyn CryptoRng,
    ) -> Result<Box<dyn Durable>, Error> {
        let config = self.in_trees(trees)?;
        let sealer = EraSealer::fresh(key, config.trees.slots, &mut &mut *coins);
        Ok(Box::new(DurableRawOram::new(&config, sealer, store, ())?))
    }

    fn restore(&self) -> Result<Box<dyn Restore>, Error> {
        Ok(Box::new(RawRestore::new(self.clone())?))
    }
}

impl RawParams {
    fn position_map(&self) -> String {
        match self.cost().map_or(0, |cost| cost.position_map_depth) {
            0 => "in client memory".into(),
            1 => "in the tree: a request far from earlier ones takes one access more".into(),
            depth => {
                format!("in the tree: a request far from earlier ones takes {depth} more accesses")
            }
        }
    }

    /// A human-readable statement about the probability that the stash overflows with these
    /// parameters.
    fn stash(&self) -> &'static str {
        match (&self.slots, self.evict_period, self.stash_blocks_max) {
            (Slots::Same(5), 5, 64) => {
                "overflows with probability 2^-80 (Tiny ORAM; our own estimate for RAW ORAM: \
                 2^-85), which costs evictions, not data"
            }
            _ => "not measured for this Z and A; an overflow costs evictions, not data",
        }
    }

    /// The ORAM in the trees of a store, in the state of `head` and `table`.
    pub(super) fn resume(
        &self,
        (key, trees): (MasterKey, &[TreeId]),
        store: AnyStore,
        head: state::Head,
        table: crate::posmap::LivePosMap,
    ) -> Result<DurableRawOram<AnyStore, ()>, Error> {
        let config = self.in_trees(trees)?;
        let sealer = EraSealer::new(key, config.trees.slots, head.eras);
        let restored = super::RestoredState {
            evictions: head.evictions,
            accesses_since_eviction: head.accesses_since_eviction,
            table,
        };
        DurableRawOram::resume(&config, sealer, store, restored, ())
    }
}

/// The value that encodes a position map without recursion.
const NO_RECURSION: MapRecursion = MapRecursion { client_entries_max: 0, plb_blocks: 0 };

fn impossible(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidConfig, problem)
}
