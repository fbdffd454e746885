//! Builds any ORAM from its parameters: a scheme, a front end, and optionally ρ and a cache.

use alloc::boxed::Box;

use rand_core::CryptoRng;

use super::rho::{RhoConfig, RhoOram, TwoTrees};
use super::{
    CacheConfig, CachedOram, FlatOram, FreecursiveConfig, FreecursiveOram, Front, HitPolicy,
    RemapPolicy,
};
use crate::error::Error;
use crate::scheme::{PathScheme, RawConfig, RawScheme, Scheme, TreeConfig};
use crate::seal::Sealer;
use crate::store::BucketStore;

/// The parameters of a complete ORAM, component by component.
#[derive(Clone, Debug)]
pub struct OramConfig {
    /// The scheme, which makes the accesses.
    pub scheme: SchemeConfig,
    /// The location of the position map.
    pub map: MapConfig,
    /// Parameters of [ρ](super::rho), which puts a small tree of the same scheme in front of the
    /// main tree.
    pub rho: Option<RhoConfig>,
    /// Parameters of a cache in front of all other components, and the time at which its blocks are
    /// remapped.
    pub cache: Option<(CacheConfig, RemapPolicy)>,
}

impl OramConfig {
    /// A scheme with a flat position map, without ρ or cache.
    pub fn flat(scheme: SchemeConfig) -> Self {
        Self { scheme, map: MapConfig::Flat(HitPolicy::Access), rho: None, cache: None }
    }
}

/// A scheme, and the parameters of its tree.
#[derive(Clone, Debug)]
pub enum SchemeConfig {
    /// Path ORAM, on this tree.
    Path(TreeConfig),
    /// RAW ORAM, on a tree with an eviction period.
    Raw(RawConfig),
}

impl SchemeConfig {
    /// The parameters of the tree.
    pub fn tree(&self) -> &TreeConfig {
        match self {
            Self::Path(tree) | Self::Raw(RawConfig { tree, .. }) => tree,
        }
    }

    /// The same scheme with another tree.
    fn with_tree(&self, tree: TreeConfig) -> Self {
        match self {
            Self::Path(_) => Self::Path(tree),
            Self::Raw(config) => Self::Raw(RawConfig { tree, ..*config }),
        }
    }

    /// An empty ORAM of the scheme, on a store whose buckets were never written.
    ///
    /// # Errors
    /// The errors of [`PathScheme::new`] and of [`RawScheme::new`].
    pub fn scheme(
        &self,
        sealer: Sealer,
        store: Box<dyn BucketStore + Send>,
    ) -> Result<Box<dyn Scheme + Send>, Error> {
        Ok(match self {
            Self::Path(tree) => Box::new(PathScheme::new(tree, sealer, store)?),
            Self::Raw(config) => Box::new(RawScheme::new(config, sealer, store)?),
        })
    }
}

/// The location of the position map, and the policy for hits.
#[derive(Clone, Debug)]
pub enum MapConfig {
    /// A table on the client: [`FlatOram`]. The policy is for requests to blocks on the client.
    Flat(HitPolicy),
    /// A map in the tree, with or without PMMAC: [`FreecursiveOram`].
    Freecursive(FreecursiveConfig),
}

/// Makes the parts of an ORAM for [`build`]: its schemes with their storage, and its random
/// generators.
///
/// [`build`] requests each part once, in this order: the main tree's scheme, the scheme and the
/// coins of ρ if there is ρ, and the front end's coins. So the same environment gives the same
/// trace.
pub trait Environment {
    /// Makes an empty ORAM of the scheme. It may be wrapped, for example to record its accesses.
    ///
    /// # Errors
    /// The errors of [`SchemeConfig::scheme`] and of the environment.
    fn scheme(&mut self, config: &SchemeConfig) -> Result<Box<dyn Scheme + Send>, Error>;

    /// Makes the random generator of the front end. Its output must be unpredictable to storage.
    fn coins(&mut self) -> Box<dyn CryptoRng + Send>;

    /// Makes the random generator of ρ. Its output must be unpredictable to storage.
    fn rho_coins(&mut self) -> Box<dyn CryptoRng + Send> {
        self.coins()
    }
}

/// Builds the ORAM of `config`.
///
/// # Errors
/// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if the components of `config` cannot be
/// combined, and the errors of `environment`.
///
/// ```
/// use oblivio_core::front::{Front, OnStores, OramConfig, SchemeConfig, build};
/// use oblivio_core::{Key, MemoryStore, Oram, RawConfig, Sealer, TreeConfig};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let mut keys = StdRng::from_rng(&mut coins);
/// let path = SchemeConfig::Path(TreeConfig::path(1000, 64)?);
/// let raw = SchemeConfig::Raw(RawConfig::new(1000, 64)?);
/// for scheme in [path, raw] {
///     let make_storage = |tree: &TreeConfig| {
///         let store = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
///         Ok((Sealer::aes128(Key::draw(&mut keys), tree.tree), store))
///     };
///     let mut environment = OnStores::new(make_storage, || StdRng::from_rng(&mut coins));
///     // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
///     let mut oram = build(&OramConfig::flat(scheme), &mut environment)?;
///     oram.write(7, &[42; 64])?;
///     oram.dummy()?; // storage cannot distinguish the two
///     assert_eq!(oram.counters().front.data_accesses, 1);
/// }
/// # Ok::<(), oblivio_core::Error>(())
/// ```
pub fn build(
    config: &OramConfig,
    environment: &mut dyn Environment,
) -> Result<Box<dyn Front + Send>, Error> {
    let main = environment.scheme(&config.scheme)?;
    let Some(rho) = &config.rho else {
        return match &config.map {
            MapConfig::Flat(hits) => cached(config, flat(*hits, main, environment)?),
            MapConfig::Freecursive(map) => cached(config, freecursive(map, main, environment)?),
        };
    };
    let small = environment.scheme(&config.scheme.with_tree(rho.small.clone()))?;
    let trees = TwoTrees::new(rho, main, small, environment.rho_coins())?;
    match &config.map {
        MapConfig::Flat(hits) => {
            cached(config, RhoOram::new(rho, flat(*hits, trees, environment)?)?)
        }
        MapConfig::Freecursive(map) => {
            cached(config, RhoOram::new(rho, freecursive(map, trees, environment)?)?)
        }
    }
}

type Coins = Box<dyn CryptoRng + Send>;

fn flat<S: Scheme>(
    hits: HitPolicy,
    scheme: S,
    environment: &mut dyn Environment,
) -> Result<FlatOram<S, Coins>, Error> {
    Ok(FlatOram::new(scheme, environment.coins())?.with_hits(hits))
}

fn freecursive<S: Scheme>(
    config: &FreecursiveConfig,
    scheme: S,
    environment: &mut dyn Environment,
) -> Result<FreecursiveOram<S, Coins>, Error> {
    FreecursiveOram::new(config, scheme, environment.coins())
}

/// Puts the cache of `config`, if any, in front of `oram`.
fn cached(
    config: &OramConfig,
    oram: impl Front + Send + 'static,
) -> Result<Box<dyn Front + Send>, Error> {
    Ok(match config.cache {
        Some((cache, policy)) => Box::new(CachedOram::new(cache, policy, oram)?),
        None => Box::new(oram),
    })
}

/// An environment with Path and RAW ORAM directly on stores.
pub struct OnStores<F, C> {
    make_storage: F,
    coins: C,
}

impl<F, C, S, R> OnStores<F, C>
where
    F: FnMut(&TreeConfig) -> Result<(Sealer, S), Error>,
    C: FnMut() -> R,
{
    /// `make_storage` makes the sealer and the store of a tree. `coins` makes random generators.
    pub fn new(make_storage: F, coins: C) -> Self {
        Self { make_storage, coins }
    }
}

impl<F, C, S, R> Environment for OnStores<F, C>
where
    F: FnMut(&TreeConfig) -> Result<(Sealer, S), Error>,
    C: FnMut() -> R,
    S: BucketStore + Send + 'static,
    R: CryptoRng + Send + 'static,
{
    fn scheme(&mut self, config: &SchemeConfig) -> Result<Box<dyn Scheme + Send>, Error> {
        let (sealer, store) = (self.make_storage)(config.tree())?;
        config.scheme(sealer, Box::new(store))
    }

    fn coins(&mut self) -> Box<dyn CryptoRng + Send> {
        Box::new((self.coins)())
    }
}
