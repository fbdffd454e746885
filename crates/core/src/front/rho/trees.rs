//! Two trees, and the fixed pattern in which they are accessed.

use alloc::boxed::Box;

use rand_core::CryptoRng;

use super::{RhoConfig, RhoTally};
use crate::error::{Error, ErrorKind};
use crate::geometry::Leaf;
use crate::scheme::{Location, Op, Scheme, StepHook, TreeConfig};
use crate::stash::StashView;

/// The main tree and the small one. To the front end of the main ORAM it is a scheme: whatever that
/// asks for waits for its turn, so that accesses for the position map keep to the pattern as well.
pub struct TwoTrees<S, R> {
    main: S,
    small: S,
    small_per_main: usize,
    /// Accesses to the small tree in the round under way.
    small_done: usize,
    coins: R,
    pub(super) tally: RhoTally,
}

impl<S: Scheme, R: CryptoRng> TwoTrees<S, R> {
    /// Puts two empty trees together; `small` was made with [`RhoConfig::small`]. `coins` must be
    /// unpredictable to storage.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when the pattern is none, or both trees have one name: then they
    /// would be sealed under one key.
    pub fn new(config: &RhoConfig, main: S, small: S, coins: R) -> Result<Self, Error> {
        config.check_pattern()?;
        if main.config().tree == small.config().tree {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                "the small tree has the name of the main one, and their seals would be the same: give \
                 one of them another TreeConfig::tree",
            ));
        }
        let small_per_main = config.small_per_main;
        let tally = RhoTally::default();
        Ok(Self { main, small, small_per_main, small_done: 0, coins, tally })
    }

    /// The main tree and the small one, for whoever wraps them.
    pub fn trees_mut(&mut self) -> [&mut S; 2] {
        [&mut self.main, &mut self.small]
    }

    /// The small tree, to be looked at.
    pub(super) fn small(&self) -> &S {
        &self.small
    }

    /// The small tree, for what storage does not see or is no part of the pattern.
    pub(super) fn small_mut(&mut self) -> &mut S {
        &mut self.small
    }

    pub(super) fn coins_mut(&mut self) -> &mut R {
        &mut self.coins
    }

    /// Makes an access to the small tree when it is its turn.
    pub(super) fn access_small<T>(
        &mut self,
        access: impl FnOnce(&mut S) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.small_done == self.small_per_main {
            self.dummy_main()?;
        }
        self.tally.small_accesses += 1;
        self.small_done += 1;
        access(&mut self.small)
    }

    /// Makes an access to the main tree when it is its turn. It ends a round.
    fn access_main<T>(
        &mut self,
        access: impl FnOnce(&mut S) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.fill_up_small()?;
        self.tally.main_accesses += 1;
        self.small_done = 0;
        access(&mut self.main)
    }

    /// Makes a dummy, of the tree whose turn it is.
    pub(super) fn idle_access(&mut self) -> Result<(), Error> {
        if self.small_done < self.small_per_main { self.dummy_small() } else { self.dummy_main() }
    }

    /// Brings a round under way to its end.
    pub(super) fn end_round(&mut self) -> Result<(), Error> {
        if self.small_done == 0 { Ok(()) } else { self.idle_round() }
    }

    /// Makes dummies up to the end of the round.
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

/// The main tree, with the accesses to the small one that its turn takes.
impl<S: Scheme, R: CryptoRng> Scheme for TwoTrees<S, R> {
    fn config(&self) -> &TreeConfig {
        self.main.config()
    }

    fn stash(&self) -> StashView<'_> {
        self.main.stash()
    }

    /// The main tree's steps.
    fn set_step_hook(&mut self, hook: Box<dyn StepHook>) {
        self.main.set_step_hook(hook);
    }

    fn record_stash_histogram(&mut self) {
        self.main.record_stash_histogram();
    }

    /// Of both trees.
    fn aes_blocks(&self) -> u64 {
        self.main.aes_blocks() + self.small.aes_blocks()
    }

    fn check_ready(&self) -> Result<(), Error> {
        self.main.check_ready()
    }

    /// Nothing is shown ahead of its turn.
    fn announce(&mut self, _: &[Leaf]) {}

    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.access_main(|main| main.access(address, from, to, op))
    }

    /// It makes no access, and takes no turn.
    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.main.serve_on_client(address, op)
    }

    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        self.access_main(|main| main.take(address, from, block))
    }

    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.access_main(|main| main.dummy(coins))
    }

    /// A [dummy](Self::dummy): nothing else goes with the pattern.
    fn evict(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.dummy(coins)
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error> {
        self.main.take_on_client(address, block)
    }

    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        self.main.append(address, leaf, block)
    }

    /// The main tree; the small one stays empty.
    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error> {
        self.main.populate(blocks)
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error> {
        self.main.visit_blocks(visit)
    }
}
