//! The engine as the controller uses it: any ORAM of `oblivio_core`, over trees that hold tags
//! instead of blocks. The path log records the paths of each call.

use oblivio_core::front::rho::TwoTrees;
use oblivio_core::scheme::PathScheme;
use oblivio_core::store::TreeId;
use oblivio_core::{Error, Front, Op, RhoOram};
use rand::rngs::StdRng;
use rand::{CryptoRng, SeedableRng};

use super::MAIN_TREE;
use super::initial::{InitialOram, LoggedOram, noted};
use super::path_log::PathLog;
use super::recursive::recursive;
use super::spec::{OramSpec, PositionMap, RhoSpec, Scheme};
use super::tags::Contents;
use crate::SimError;

/// An ORAM without block contents. Requests name lines; a block holds one or more lines.
pub(super) struct Engine {
    oram: Box<dyn Front>,
    block_lines: u64,
    /// Zeros: the data of every write.
    zeros: Vec<u8>,
    /// The buffer into which blocks are read.
    bytes: Vec<u8>,
    /// The number of accesses to ρ's small tree per access to the main tree; 0 without ρ.
    small_per_main: u64,
}

impl Engine {
    /// Builds the engine from the initial ORAM. `coins` seeds the rest of the run.
    pub(super) fn new(
        spec: &OramSpec,
        log: &PathLog,
        initial: InitialOram,
        coins: &mut StdRng,
    ) -> Result<Self, SimError> {
        if spec.rho.is_some() && spec.scheme != Scheme::Path {
            let message = "rho is simulated over Path ORAM, not over RAW ORAM: use scheme path";
            return Err(SimError::Spec(message.to_owned()));
        }
        if spec.position_map == PositionMap::OwnTrees {
            let oram = Box::new(recursive(spec, log, initial, fork(coins))?);
            return Ok(Self {
                block_lines: spec.block_lines,
                zeros: vec![0; spec.block_bytes()],
                bytes: vec![0; spec.block_bytes()],
                oram,
                small_per_main: 0,
            });
        }
        let main = initial.into_oram(spec, log, fork(coins))?;
        Ok(Self {
            block_lines: spec.block_lines,
            zeros: vec![0; spec.block_bytes()],
            bytes: vec![0; spec.block_bytes()],
            oram: match &spec.rho {
                Some(rho) => Box::new(with_rho(spec, rho, log, main, coins)?),
                None => Box::new(main),
            },
            small_per_main: spec.rho.as_ref().map_or(0, |rho| rho.small_per_main as u64),
        })
    }

    /// Serves a request for a line without a path access, if its block is found on the client by
    /// address. Returns whether the block was found.
    pub(super) fn serve_on_client(&mut self, line: u64) -> Result<bool, Error> {
        let block = self.block(line);
        self.oram.serve_on_client(block, &mut Op::Write(&self.zeros))
    }

    /// Serves a request for a line, and remaps its block. Only ρ treats reads and writes
    /// differently.
    pub(super) fn access(&mut self, line: u64, writes: bool) -> Result<(), Error> {
        let block = self.block(line);
        match writes {
            true => self.oram.write(block, &self.zeros),
            false => self.oram.read(block, &mut self.bytes),
        }
    }

    /// Takes a line's block out of the ORAM without a path access, if it is found on the client by
    /// address. Returns whether the block was found.
    pub(super) fn take_on_client(&mut self, line: u64) -> Result<bool, Error> {
        let block = self.block(line);
        self.oram.take_on_client(block, &mut self.bytes)
    }

    /// Takes a line's block out of the ORAM.
    pub(super) fn take(&mut self, line: u64) -> Result<(), Error> {
        let block = self.block(line);
        self.oram.take(block, &mut self.bytes).map(drop)
    }

    /// The block that contains a line.
    fn block(&self, line: u64) -> u64 {
        line / self.block_lines
    }

    /// Takes a line's block out of the main tree. Then makes dummies until the stashes have room
    /// again, and the round of the two trees is at the same point as before.
    pub(super) fn take_and_resume(&mut self, line: u64) -> Result<(), Error> {
        let place = self.place_in_round();
        self.take(line)?;
        while !self.is_ready() || self.place_in_round() != place {
            self.dummy()?;
        }
        Ok(())
    }

    /// Whether the ORAM is ρ, which has a small tree.
    pub(super) fn has_small_tree(&self) -> bool {
        self.small_per_main > 0
    }

    /// Makes dummy accesses until the current round of ρ's two trees ends.
    pub(super) fn end_round(&mut self) -> Result<(), Error> {
        while self.place_in_round() != 0 {
            self.dummy()?;
        }
        Ok(())
    }

    /// Whether `tree` is the small tree of ρ. Trees of a position map do not count.
    pub(super) fn is_small_tree(&self, tree: TreeId) -> bool {
        self.small_per_main > 0 && tree != MAIN_TREE
    }

    /// Whether a line's block is in the small tree of ρ or in that tree's stash.
    pub(super) fn is_in_small_tree(&self, line: u64) -> bool {
        self.oram.is_in_small_tree(self.block(line))
    }

    /// The number of accesses to the small tree of ρ since the last access to the main tree.
    fn place_in_round(&self) -> u64 {
        let Some(tally) = self.oram.counters().rho else { return 0 };
        tally.small_accesses + tally.small_dummies - tally.rounds() * self.small_per_main
    }

    /// Puts back a line's block that was taken out.
    pub(super) fn put_back(&mut self, line: u64) -> Result<(), Error> {
        let block = self.block(line);
        self.oram.put_back(block, &self.zeros)
    }

    /// Makes the first of the position-map accesses that a request for a line would need now.
    /// Returns whether the request needs any.
    pub(super) fn fetch_position(&mut self, line: u64) -> Result<bool, Error> {
        let block = self.block(line);
        self.oram.fetch_position(block)
    }

    /// Makes a dummy access, which looks like any other access on the bus.
    pub(super) fn dummy(&mut self) -> Result<(), Error> {
        self.oram.dummy()
    }

    /// Makes a background eviction.
    pub(super) fn evict(&mut self) -> Result<(), Error> {
        self.oram.evict()
    }

    /// Whether the stash has room for a request.
    pub(super) fn is_ready(&self) -> bool {
        self.oram.check_ready().is_ok()
    }

    /// The number of blocks in the stash; in ρ, in both stashes.
    pub(super) fn stash_blocks(&self) -> usize {
        self.oram.stash_blocks()
    }

    /// Checks the invariants of the ORAM.
    pub(super) fn check_invariants(&mut self) -> Result<(), Error> {
        self.oram.check_invariants()
    }
}

/// Adds ρ in front of the ORAM. The small tree is empty at first, and fills with blocks that are
/// written or put back.
fn with_rho(
    spec: &OramSpec,
    rho: &RhoSpec,
    log: &PathLog,
    main: LoggedOram,
    coins: &mut StdRng,
) -> Result<impl Front + use<>, SimError> {
    let config = spec.rho(rho)?;
    let tags = PathScheme::of_tags(&config.small.clone().with_block_bytes(0))?;
    let small = noted(tags, Contents::new(&[], config.small.block_bytes)?, log);
    let of_rho = fork(coins);
    let two_trees = |main| TwoTrees::new(&config, main, small, of_rho);
    Ok(RhoOram::new(&config, main.rewrapped(two_trees, fork(coins))?)?)
}

fn fork(coins: &mut StdRng) -> Box<dyn CryptoRng> {
    Box::new(StdRng::from_rng(coins))
}
