//! Two trees that are accessed in a fixed pattern.

use alloc::boxed::Box;

use rand_core::CryptoRng;

use super::{RhoConfig, RhoTally};
use crate::error::{Error, ErrorKind};
use crate::geometry::Leaf;
use crate::scheme::{Location, Op, Scheme, StepHook, TreeConfig};
use crate::stash::StashView;

/// The main tree and the small one, which the front end of the main ORAM uses as one scheme. An
/// access to either tree is made only when the pattern has an access to that tree next. So
/// position-map accesses also follow the pattern.
pub struct TwoTrees<S, R> {
    main: S,
    small: S,
    small_per_main: usize,
    /// Accesses to the small tree in the current round.
    small_done: usize,
    coins: R,
    pub(super) tally: RhoTally,
}

impl<S: Scheme, R: CryptoRng> TwoTrees<S, R> {
    /// Combines two empty trees; `small` was made with [`RhoConfig::small`]. `coins` must be
    /// unpredictable to storage.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the pattern is invalid, or if both trees have the same
    /// [`TreeConfig::tree`]: they would be sealed under one key.
    pub fn new(config: &RhoConfig, main: S, small: S, coins: R) -> Result<Self, Error> {
        config.check_pattern()?;
        if main.config().tree == small.config().tree {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                "the main tree and the small one have the same name and would share a key: give \
                 one of them another TreeConfig::tree",
            ));
        }
        let small_per_main = config.small_per_main;
        let tally = RhoTally::default();
        Ok(Self { main, small, small_per_main, small_done: 0, coins, tally })
    }

    /// The main tree and the small one, for callers that wrap them.
    pub fn trees_mut(&mut self) -> [&mut S; 2] {
        [&mut self.main, &mut self.small]
    }

    /// The small tree, for inspection.
    pub(super) fn small(&self) -> &S {
        &self.small
    }

    /// The small tree, for operations that storage does not see or that do not belong to the
    /// pattern.
    pub(super) fn small_mut(&mut self) -> &mut S {
        &mut self.small
    }

    pub(super) fn coins_mut(&mut self) -> &mut R {
        &mut self.coins
    }

    /// Makes an access to the small tree. If the next access of the pattern is to the main tree,
    /// first makes a dummy access there.
    pub(super) fn access_small<T>(
        &mut self,
        access: impl FnOnce(&mut S) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // IR-ORAM, Section II-C: a fixed pattern, with dummies of either type as needed.
        if self.small_done == self.small_per_main {
            self.dummy_main()?;
        }
        self.tally.small_accesses += 1;
        self.small_done += 1;
        access(&mut self.small)
    }

    /// Makes an access to the main tree. First makes the dummy accesses to the small tree that are
    /// missing in the current round. The access ends the round.
    fn access_main<T>(
        &mut self,
        access: impl FnOnce(&mut S) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // IR-ORAM, Section II-C: a fixed pattern, with dummies of either type as needed.
        self.fill_up_small()?;
        self.tally.main_accesses += 1;
        self.small_done = 0;
        access(&mut self.main)
    }

    /// Makes a dummy access to the tree that the pattern requires next.
    pub(super) fn idle_access(&mut self) -> Result<(), Error> {
        if self.small_done < self.small_per_main { self.dummy_small() } else { self.dummy_main() }
    }

    /// Completes the current round, if one has begun.
    pub(super) fn end_round(&mut self) -> Result<(), Error> {
        if self.small_done == 0 { Ok(()) } else { self.idle_round() }
    }

    /// Makes dummies until the current round is complete; if none has begun, a whole round.
    pub(super) fn idle_round(&mut self) -> Result<(), Error> {
        self.fill_up_small()?;
        self.dummy_main()
    }

    fn fill_up_small(&mut self) -> Result<(), Error> {
        while self.small_done < self.small_per_main {
            self.dummy_small()?;
        }
        Ok(())
    }

    fn dummy_small(&mut self) -> Result<(), Error> {
        self.tally.small_dummies += 1;
        self.small_done += 1;
        self.small.dummy(&mut self.coins)
    }

    fn dummy_main(&mut self) -> Result<(), Error> {
        self.tally.main_dummies += 1;
        self.small_done = 0;
        self.main.dummy(&mut self.coins)
    }
}

/// The main tree as a scheme that also makes the accesses to the small tree that the pattern
/// requires.
impl<S: Scheme, R: CryptoRng> Scheme for TwoTrees<S, R> {
    fn config(&self) -> &TreeConfig {
        self.main.config()
    }

    fn stash(&self) -> StashView<'_> {
        self.main.stash()
    }

    /// Sets the hook for the steps of the main tree.
    fn set_step_hook(&mut self, hook: Box<dyn StepHook>) {
        self.main.set_step_hook(hook);
    }

    fn record_stash_histogram(&mut self) {
        self.main.record_stash_histogram();
    }

    /// The sum of the AES blocks of both trees.
    fn aes_blocks(&self) -> u64 {
        self.main.aes_blocks() + self.small.aes_blocks()
    }

    fn check_ready(&self) -> Result<(), Error> {
        self.main.check_ready()
    }

    /// Announces nothing, because accesses to the small tree can come before the announced path is
    /// read.
    fn announce(&mut self, _: &[Leaf]) {}

    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.access_main(|main| main.access(address, from, to, op))
    }

    /// Serves the block without an access. So the pattern does not advance.
    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.main.serve_on_client(address, op)
    }

    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        self.access_main(|main| main.take(address, from, block))
    }

    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.access_main(|main| main.dummy(coins))
    }

    /// Makes a [dummy](Self::dummy) instead of an eviction, because only dummies fit into the
    /// pattern.
    fn evict(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.dummy(coins)
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error> {
        self.main.take_on_client(address, block)
    }

    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        self.main.append(address, leaf, block)
    }

    /// Populates the main tree; the small one stays empty.
    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error> {
        self.main.populate(blocks)
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error> {
        self.main.visit_blocks(visit)
    }
}
