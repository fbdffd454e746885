//! The engine as a controller uses it: each call makes the path accesses it takes, and the log has them.

use oblivio_core::front::rho::TwoTrees;
use oblivio_core::scheme::{self, PathScheme, RawScheme, Scheme as _, TagTree};
use oblivio_core::seal::NoSecrecy;
use oblivio_core::{
    BackedOram, Error, FreecursiveOram, MemoryStore, Oram, RawConfig, RhoOram, Sealer, TakingOram,
    TreeConfig,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::path_log::{Logged, PathLog};
use super::spec::{Initial, OramSpec, RhoSpec, Scheme};
use super::tags::TagScheme;
use crate::{LINE_BYTES, SimError};

const BLOCK: [u8; LINE_BYTES as usize] = [0; LINE_BYTES as usize];

/// An ORAM of core.
pub(crate) trait Engine {
    /// Serves a request for a block if it is found on the client by its address, and answers whether
    /// it was. No path is accessed.
    fn serve_on_client(&mut self, block: u64) -> Result<bool, Error>;

    /// Serves a request for a block, and remaps it. Only ρ cares whether it writes.
    fn access(&mut self, block: u64, writes: bool) -> Result<(), Error>;

    /// Takes a block out if it is found on the client by its address, and answers whether it was. No path
    /// is accessed.
    fn take_on_client(&mut self, block: u64) -> Result<bool, Error>;

    /// Takes a block out.
    fn take(&mut self, block: u64) -> Result<(), Error>;

    /// Puts a block back that was taken out.
    fn put_back(&mut self, block: u64) -> Result<(), Error>;

    /// Makes the first of the position-map accesses that a request for a block would take now.
    fn fetch_position(&mut self, block: u64) -> Result<bool, Error>;

    /// Makes an access that nobody asked for. On the bus it looks like any other.
    fn dummy(&mut self) -> Result<(), Error>;

    /// Makes the stash smaller.
    fn evict(&mut self) -> Result<(), Error>;

    /// Whether the stash has room for a request.
    fn is_ready(&self) -> bool;

    /// Blocks in the stash, or in both of them.
    fn stash_blocks(&self) -> usize;

    /// Checks that every block is where it belongs.
    fn check_invariants(&mut self) -> Result<(), Error>;
}

/// An engine, with the blocks that it holds at first.
pub(super) fn build(
    spec: &OramSpec,
    log: &PathLog,
    seed: u64,
) -> Result<Box<dyn Engine>, SimError> {
    let mut builder = Builder { spec, log, coins: StdRng::seed_from_u64(seed) };
    match (&spec.scheme, &spec.rho) {
        (Scheme::Path, None) => {
            let tree = builder.path(&spec.tree()?)?;
            builder.initial_freecursive(tree)
        }
        (Scheme::Path, Some(rho)) => builder.rho(rho),
        (Scheme::Raw { evict_period }, None) => {
            let config = spec.raw(*evict_period)?;
            let mut oram = builder.freecursive(builder.raw(&config)?)?;
            builder.fill(&mut oram, |oram| write_each(oram, 0..spec.data_blocks))?;
            Ok(Box::new(oram))
        }
        (Scheme::Raw { .. }, Some(_)) => {
            let message = "rho is simulated over two Path ORAMs, and not over RAW ORAM: use path";
            Err(SimError::Spec(message.to_owned()))
        }
    }
}

struct Builder<'a> {
    spec: &'a OramSpec,
    log: &'a PathLog,
    coins: StdRng,
}

impl Builder<'_> {
    fn path(&self, tree: &TreeConfig) -> Result<PathScheme<TagTree>, Error> {
        let (log, id) = (self.log.clone(), tree.tree);
        let mut tags = PathScheme::of_tags(tree)?;
        tags.tell_paths(move |leaf| log.note(id, leaf));
        Ok(tags)
    }

    fn raw(&self, config: &RawConfig) -> Result<RawScheme<Logged<MemoryStore>>, Error> {
        let store = MemoryStore::new(&[config.tree.shape()?], MemoryStore::default_layout())?;
        let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
        RawScheme::new(config, sealer, Logged::new(store, self.log.clone()))
    }

    fn freecursive<B: scheme::Scheme>(
        &mut self,
        tags: B,
    ) -> Result<FreecursiveOram<TagScheme<B, PathLog>, StdRng>, SimError> {
        let frontend = self.spec.frontend()?;
        let scheme = TagScheme::new(tags, &frontend.level_addresses()?, self.log.clone())?;
        let coins = StdRng::from_rng(&mut self.coins);
        Ok(FreecursiveOram::new(&frontend, scheme, coins)?)
    }

    fn initial_freecursive<B>(&mut self, tags: B) -> Result<Box<dyn Engine>, SimError>
    where
        B: scheme::Scheme + 'static,
    {
        let mut oram = self.freecursive(tags)?;
        self.fill(&mut oram, |oram| oram.populate())?;
        Ok(Box::new(oram))
    }

    /// Lets `oram` hold what the specification says. `place` is the quick way to all blocks.
    fn fill<O: BackedOram>(
        &mut self,
        oram: &mut O,
        place: impl FnOnce(&mut O) -> Result<(), Error>,
    ) -> Result<(), SimError> {
        match self.spec.initial {
            Initial::Empty => Ok(()),
            Initial::Placed => Ok(place(oram)?),
            Initial::EachOnce => Ok(write_each(oram, self.spec.shuffled_blocks(&mut self.coins)?)?),
        }
    }

    /// ρ whose small tree is empty: it fills with what is written or put back.
    fn rho(mut self, rho: &RhoSpec) -> Result<Box<dyn Engine>, SimError> {
        let config = self.spec.rho(rho)?;
        let frontend = self.spec.frontend()?;
        let levels = frontend.level_addresses()?;
        let small_tree = TreeConfig { block_bytes: 0, ..config.small.clone() };
        let tree = self.spec.tree()?;
        let main = TagScheme::new(self.path(&tree)?, &levels, self.log.clone())?;
        let small = TagScheme::new(self.path(&small_tree)?, &[], self.log.clone())?;
        let trees = TwoTrees::new(&config, main, small, StdRng::from_rng(&mut self.coins))?;
        let mut oram = FreecursiveOram::new(&frontend, trees, StdRng::from_rng(&mut self.coins))?;
        self.fill(&mut oram, |oram| oram.populate())?;
        Ok(Box::new(RhoOram::new(&config, oram)?.with_open_rounds()))
    }
}

/// Fills an ORAM by writing its blocks. A scan costs little more than a path a block.
fn write_each<O: BackedOram>(oram: &mut O, blocks: impl Iterator<Item = u64>) -> Result<(), Error> {
    for block in blocks {
        while oram.scheme().check_ready().is_err() {
            oram.evict()?;
        }
        oram.write(block, &BLOCK)?;
    }
    Ok(())
}

impl<B: scheme::Scheme> Engine for FreecursiveOram<B, StdRng> {
    fn serve_on_client(&mut self, block: u64) -> Result<bool, Error> {
        self.scheme_mut().serve_on_client(block, &mut oblivio_core::Op::Write(&BLOCK))
    }

    fn access(&mut self, block: u64, _: bool) -> Result<(), Error> {
        self.write(block, &BLOCK)
    }

    fn take_on_client(&mut self, block: u64) -> Result<bool, Error> {
        TakingOram::take_on_client(self, block, &mut [0; BLOCK.len()])
    }

    fn take(&mut self, block: u64) -> Result<(), Error> {
        TakingOram::take(self, block, &mut [0; BLOCK.len()]).map(drop)
    }

    fn put_back(&mut self, block: u64) -> Result<(), Error> {
        TakingOram::put_back(self, block, &BLOCK)
    }

    fn fetch_position(&mut self, block: u64) -> Result<bool, Error> {
        self.fetch_position(block)
    }

    fn dummy(&mut self) -> Result<(), Error> {
        self.dummy()
    }

    fn evict(&mut self) -> Result<(), Error> {
        self.evict()
    }

    fn is_ready(&self) -> bool {
        self.scheme().check_ready().is_ok()
    }

    fn stash_blocks(&self) -> usize {
        self.stash().blocks()
    }

    fn check_invariants(&mut self) -> Result<(), Error> {
        self.check_invariants()
    }
}

impl<F, B> Engine for RhoOram<F, B, StdRng>
where
    F: BackedOram<Scheme = TwoTrees<B, StdRng>>,
    B: scheme::Scheme,
{
    /// The array decides which stash a block can be in: [`Self::access`] asks it first.
    fn serve_on_client(&mut self, _: u64) -> Result<bool, Error> {
        Ok(false)
    }

    fn access(&mut self, block: u64, writes: bool) -> Result<(), Error> {
        if writes { self.write(block, &BLOCK) } else { self.read(block, &mut [0; BLOCK.len()]) }
    }

    fn take_on_client(&mut self, block: u64) -> Result<bool, Error> {
        TakingOram::take_on_client(self, block, &mut [0; BLOCK.len()])
    }

    fn take(&mut self, block: u64) -> Result<(), Error> {
        TakingOram::take(self, block, &mut [0; BLOCK.len()]).map(drop)
    }

    fn put_back(&mut self, block: u64) -> Result<(), Error> {
        TakingOram::put_back(self, block, &BLOCK)
    }

    /// Nothing is fetched ahead of its time.
    fn fetch_position(&mut self, _: u64) -> Result<bool, Error> {
        Ok(false)
    }

    fn dummy(&mut self) -> Result<(), Error> {
        self.idle_access()
    }

    fn evict(&mut self) -> Result<(), Error> {
        self.idle_access()
    }

    fn is_ready(&self) -> bool {
        self.is_ready()
    }

    fn stash_blocks(&self) -> usize {
        self.stashes().iter().map(|stash| stash.blocks()).sum()
    }

    fn check_invariants(&mut self) -> Result<(), Error> {
        self.check_invariants()
    }
}
