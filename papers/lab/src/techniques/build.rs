//! Builds the ORAM of a row of the table.

use oblivio_core::front::{self, Environment, MapConfig, OramConfig, SchemeConfig};
use oblivio_core::{
    CacheConfig, Error, FreecursiveConfig, Integrity, Key, MemoryStore, RawConfig, RemapPolicy,
    RhoConfig, Sealer, TreeConfig, scheme,
};
use rand::rngs::StdRng;
use rand::{CryptoRng, SeedableRng};

use super::TechniquesPlan;
use super::subject::{Meter, Store, Subject};
use super::technique::{Front, Map, Scheme, Setup, Top};
use crate::LabError;
use crate::alloc_search::{PAPER_PROFILES, Profile};
use oblivio_models::paper::{PAPER_SLOTS, paper_tree_top_levels};

/// Bytes of a block: a line of memory, as in the papers.
pub(super) const BLOCK_BYTES: usize = 64;

/// Ways of the LLC.
const LLC_WAYS: usize = 8;

/// Builds an empty ORAM. Everything is encrypted, since AES blocks are counted where they are
/// computed.
pub(super) fn build(
    plan: &TechniquesPlan,
    setup: &Setup,
    coins: StdRng,
) -> Result<Subject, LabError> {
    let config = Parameters { plan, setup }.oram()?;
    let mut ground = Metered { meter: Meter::default(), coins, has_rho: config.rho.is_some() };
    let oram = front::build(&config, &mut ground)?;
    Ok(Subject {
        oram,
        meter: ground.meter,
        requests: 0,
        background_evictions: 0,
        has_rho: ground.has_rho,
    })
}

/// The parameters of a row.
struct Parameters<'a> {
    plan: &'a TechniquesPlan,
    setup: &'a Setup,
}

impl Parameters<'_> {
    fn oram(&self) -> Result<OramConfig, LabError> {
        let cache = CacheConfig { blocks: self.plan.llc_blocks, ways: LLC_WAYS };
        Ok(OramConfig {
            scheme: match self.setup.scheme {
                Scheme::Raw => SchemeConfig::Raw(self.raw_config()?),
                Scheme::Path | Scheme::PathAlloc(_) => SchemeConfig::Path(self.path_tree()?),
            },
            map: match self.setup.map {
                Map::Flat => MapConfig::Flat(self.setup.hits),
                Map::Recursive { has_plb, integrity } => {
                    MapConfig::Freecursive(self.frontend(has_plb, integrity)?)
                }
            },
            rho: match self.setup.front {
                Front::CacheAndRho => Some(RhoConfig::new(self.plan.rho_blocks, BLOCK_BYTES)?),
                Front::Nothing | Front::Cache(_) => None,
            },
            cache: match self.setup.front {
                Front::Nothing => None,
                Front::Cache(policy) => Some((cache, policy)),
                Front::CacheAndRho => Some((cache, RemapPolicy::AtAccess)),
            },
        })
    }

    fn frontend(&self, has_plb: bool, integrity: Integrity) -> Result<FreecursiveConfig, Error> {
        Ok(FreecursiveConfig::new(self.plan.capacity, BLOCK_BYTES)?
            .with_plb_blocks(if has_plb { self.plan.plb_blocks } else { 0 })
            .with_client_entries_max(self.plan.client_entries_max)
            .with_hits(self.setup.hits)
            .with_integrity(integrity))
    }

    fn path_tree(&self) -> Result<TreeConfig, LabError> {
        let leaf_level = self.plan.leaf_level;
        let profile = match self.setup.scheme {
            Scheme::PathAlloc(number) => {
                let mut profiles = PAPER_PROFILES.iter();
                let paper = profiles.find(|profile| profile.number == number);
                paper.expect("the paper has configurations 1 to 4").scaled_to(leaf_level)
            }
            _ => Profile::uniform(leaf_level, PAPER_SLOTS),
        };
        let geometry = profile.geometry()?;
        let tree = |capacity, block_bytes| {
            TreeConfig::new(capacity, block_bytes, geometry, self.plan.stash_blocks_max)
        };
        let tree = match self.setup.map {
            Map::Flat => tree(self.plan.capacity, BLOCK_BYTES),
            Map::Recursive { has_plb, integrity } => {
                let config = self.frontend(has_plb, integrity)?;
                let burst_accesses_max = config.burst_accesses_max()?;
                let tree = tree(config.tree_capacity()?, config.tree_block_bytes());
                tree.with_burst_accesses_max(burst_accesses_max)
            }
        };
        Ok(self.with_top(tree))
    }

    fn raw_config(&self) -> Result<RawConfig, Error> {
        let config = match self.setup.map {
            Map::Flat => RawConfig::new(self.plan.capacity, BLOCK_BYTES)?,
            Map::Recursive { has_plb, integrity } => {
                self.frontend(has_plb, integrity)?.raw_tree()?
            }
        };
        let tree = self.with_top(config.tree.clone());
        Ok(config.with_tree(tree))
    }

    fn with_top(&self, tree: TreeConfig) -> TreeConfig {
        let tree_top_levels = match self.setup.top {
            Top::LikePaths => paper_tree_top_levels(tree.geometry.leaf_level()),
            Top::LikeClient => self.plan.large_tree_top_levels,
        };
        tree.with_tree_top_levels(tree_top_levels).with_tree_top(self.setup.tree_top)
    }
}

/// An environment whose stores count their traffic.
struct Metered {
    meter: Meter,
    coins: StdRng,
    has_rho: bool,
}

impl Metered {
    /// Makes the sealer and the store of a tree.
    fn make_storage(&mut self, tree: &TreeConfig) -> Result<(Sealer, Store), Error> {
        let mut shapes = vec![tree.shape()?];
        // A store numbers its trees from 0.
        shapes.resize(usize::from(tree.tree.0) + 1, tree.shape()?);
        let store = MemoryStore::new(&shapes, MemoryStore::default_layout())?;
        let sealer = Sealer::aes128(Key::draw(&mut self.coins), tree.tree);
        Ok((sealer, Store::new(store, self.meter.clone())))
    }
}

impl Environment for Metered {
    fn scheme(&mut self, config: &SchemeConfig) -> Result<Box<dyn scheme::Scheme + Send>, Error> {
        let (sealer, store) = self.make_storage(config.tree())?;
        config.scheme(sealer, Box::new(store))
    }

    /// Returns the random generator of the front end. No other generator is requested after this
    /// one. With ρ, it is the environment's own generator, as in the recorded results. Otherwise it
    /// is a new generator, seeded from the environment's.
    fn coins(&mut self) -> Box<dyn CryptoRng + Send> {
        Box::new(match self.has_rho {
            true => std::mem::replace(&mut self.coins, StdRng::seed_from_u64(0)),
            false => StdRng::from_rng(&mut self.coins),
        })
    }

    fn rho_coins(&mut self) -> Box<dyn CryptoRng + Send> {
        Box::new(StdRng::from_rng(&mut self.coins))
    }
}
