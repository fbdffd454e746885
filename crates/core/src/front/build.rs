//! Any ORAM from its parameters: a scheme, a front end, and what stands before it.

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
    /// Path ORAM, or what wraps it.
    type Path: Scheme + 'static;
    /// RAW ORAM, or what wraps it.
    type Raw: Scheme + 'static;
    /// Coins that storage cannot foresee.
    type Coins: CryptoRng + 'static;
    /// What can go wrong.
    type Error: From<Error>;

    /// An empty Path ORAM.
    ///
    /// # Errors
    /// Those of [`PathScheme::new`], and what the ground has of its own.
    fn path(&mut self, config: &TreeConfig) -> Result<Self::Path, Self::Error>;

    /// An empty RAW ORAM.
    ///
    /// # Errors
    /// Those of [`RawScheme::new`], and what the ground has of its own.
    fn raw(&mut self, config: &RawConfig) -> Result<Self::Raw, Self::Error>;

    /// The coins of the front end.
    fn coins(&mut self) -> Self::Coins;

    /// The coins of ρ.
    fn rho_coins(&mut self) -> Self::Coins {
        self.coins()
    }

    /// Lets the main ORAM hold something at first, before anything stands in front of it.
    ///
    /// # Errors
    /// What comes of it.
    fn fill(&mut self, _main: &mut dyn Front) -> Result<(), Self::Error> {
        Ok(())
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
/// let key = Key::draw(&mut coins);
/// let path = SchemeConfig::Path(TreeConfig::path(1000, 64)?);
/// let raw = SchemeConfig::Raw(RawConfig::new(1000, 64)?);
/// for scheme in [path, raw] {
///     let outside = |tree: &TreeConfig| {
///         let store = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
///         Ok((Sealer::aes128(&key, tree.tree), store))
///     };
///     let mut ground = OnStores::new(outside, || StdRng::from_rng(&mut coins));
///     let mut oram = build(&OramConfig::flat(scheme), &mut ground)?;
///     oram.write(7, &[42; 64])?;
///     oram.dummy()?; // storage cannot tell which of the two was asked for
///     assert_eq!(oram.counters().front.data_accesses, 1);
/// }
/// # Ok::<(), oblivio_core::Error>(())
/// ```
pub fn build<G: Ground>(config: &OramConfig, ground: &mut G) -> Made<G> {
    match &config.scheme {
        SchemeConfig::Path(_) => over(config, ground, G::path),
        SchemeConfig::Raw(RawConfig { evict_period, .. }) => {
            over(config, ground, |ground, tree| {
                ground.raw(&RawConfig { tree: tree.clone(), evict_period: *evict_period })
            })
        }
    }
}

type Made<G> = Result<Box<dyn Front>, <G as Ground>::Error>;

/// The front ends of `config`, over schemes that `scheme` makes.
fn over<G: Ground, S: Scheme + 'static>(
    config: &OramConfig,
    ground: &mut G,
    scheme: impl Fn(&mut G, &TreeConfig) -> Result<S, G::Error>,
) -> Made<G> {
    let main = scheme(ground, config.scheme.tree())?;
    let Some(rho) = &config.rho else {
        return match &config.map {
            MapConfig::Flat(hits) => cached(config, flat(*hits, main, ground)?),
            MapConfig::Freecursive(map) => cached(config, freecursive(map, main, ground)?),
        };
    };
    let small = scheme(ground, &rho.small)?;
    let trees = TwoTrees::new(rho, main, small, ground.rho_coins())?;
    match &config.map {
        MapConfig::Flat(hits) => cached(config, RhoOram::new(rho, flat(*hits, trees, ground)?)?),
        MapConfig::Freecursive(map) => {
            cached(config, RhoOram::new(rho, freecursive(map, trees, ground)?)?)
        }
    }
}

fn flat<G: Ground, S: Scheme>(
    hits: HitPolicy,
    scheme: S,
    ground: &mut G,
) -> Result<FlatOram<S, G::Coins>, G::Error> {
    let mut main = FlatOram::new(scheme, ground.coins())?.with_hits(hits);
    ground.fill(&mut main)?;
    Ok(main)
}

fn freecursive<G: Ground, S: Scheme>(
    config: &FreecursiveConfig,
    scheme: S,
    ground: &mut G,
) -> Result<FreecursiveOram<S, G::Coins>, G::Error> {
    let mut main = FreecursiveOram::new(config, scheme, ground.coins())?;
    ground.fill(&mut main)?;
    Ok(main)
}

/// What there is, behind the cache if there is one.
fn cached<E: From<Error>>(
    config: &OramConfig,
    oram: impl Front + 'static,
) -> Result<Box<dyn Front>, E> {
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
    S: BucketStore + 'static,
    R: CryptoRng + 'static,
{
    type Path = PathScheme<S>;
    type Raw = RawScheme<S>;
    type Coins = R;
    type Error = Error;

    fn path(&mut self, config: &TreeConfig) -> Result<Self::Path, Error> {
        let (sealer, store) = (self.outside)(config)?;
        PathScheme::new(config, sealer, store)
    }

    fn raw(&mut self, config: &RawConfig) -> Result<Self::Raw, Error> {
        let (sealer, store) = (self.outside)(&config.tree)?;
        RawScheme::new(config, sealer, store)
    }

    fn coins(&mut self) -> R {
        (self.coins)()
    }
}
