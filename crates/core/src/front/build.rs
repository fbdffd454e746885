//! Any ORAM from its parameters: a scheme, a front end, and what stands before it.

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

/// Parameters of an ORAM, part by part.
#[derive(Clone, Debug)]
pub struct OramConfig {
    /// What makes the accesses.
    pub scheme: SchemeConfig,
    /// Where the position map is.
    pub map: MapConfig,
    /// A small tree of the same scheme in front.
    pub rho: Option<RhoConfig>,
    /// A cache in front of all that.
    pub cache: Option<(CacheConfig, RemapPolicy)>,
}

impl OramConfig {
    /// A scheme behind a flat position map, with nothing in front of it.
    pub fn flat(scheme: SchemeConfig) -> Self {
        Self { scheme, map: MapConfig::Flat(HitPolicy::Access), rho: None, cache: None }
    }
}

/// Which scheme, and the parameters of its tree.
#[derive(Clone, Debug)]
pub enum SchemeConfig {
    /// Path ORAM.
    Path(TreeConfig),
    /// RAW ORAM.
    Raw(RawConfig),
}

impl SchemeConfig {
    /// The parameters of the tree.
    pub fn tree(&self) -> &TreeConfig {
        match self {
            Self::Path(tree) | Self::Raw(RawConfig { tree, .. }) => tree,
        }
    }

    /// The same scheme over another tree.
    fn with_tree(&self, tree: TreeConfig) -> Self {
        match self {
            Self::Path(_) => Self::Path(tree),
            Self::Raw(config) => Self::Raw(RawConfig { tree, ..*config }),
        }
    }

    /// An empty ORAM of the scheme, on a store whose buckets were never written.
    ///
    /// # Errors
    /// Those of [`PathScheme::new`] and of [`RawScheme::new`].
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

/// Where the position map is, and what becomes of hits.
#[derive(Clone, Debug)]
pub enum MapConfig {
    /// A table on the client: [`FlatOram`].
    Flat(HitPolicy),
    /// In the tree, under PMMAC or not: [`FreecursiveOram`].
    Freecursive(FreecursiveConfig),
}

/// What an ORAM is built from: schemes on whatever they keep their trees in, and coins.
///
/// [`build`] asks for the main tree's scheme, for ρ's small one, for ρ's coins and for the front end's, in this order
/// and each once. So the same ground gives the same trace.
pub trait Ground {
    /// An empty ORAM of the scheme, or what wraps it.
    ///
    /// # Errors
    /// Those of [`SchemeConfig::scheme`], and what the ground has of its own.
    fn scheme(&mut self, config: &SchemeConfig) -> Result<Box<dyn Scheme + Send>, Error>;

    /// The coins of the front end, which storage cannot foresee.
    fn coins(&mut self) -> Box<dyn CryptoRng + Send>;

    /// The coins of ρ, which storage cannot foresee.
    fn rho_coins(&mut self) -> Box<dyn CryptoRng + Send> {
        self.coins()
    }
}

/// Any ORAM. With [`Front`] its owner has all there is to it.
///
/// # Errors
/// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) for parts that do not go together, and those of
/// `ground`.
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
///     let outside = |tree: &TreeConfig| {
///         let store = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
///         Ok((Sealer::aes128(Key::draw(&mut keys), tree.tree), store))
///     };
///     let mut ground = OnStores::new(outside, || StdRng::from_rng(&mut coins));
///     // Neither durable nor authenticated: what that means is on the first page of this crate.
///     let mut oram = build(&OramConfig::flat(scheme), &mut ground)?;
///     oram.write(7, &[42; 64])?;
///     oram.dummy()?; // storage cannot tell which of the two was asked for
///     assert_eq!(oram.counters().front.data_accesses, 1);
/// }
/// # Ok::<(), oblivio_core::Error>(())
/// ```
pub fn build(config: &OramConfig, ground: &mut dyn Ground) -> Result<Box<dyn Front + Send>, Error> {
    let main = ground.scheme(&config.scheme)?;
    let Some(rho) = &config.rho else {
        return match &config.map {
            MapConfig::Flat(hits) => cached(config, flat(*hits, main, ground)?),
            MapConfig::Freecursive(map) => cached(config, freecursive(map, main, ground)?),
        };
    };
    let small = ground.scheme(&config.scheme.with_tree(rho.small.clone()))?;
    let trees = TwoTrees::new(rho, main, small, ground.rho_coins())?;
    match &config.map {
        MapConfig::Flat(hits) => cached(config, RhoOram::new(rho, flat(*hits, trees, ground)?)?),
        MapConfig::Freecursive(map) => {
            cached(config, RhoOram::new(rho, freecursive(map, trees, ground)?)?)
        }
    }
}

type Coins = Box<dyn CryptoRng + Send>;

fn flat<S: Scheme>(
    hits: HitPolicy,
    scheme: S,
    ground: &mut dyn Ground,
) -> Result<FlatOram<S, Coins>, Error> {
    Ok(FlatOram::new(scheme, ground.coins())?.with_hits(hits))
}

fn freecursive<S: Scheme>(
    config: &FreecursiveConfig,
    scheme: S,
    ground: &mut dyn Ground,
) -> Result<FreecursiveOram<S, Coins>, Error> {
    FreecursiveOram::new(config, scheme, ground.coins())
}

/// What there is, behind the cache if there is one.
fn cached(
    config: &OramConfig,
    oram: impl Front + Send + 'static,
) -> Result<Box<dyn Front + Send>, Error> {
    Ok(match config.cache {
        Some((cache, policy)) => Box::new(CachedOram::new(cache, policy, oram)?),
        None => Box::new(oram),
    })
}

/// Path and RAW ORAM on stores, as they are.
pub struct OnStores<O, C> {
    outside: O,
    coins: C,
}

impl<O, C, S, R> OnStores<O, C>
where
    O: FnMut(&TreeConfig) -> Result<(Sealer, S), Error>,
    C: FnMut() -> R,
{
    /// `outside` makes what lies outside of a tree's client: its seal, and the store that has it. `coins`
    /// makes coins.
    pub fn new(outside: O, coins: C) -> Self {
        Self { outside, coins }
    }
}

impl<O, C, S, R> Ground for OnStores<O, C>
where
    O: FnMut(&TreeConfig) -> Result<(Sealer, S), Error>,
    C: FnMut() -> R,
    S: BucketStore + Send + 'static,
    R: CryptoRng + Send + 'static,
{
    fn scheme(&mut self, config: &SchemeConfig) -> Result<Box<dyn Scheme + Send>, Error> {
        let (sealer, store) = (self.outside)(config.tree())?;
        config.scheme(sealer, Box::new(store))
    }

    fn coins(&mut self) -> Box<dyn CryptoRng + Send> {
        Box::new((self.coins)())
    }
}
