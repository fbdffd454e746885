//! ρ itself: the array of tags, and the moves of blocks between the trees.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::{RhoConfig, RhoTally, TwoTrees};
use crate::block_cache::{BlockCache, CacheTag, LineId};
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::recursion::FreecursiveOram;
use crate::front::{Access, FlatOram, Front, Oram, check_requests};
use crate::geometry::Leaf;
use crate::posmap::draw_leaf;
use crate::scheme::{Op, PathScheme, Scheme};
use crate::stash::StashView;

/// A main ORAM with a small tree in front of it. The [module](super) describes the contents of
/// both, and what storage learns: **the number of rounds in each batch**.
///
/// If a batch is refused with [`ErrorKind::StashFull`], the requests before the refused one have
/// been served, and no block is lost. Make [idle rounds](Self::idle_round), which shrink both
/// stashes, and retry.
///
/// ```
/// use oblivio_core::front::rho::TwoTrees;
/// use oblivio_core::scheme::PathScheme;
/// use oblivio_core::{FlatOram, Key, MemoryStore, Oram, RhoConfig, RhoOram, Sealer, TreeConfig};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let main = TreeConfig::path(10_000, 64)?;
/// let config = RhoConfig::new(500, 64)?;
/// let shapes = [main.shape()?, config.small.shape()?];
/// let [main, small] = [&main, &config.small].map(|tree| {
///     let store = MemoryStore::new(&shapes, MemoryStore::default_layout())?;
///     PathScheme::new(tree, Sealer::aes128(Key::draw(&mut coins), tree.tree), store)
/// });
/// // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
/// let trees = TwoTrees::new(&config, main?, small?, StdRng::from_rng(&mut coins))?;
/// let mut oram = RhoOram::new(&config, FlatOram::new(trees, coins)?)?;
///
/// oram.write(7, &[42; 64])?;
/// let mut block = [0; 64];
/// oram.read(7, &mut block)?;
/// assert_eq!(block, [42; 64]);
/// assert_eq!(oram.tally().hits, 1);
/// # Ok::<(), oblivio_core::Error>(())
/// ```
pub struct RhoOram<F, S, R> {
    /// The front end of the main ORAM, over both trees.
    pub(super) main: F,
    trees: PhantomData<TwoTrees<S, R>>,
    /// The blocks in the small tree, with their leaves. A block's address in the small tree is its
    /// line number here.
    pub(super) array: BlockCache<Tag>,
    /// The address of the block that an insertion evicted from the array, until the block fits into
    /// the main stash.
    pub(super) victim: Option<u64>,
    /// The contents of the victim.
    victim_block: Zeroizing<Vec<u8>>,
    /// The contents of a block that is being moved to the small tree.
    pub(super) inserted: Zeroizing<Vec<u8>>,
    small_leaf_level: u8,
    /// Whether a batch ends with a complete round.
    pub(super) ends_rounds: bool,
    /// Whether a request started and then failed.
    pub(super) broken: bool,
}

/// ρ over two Path ORAMs. The main one has a flat position map.
pub type FlatRho<S, R> = RhoOram<FlatOram<TwoPaths<S, R>, R>, PathScheme<S>, R>;

/// ρ over two Path ORAMs. The main one is a Freecursive ORAM.
pub type FreecursiveRho<S, R> = RhoOram<FreecursiveOram<TwoPaths<S, R>, R>, PathScheme<S>, R>;

type TwoPaths<S, R> = TwoTrees<PathScheme<S>, R>;

/// The tag of a block in the small tree.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    pub(super) address: u64,
    pub(super) leaf: Leaf,
}

impl CacheTag for Tag {
    fn address(&self) -> u64 {
        self.address
    }
}

impl<F, S, R> RhoOram<F, S, R>
where
    F: Front + AsRef<TwoTrees<S, R>> + AsMut<TwoTrees<S, R>>,
    S: Scheme,
    R: CryptoRng,
{
    /// Puts an empty array in front of `main`, a front end over the [`TwoTrees`] of the same
    /// configuration.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the small tree does not match `config`, its block size
    /// differs from the main ORAM's, the array's size is not a multiple of its ways, there is no
    /// memory for it, or `main` [does not support](Front::check_takes) taking blocks out.
    pub fn new(config: &RhoConfig, main: F) -> Result<Self, Error> {
        main.check_takes()?;
        let small = main.as_ref().small().config();
        let block_bytes = main.block_bytes();
        if small.capacity != config.small.capacity || small.block_bytes != block_bytes {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "the small tree must hold {} blocks of {block_bytes} bytes: make it \
                     from RhoConfig::small",
                    config.small.capacity
                ),
            ));
        }
        let small_leaf_level = small.geometry.leaf_level();
        let blocks = usize::try_from(small.capacity).unwrap_or(usize::MAX);
        Ok(Self {
            main,
            trees: PhantomData,
            // Only tags: the blocks themselves are in the small tree.
            array: BlockCache::new(blocks, config.ways, 0)?,
            victim: None,
            victim_block: Zeroizing::new(vec![0; block_bytes]),
            inserted: Zeroizing::new(vec![0; block_bytes]),
            small_leaf_level,
            ends_rounds: config.ends_rounds,
            broken: false,
        })
    }

    /// The front end of the main ORAM.
    pub fn main(&self) -> &F {
        &self.main
    }

    /// The main tree and the small one, for callers that wrap them.
    pub fn trees_mut(&mut self) -> [&mut S; 2] {
        self.trees().trees_mut()
    }

    /// The stashes of the main tree and the small one. Secret.
    pub fn stashes(&self) -> [StashView<'_>; 2] {
        let trees = self.main.as_ref();
        [trees.stash(), trees.small().stash()]
    }

    /// Counters since ρ was made. Secret.
    pub fn tally(&self) -> RhoTally {
        self.main.as_ref().tally
    }

    /// Bytes of client memory for the array. Public.
    pub fn array_bytes(&self) -> usize {
        self.array.bytes()
    }

    /// Makes dummies until the current round is complete, or a whole round if none has begun.
    /// Dummies add no block to a stash, and the evictions that come with them shrink it. Storage
    /// cannot distinguish dummies from requests.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`], and any error of the storage.
    pub fn idle_round(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.break_on_failure(|oram| oram.trees().idle_round())
    }

    /// Makes a dummy access to the tree that the pattern requires next. Over Path ORAM, the access
    /// also moves blocks from the stash of this tree into the tree.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`], and any error of the storage.
    pub fn idle_access(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.break_on_failure(|oram| oram.trees().idle_access())
    }

    pub(super) fn trees(&mut self) -> &mut TwoTrees<S, R> {
        self.main.as_mut()
    }

    /// Fails if one of the stashes has no room for a request. Idle rounds or accesses then make
    /// room.
    pub(super) fn check_both_ready(&self) -> Result<(), Error> {
        let trees = self.main.as_ref();
        trees.check_ready()?;
        trees.small().check_ready()
    }

    /// Runs `work`. If it fails, the ORAM is broken and refuses all further work.
    fn break_on_failure<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.broken = true;
        let done = work(self)?;
        self.broken = false;
        Ok(done)
    }

    /// Runs `work`. Then completes the current round if the configuration says that batches end
    /// rounds, unless `work` left the ORAM broken.
    pub(super) fn complete_round_after<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        check_not_broken(self.broken)?;
        let done = work(self);
        if !self.broken && self.ends_rounds {
            self.break_on_failure(|oram| oram.trees().end_round())?;
        }
        done
    }

    /// Serves a request by running `work`, unless the request must be refused before it starts.
    /// Puts the victim of the array into the main stash afterwards, or before the next request if
    /// the main stash has no room.
    pub(super) fn serve<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check_both_ready()?;
        if self.victim.is_some() {
            self.break_on_failure(Self::put_victim_back)?;
            self.check_both_ready()?;
        }
        self.break_on_failure(|oram| {
            let done = work(oram)?;
            // If the main stash has no room, the victim waits for the next request.
            if oram.main.as_ref().check_ready().is_ok() {
                oram.put_victim_back()?;
            }
            Ok(done)
        })
    }

    fn request(&mut self, address: u64, op: &mut Op<'_>) -> Result<(), Error> {
        match self.array.find_for_use(address) {
            Some(line) => self.access_small(line, op),
            None => self.miss(address, op),
        }
    }

    /// Serves a request for a block in the small tree.
    fn access_small(&mut self, line: LineId, op: &mut Op<'_>) -> Result<(), Error> {
        let to = self.draw_small_leaf();
        let from = self.array.tag(line).expect("the block is in the array").leaf;
        let trees = self.main.as_mut();
        trees.tally.hits += 1;
        trees.access_small(|small| small.access(line.number(), from, to, op))?;
        self.array.tag_mut(line).expect("the block is in the array").leaf = to;
        Ok(())
    }

    /// Serves a request for a block in the main ORAM. A read leaves the block there; a write or an
    /// update inserts it into the small tree.
    fn miss(&mut self, address: u64, op: &mut Op<'_>) -> Result<(), Error> {
        self.trees().tally.misses += 1;
        if matches!(op, Op::Read(_)) {
            let op = op.reborrow();
            return self.main.access(&mut [Access { address, op }]);
        }
        let line = self.array.line_for(address);
        self.take_victim(line)?;
        self.main.take(address, &mut self.inserted)?;
        op.apply(&mut self.inserted);
        self.insert(line, address)
    }

    /// Puts a block that is in neither tree, and whose bytes are in `inserted`, into the stash of
    /// the small tree. The line in the array must [be free](Self::take_victim).
    pub(super) fn insert(&mut self, line: LineId, address: u64) -> Result<(), Error> {
        let leaf = self.draw_small_leaf();
        let trees = self.main.as_mut();
        trees.tally.inserted += 1;
        trees.small_mut().append(line.number(), leaf, &self.inserted)?;
        self.array.fill(line, Tag { address, leaf });
        Ok(())
    }

    /// Takes the block of a line out of the small tree, and makes it the victim. If the line is
    /// free, the access finds nothing: an insertion always costs a small access.
    pub(super) fn take_victim(&mut self, line: LineId) -> Result<(), Error> {
        let tag = self.array.tag(line);
        let from = match tag {
            Some(tag) => tag.leaf,
            None => self.draw_small_leaf(),
        };
        let Self { main, victim_block, .. } = self;
        main.as_mut().access_small(|small| small.take(line.number(), from, victim_block))?;
        self.array.release(line);
        self.victim = tag.map(|tag| tag.address);
        Ok(())
    }

    /// Puts the victim of the array, if there is one, into the main stash.
    fn put_victim_back(&mut self) -> Result<(), Error> {
        if let Some(address) = self.victim {
            self.main.put_back(address, &self.victim_block)?;
            self.victim = None;
            self.trees().tally.put_back += 1;
        }
        Ok(())
    }

    fn draw_small_leaf(&mut self) -> Leaf {
        let leaf_level = self.small_leaf_level;
        draw_leaf(self.trees().coins_mut(), leaf_level)
    }
}

impl<F, S, R> Oram for RhoOram<F, S, R>
where
    F: Front + AsRef<TwoTrees<S, R>> + AsMut<TwoTrees<S, R>>,
    S: Scheme,
    R: CryptoRng,
{
    fn capacity(&self) -> u64 {
        self.main.capacity()
    }

    fn block_bytes(&self) -> usize {
        self.main.block_bytes()
    }

    /// Serves requests one by one, without lookahead. Storage sees complete rounds.
    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        check_requests(self, batch)?;
        self.complete_round_after(|oram| {
            batch.iter_mut().try_for_each(|Access { address, op }| {
                oram.serve(|oram| oram.request(*address, op))
            })
        })
    }
}
