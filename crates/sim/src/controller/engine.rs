//! The engine as a controller uses it: any ORAM of core, over trees of tags. Each call makes the path accesses
//! it takes, and the log has them.

use oblivio_core::front::{self, Ground, MapConfig, OramConfig, SchemeConfig};
use oblivio_core::scheme::{self, PathScheme, RawScheme, TagTree};
use oblivio_core::seal::NoSecrecy;
use oblivio_core::{Error, Front, MemoryStore, Op, RawConfig, Sealer, TreeConfig};
use rand::rngs::StdRng;
use rand::{CryptoRng, SeedableRng};

use super::path_log::{Logged, PathLog};
use super::spec::{Initial, OramSpec, Scheme, shuffle};
use super::tags::{Contents, TagScheme};
use crate::{LINE_BYTES, SimError};

const BLOCK: [u8; LINE_BYTES as usize] = [0; LINE_BYTES as usize];

/// An ORAM of core, whose blocks are all the same.
pub(super) struct Engine {
    oram: Box<dyn Front>,
    /// Of two trees: accesses to the small one for each to the main one.
    small_per_main: u64,
}

impl Engine {
    /// With the blocks that it holds at first.
    pub(super) fn new(spec: &OramSpec, log: &PathLog, seed: u64) -> Result<Self, SimError> {
        if spec.rho.is_some() && spec.scheme != Scheme::Path {
            let message = "rho is simulated over two Path ORAMs, and not over RAW ORAM: use path";
            return Err(SimError::Spec(message.to_owned()));
        }
        let tree = spec.tree()?;
        let config = OramConfig {
            scheme: match spec.scheme {
                Scheme::Path => SchemeConfig::Path(tree),
                Scheme::Raw { evict_period } => SchemeConfig::Raw(RawConfig { tree, evict_period }),
            },
            map: MapConfig::Freecursive(spec.frontend()?),
            rho: spec.rho.as_ref().map(|rho| spec.rho(rho)).transpose()?,
            cache: None,
        };
        // What the position map says, which lies in the main tree.
        let main = Contents::new(&spec.frontend()?.level_addresses()?)?;
        let mut ground = Simulation {
            spec,
            log,
            contents: vec![Contents::new(&[])?, main],
            accessed_once: match spec.initial {
                Initial::EachOnce => spec.blocks_to_shuffle()?,
                Initial::Empty | Initial::Placed => Vec::new(),
            },
            coins: StdRng::seed_from_u64(seed),
        };
        let small_per_main = spec.rho.as_ref().map_or(0, |rho| rho.small_per_main as u64);
        Ok(Self { oram: front::build(&config, &mut ground)?, small_per_main })
    }

    /// Serves a request for a block if it is found on the client by its address, and answers whether
    /// it was. No path is accessed.
    pub(super) fn serve_on_client(&mut self, block: u64) -> Result<bool, Error> {
        self.oram.serve_on_client(block, &mut Op::Write(&BLOCK))
    }

    /// Serves a request for a block, and remaps it. Only ρ cares whether it writes.
    pub(super) fn access(&mut self, block: u64, writes: bool) -> Result<(), Error> {
        match writes {
            true => self.oram.write(block, &BLOCK),
            false => self.oram.read(block, &mut [0; BLOCK.len()]),
        }
    }

    /// Takes a block out if it is found on the client by its address, and answers whether it was. No path
    /// is accessed.
    pub(super) fn take_on_client(&mut self, block: u64) -> Result<bool, Error> {
        self.oram.take_on_client(block, &mut [0; BLOCK.len()])
    }

    /// Takes a block out.
    pub(super) fn take(&mut self, block: u64) -> Result<(), Error> {
        self.oram.take(block, &mut [0; BLOCK.len()]).map(drop)
    }

    /// Takes a block out of the main tree, with room for it in the stashes; and goes on with the pattern of two
    /// trees up to where it was.
    pub(super) fn take_and_resume(&mut self, block: u64) -> Result<(), Error> {
        let place = self.place_in_round();
        self.take(block)?;
        while !self.is_ready() || self.place_in_round() != place {
            self.dummy()?;
        }
        Ok(())
    }

    /// Whether a block is in the small tree of ρ.
    pub(super) fn is_in_small_tree(&self, block: u64) -> bool {
        self.oram.is_in_small_tree(block)
    }

    /// Accesses to the small tree of ρ since the last one to the main tree.
    fn place_in_round(&self) -> u64 {
        let Some(tally) = self.oram.counters().rho else { return 0 };
        tally.small_accesses + tally.small_dummies - tally.rounds() * self.small_per_main
    }

    /// Puts a block back that was taken out.
    pub(super) fn put_back(&mut self, block: u64) -> Result<(), Error> {
        self.oram.put_back(block, &BLOCK)
    }

    /// Makes the first of the position-map accesses that a request for a block would take now.
    pub(super) fn fetch_position(&mut self, block: u64) -> Result<bool, Error> {
        self.oram.fetch_position(block)
    }

    /// Makes an access that nobody asked for. On the bus it looks like any other.
    pub(super) fn dummy(&mut self) -> Result<(), Error> {
        self.oram.dummy()
    }

    /// Makes the stash smaller.
    pub(super) fn evict(&mut self) -> Result<(), Error> {
        self.oram.evict()
    }

    /// Whether the stash has room for a request.
    pub(super) fn is_ready(&self) -> bool {
        self.oram.check_ready().is_ok()
    }

    /// Blocks in the stash, or in both of them.
    pub(super) fn stash_blocks(&self) -> usize {
        self.oram.stash_blocks()
    }

    /// Checks that every block is where it belongs.
    pub(super) fn check_invariants(&mut self) -> Result<(), Error> {
        self.oram.check_invariants()
    }
}

/// Trees of tags whose paths are noted.
struct Simulation<'a> {
    spec: &'a OramSpec,
    log: &'a PathLog,
    /// What lies beside the trees, that of the first one last.
    contents: Vec<Contents>,
    /// Blocks to fill it with, in an order that is drawn.
    accessed_once: Vec<u32>,
    coins: StdRng,
}

impl Simulation<'_> {
    fn with_contents<S: scheme::Scheme + 'static>(&mut self, tags: S) -> Box<dyn scheme::Scheme> {
        let contents = self.contents.pop().expect("there are no more than two trees");
        Box::new(TagScheme::new(tags, contents, self.log.clone()))
    }

    fn path(&self, tree: &TreeConfig) -> Result<PathScheme<TagTree>, Error> {
        let (log, id) = (self.log.clone(), tree.tree);
        let mut tags = PathScheme::of_tags(&TreeConfig { block_bytes: 0, ..tree.clone() })?;
        tags.tell_paths(move |leaf| log.note(id, leaf));
        Ok(tags)
    }

    fn raw(&self, config: &RawConfig) -> Result<RawScheme<Logged<MemoryStore>>, Error> {
        let store = MemoryStore::new(&[config.tree.shape()?], MemoryStore::default_layout())?;
        let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
        RawScheme::new(config, sealer, Logged::new(store, self.log.clone()))
    }
}

impl Ground for Simulation<'_> {
    fn scheme(&mut self, config: &SchemeConfig) -> Result<Box<dyn scheme::Scheme>, Error> {
        Ok(match config {
            SchemeConfig::Path(tree) => self.with_contents(self.path(tree)?),
            SchemeConfig::Raw(config) => self.with_contents(self.raw(config)?),
        })
    }

    fn coins(&mut self) -> Box<dyn CryptoRng> {
        Box::new(StdRng::from_rng(&mut self.coins))
    }

    /// What the specification says. The small tree of ρ is empty: it fills with what is written or put back.
    fn fill(&mut self, main: &mut dyn Front) -> Result<(), Error> {
        match (&self.spec.initial, &self.spec.scheme) {
            (Initial::Empty, _) => Ok(()),
            (Initial::Placed, Scheme::Path) => main.populate(),
            (Initial::Placed, Scheme::Raw { .. }) => write_each(main, 0..self.spec.data_blocks),
            (Initial::EachOnce, _) => {
                let blocks = std::mem::take(&mut self.accessed_once);
                write_each(main, shuffle(blocks, &mut self.coins))
            }
        }
    }
}

/// Fills an ORAM by writing its blocks. A scan costs little more than a path a block.
fn write_each(oram: &mut dyn Front, blocks: impl Iterator<Item = u64>) -> Result<(), Error> {
    for block in blocks {
        while oram.check_ready().is_err() {
            oram.evict()?;
        }
        oram.write(block, &BLOCK)?;
    }
    Ok(())
}
