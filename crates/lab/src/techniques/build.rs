//! Builds the ORAM of a row.

use oblivio_core::front::rho::TwoTrees;
use oblivio_core::scheme::{self, PathScheme, RawScheme};
use oblivio_core::{
    CacheConfig, CachedOram, Error, FlatOram, FreecursiveConfig, FreecursiveOram, Integrity, Key,
    MemoryStore, RawConfig, RhoConfig, RhoOram, Sealer, TreeConfig,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::Plan;
use super::subject::{Measured, Meter, RhoUnderCache, Store, Subject, Tallied, UnderCache};
use super::technique::{Front, Map, Scheme, Setup, Top};
use crate::LabError;
use crate::alloc_search::{PAPER_PROFILES, Profile};
use crate::paper::{PAPER_SLOTS, paper_tree_top_levels};

/// Bytes of a block: a line of memory, as in the papers.
pub(super) const BLOCK_BYTES: usize = 64;

/// Places in the LLC for each address.
const LLC_WAYS: usize = 8;

/// An empty ORAM. Everything is encrypted, because AES blocks are counted where they are computed.
pub(super) fn build(plan: &Plan, setup: &Setup, coins: StdRng) -> Result<Subject, LabError> {
    let meter = Meter::default();
    let mut builder = Builder { plan, setup, meter: &meter, coins };
    let oram = match (setup.front, setup.scheme) {
        (Front::CacheAndRho, _) => builder.rho()?,
        (_, Scheme::Raw) => {
            let config = builder.raw_config()?;
            let (sealer, store) = builder.outside(&config.tree)?;
            builder.behind_map(RawScheme::new(&config, sealer, store)?)?
        }
        (_, Scheme::Path | Scheme::PathAlloc(_)) => {
            let tree = builder.path_tree()?;
            let (sealer, store) = builder.outside(&tree)?;
            builder.behind_map(PathScheme::new(&tree, sealer, store)?)?
        }
    };
    Ok(Subject { oram, meter, requests: 0, background_evictions: 0 })
}

struct Builder<'a> {
    plan: &'a Plan,
    setup: &'a Setup,
    meter: &'a Meter,
    coins: StdRng,
}

impl Builder<'_> {
    fn frontend(&self, has_plb: bool, integrity: Integrity) -> Result<FreecursiveConfig, Error> {
        Ok(FreecursiveConfig {
            plb_blocks: if has_plb { self.plan.plb_blocks } else { 0 },
            client_entries_max: self.plan.client_entries_max,
            hits: self.setup.hits,
            integrity,
            ..FreecursiveConfig::new(self.plan.capacity, BLOCK_BYTES)?
        })
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
                TreeConfig { burst_accesses_max, ..tree }
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
        Ok(RawConfig { tree: self.with_top(config.tree), ..config })
    }

    fn with_top(&self, tree: TreeConfig) -> TreeConfig {
        let tree_top_levels = match self.setup.top {
            Top::LikePaths => paper_tree_top_levels(tree.geometry.leaf_level()),
            Top::LikeClient => self.plan.large_tree_top_levels,
        };
        TreeConfig { tree_top_levels, tree_top: self.setup.tree_top, ..tree }
    }

    /// What lies outside of a tree's client: the seal, and storage.
    fn outside(&mut self, tree: &TreeConfig) -> Result<(Sealer, Store), Error> {
        let mut shapes = vec![tree.shape()?];
        // A store numbers its trees from 0.
        shapes.resize(usize::from(tree.tree.0) + 1, tree.shape()?);
        let store = MemoryStore::new(&shapes, MemoryStore::default_layout())?;
        let sealer = Sealer::aes128(&Key::draw(&mut self.coins), tree.tree);
        Ok((sealer, Store::new(store, self.meter.clone())))
    }

    fn behind_map<B: scheme::Scheme + 'static>(
        mut self,
        scheme: B,
    ) -> Result<Box<dyn Measured>, Error> {
        let coins = StdRng::from_rng(&mut self.coins);
        match self.setup.map {
            Map::Flat => self.front_of(FlatOram::new(scheme, coins)?.with_hits(self.setup.hits)),
            Map::Recursive { has_plb, integrity } => {
                let config = self.frontend(has_plb, integrity)?;
                self.front_of(FreecursiveOram::new(&config, scheme, coins)?)
            }
        }
    }

    fn front_of<O: Tallied + 'static>(&self, oram: O) -> Result<Box<dyn Measured>, Error> {
        Ok(match self.setup.front {
            Front::Cache(policy) => {
                Box::new(UnderCache(CachedOram::new(self.cache(), policy, oram)?))
            }
            _ => Box::new(oram),
        })
    }

    fn cache(&self) -> CacheConfig {
        CacheConfig { blocks: self.plan.llc_blocks, ways: LLC_WAYS }
    }

    fn rho(mut self) -> Result<Box<dyn Measured>, LabError> {
        let config = RhoConfig::new(self.plan.rho_blocks, BLOCK_BYTES)?;
        let main = self.path_tree()?;
        let mut scheme = |tree: &TreeConfig| {
            let (sealer, store) = self.outside(tree)?;
            PathScheme::new(tree, sealer, store)
        };
        let (main, small) = (scheme(&main)?, scheme(&config.small)?);
        let trees = TwoTrees::new(&config, main, small, StdRng::from_rng(&mut self.coins))?;
        let (frontend, cache) = (self.frontend(true, Integrity::None)?, self.cache());
        let main = FreecursiveOram::new(&frontend, trees, self.coins)?;
        let rho = RhoOram::new(&config, main)?;
        Ok(Box::new(RhoUnderCache(CachedOram::at_access(cache, rho)?)))
    }
}
