//! The ORAM's state before the first request of a run.
//!
//! ```text
//!  specification, seed ──► initial ORAM ──► engine ──► run
//!                            ▲    │           ▲
//!                            └file┘           └── coins of the requests: another seed
//! ```
//!
//! With leaves on level 24, making this state takes longer than many runs take. It depends on no
//! request, so all runs of a specification can share it. It is stored as a [`Study`] that has
//! served no request.

use oblivio_core::scheme::{self, PathScheme, RawScheme, TagTree};
use oblivio_core::seal::NoSecrecy;
use oblivio_core::view::Recorder;
use oblivio_core::{Error, FreecursiveOram, Front, MemoryStore, RawConfig, Sealer};
use rand::rngs::StdRng;
use rand::{CryptoRng, RngExt, SeedableRng};

use super::path_log::PathLog;
use super::spec::{Initial, OramSpec, PositionMap, Remap, Scheme};
use super::tags::{Contents, TagScheme};
use crate::SimError;
use crate::functional::Study;

/// An ORAM of one tree, whose paths are logged.
pub(super) type LoggedOram = FreecursiveOram<Box<dyn scheme::Scheme>, Box<dyn CryptoRng>>;

/// The ORAM's state before the first request of a run.
pub enum InitialOram {
    /// A study of [`OramSpec::studied`] that has served no request.
    Made(Box<Study>),
    /// The seed from which to make the state.
    Seed(u64),
}

impl InitialOram {
    /// Builds the ORAM of `spec`, which then draws its random numbers from `coins`. Its paths go to
    /// `log`.
    pub(super) fn into_oram(
        self,
        spec: &OramSpec,
        log: &PathLog,
        coins: Box<dyn CryptoRng>,
    ) -> Result<LoggedOram, SimError> {
        let study = match (self, spec.studied(), &spec.scheme) {
            (Self::Made(study), Some(studied), _) if *study.spec() == studied => *study,
            (Self::Seed(seed), Some(studied), _) => Study::new(&studied, seed, &mut |_| ())?,
            (Self::Seed(seed), None, Scheme::Raw { evict_period }) => {
                let oram = scanned(spec, *evict_period, log, seed)?;
                return Ok(oram.rewrapped(Ok, coins)?);
            }
            _ => {
                let message =
                    "the initial ORAM belongs to another specification: make it from a seed";
                return Err(SimError::Spec(message.to_owned()));
            }
        };
        let noted = |scheme: TagScheme<_, _>| {
            let (tags, contents) = scheme.into_parts();
            Ok(noted(tags, contents, log))
        };
        Ok(study.into_oram().rewrapped(noted, coins)?)
    }
}

impl OramSpec {
    /// The specification of the [`Study`] whose initial state this ORAM can start from. It
    /// describes the main tree alone, since a small tree in front of it is empty at first. `None`
    /// for RAW ORAM and plain recursion.
    pub fn studied(&self) -> Option<Self> {
        let main = Self { rho: None, remap: Remap::AtAccess, ..self.clone() };
        let is_one_tree = self.position_map == PositionMap::InTree;
        (self.scheme == Scheme::Path && is_one_tree).then_some(main)
    }
}

/// Creates a Path ORAM over `tags`, whose paths are logged.
pub(super) fn noted(
    mut tags: PathScheme<TagTree>,
    contents: Contents,
    log: &PathLog,
) -> Box<dyn scheme::Scheme> {
    use scheme::Scheme as _;
    let (noted, tree) = (log.clone(), tags.config().tree);
    tags.observe_paths(move |leaf| noted.log_path(tree, leaf));
    Box::new(TagScheme::new(tags, contents, log.clone()))
}

/// Creates a RAW ORAM, and fills it by writing its initial blocks.
fn scanned(
    spec: &OramSpec,
    evict_period: u32,
    log: &PathLog,
    seed: u64,
) -> Result<LoggedOram, SimError> {
    let config = RawConfig::of_tree(spec.tree()?, evict_period);
    let store = MemoryStore::new(&[config.tree.shape()?], MemoryStore::default_layout())?;
    let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let tags = RawScheme::new(&config, sealer, Recorder::new(store, log.clone()))?;
    let frontend = spec.frontend()?;
    let contents = Contents::new(&frontend.level_addresses()?, frontend.block_bytes)?;
    let scheme: Box<dyn scheme::Scheme> = Box::new(TagScheme::new(tags, contents, log.clone()));

    let mut coins = StdRng::seed_from_u64(seed);
    let of_oram: Box<dyn CryptoRng> = Box::new(StdRng::from_rng(&mut coins));
    let mut oram = FreecursiveOram::new(&frontend, scheme, of_oram)?;
    fill(&mut oram, spec, &mut coins)?;
    Ok(oram)
}

/// Fills an ORAM whose blocks cannot be placed directly, by writing the blocks as `spec.initial`
/// says.
pub(super) fn fill(
    oram: &mut dyn Front,
    spec: &OramSpec,
    coins: &mut StdRng,
) -> Result<(), SimError> {
    match spec.initial {
        Initial::Empty => (),
        Initial::Placed => write_each(oram, 0..spec.data_blocks)?,
        Initial::EachOnce => write_each(oram, spec.shuffled_blocks(coins)?)?,
        Initial::Aged(per_thousand_blocks) => {
            write_each(oram, 0..spec.data_blocks)?;
            let requests = 0..spec.aging_requests(per_thousand_blocks);
            write_each(oram, requests.map(|_| coins.random_range(0..spec.data_blocks)))?;
        }
    }
    Ok(())
}

/// Writes each of `blocks`, and makes background evictions whenever the stash is full. A sequential
/// scan costs little more than one path per block.
fn write_each(oram: &mut dyn Front, blocks: impl Iterator<Item = u64>) -> Result<(), Error> {
    let zeros = vec![0; oram.block_bytes()];
    for block in blocks {
        while oram.check_ready().is_err() {
            oram.evict()?;
        }
        oram.write(block, &zeros)?;
    }
    Ok(())
}
