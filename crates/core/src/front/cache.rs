//! A cache of blocks in front of an ORAM, like a processor's last-level cache (LLC).

use alloc::vec::Vec;

use super::{Access, Counters, Front, Oram, VisitedBlock, check_request, check_requests};
use crate::block_cache::{BlockCache, CacheTag, LineId};
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::scheme::Op;
use crate::stash::StashView;

/// The time at which a block that the cache has fetched moves to another path (IR-ORAM, section
/// IV-D).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemapPolicy {
    /// A block moves when it is fetched. It stays in the ORAM, and the cache has a copy. A dirty
    /// victim costs one more request to the ORAM; a clean victim costs none.
    #[default]
    AtAccess,
    /// A block moves when the cache evicts it (Nagarajan et al., ASPLOS'19; LLC-D). An access takes
    /// the block out of the ORAM. A victim, dirty or clean, goes into the stash with a fresh leaf.
    /// Returning the victim needs no access to data, but a second look-up in the position map. If
    /// the map is in the tree, the blocks for that look-up might no longer be on the client.
    Delayed,
}

/// The size of a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheConfig {
    /// Blocks in the cache, at least 1.
    pub blocks: usize,
    /// Number of blocks in a set of the cache: a divisor of `blocks`. If equal to `blocks`, the
    /// cache is fully associative.
    pub ways: usize,
}

/// Counters of one cache. Secret, except for the numbers that storage sees: see [`CachedOram`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTally {
    /// Requests for blocks in the cache, which needed no access.
    pub hits: u64,
    /// Requests for which a block was fetched.
    pub misses: u64,
    /// Victims returned to the ORAM: all if remapping is delayed, otherwise the dirty ones.
    pub written_back: u64,
}

/// An ORAM behind an LRU cache of blocks on the client.
///
/// # What storage sees
/// **How many requests miss the cache**, which depends on the addresses: a hit costs no access. A
/// miss costs as much as a request to the ORAM behind the cache. Storage also sees:
/// - [`AtAccess`](RemapPolicy::AtAccess): an access for each dirty victim. So the number of
///   accesses also depends on which requests write.
/// - [`Delayed`](RemapPolicy::Delayed): the position-map accesses of each victim, dirty or clean;
///   none if the position map is on the client. So the number depends only on the addresses. If
///   [ρ](crate::front::rho) is behind the cache, a victim costs rounds of ρ, and their number also
///   depends only on the addresses. The leaves are always uniform, independent and never used
///   before.
///
/// # Full stash
/// A request refused with [`ErrorKind::StashFull`] has not been served, and no block is lost: every
/// block is in the cache or in the ORAM behind it. Evict in the background and retry the request.
///
/// ```
/// use oblivio_core::{CacheConfig, CachedOram, Front, Key, MemoryStore, Oram, PathOram};
/// use oblivio_core::{RemapPolicy, Sealer, TreeConfig};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let config = TreeConfig::path(1000, 64)?;
/// let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
/// // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
/// let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree);
/// let oram = PathOram::path(&config, sealer, store, coins)?;
/// let cache = CacheConfig { blocks: 32, ways: 8 };
/// let mut oram = CachedOram::new(cache, RemapPolicy::Delayed, oram)?;
///
/// for _ in 0..10 {
///     oram.update(7, &mut |block| block[0] += 1)?;
/// }
/// assert_eq!((oram.tally().misses, oram.tally().hits), (1, 9));
/// oram.flush()?;
/// # Ok::<(), oblivio_core::Error>(())
/// ```
pub struct CachedOram<O> {
    oram: O,
    cache: BlockCache<CachedBlock>,
    policy: RemapPolicy,
    fetch: Fetch<O>,
    write_back: WriteBack<O>,
    tally: CacheTally,
    /// Whether fetching or returning a block has failed, other than because of a full stash.
    broken: bool,
}

/// A function that fetches the block of an address.
type Fetch<O> = fn(&mut O, u64, &mut [u8]) -> Result<(), Error>;

/// A function that returns a victim to the ORAM if necessary. Returns whether it was necessary: if
/// remapping is delayed, always; otherwise, only if the victim is dirty.
type WriteBack<O> = fn(&mut O, CachedBlock, &[u8]) -> Result<bool, Error>;

/// A block in the cache.
#[derive(Clone, Copy)]
struct CachedBlock {
    address: u64,
    changed: bool,
}

impl CacheTag for CachedBlock {
    fn address(&self) -> u64 {
        self.address
    }
}

impl<O: Oram> CachedOram<O> {
    /// Puts an empty cache in front of any ORAM, with [`RemapPolicy::AtAccess`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if `config` is invalid or there is no memory for the cache.
    pub fn at_access(config: CacheConfig, oram: O) -> Result<Self, Error> {
        let fetch: Fetch<O> = |oram, address, block| oram.read(address, block);
        let write_back: WriteBack<O> = |oram, cached, block| {
            if cached.changed {
                oram.write(cached.address, block)?;
            }
            Ok(cached.changed)
        };
        Self::with_moves(config, oram, RemapPolicy::AtAccess, fetch, write_back)
    }

    fn with_moves(
        config: CacheConfig,
        oram: O,
        policy: RemapPolicy,
        fetch: Fetch<O>,
        write_back: WriteBack<O>,
    ) -> Result<Self, Error> {
        let cache = BlockCache::new(config.blocks, config.ways, oram.block_bytes())?;
        Ok(Self {
            oram,
            cache,
            policy,
            fetch,
            write_back,
            tally: CacheTally::default(),
            broken: false,
        })
    }

    /// The policy that says when blocks move. Public.
    pub fn policy(&self) -> RemapPolicy {
        self.policy
    }

    /// Counters since the cache was made. Secret.
    pub fn tally(&self) -> CacheTally {
        self.tally
    }

    /// The ORAM behind the cache.
    pub fn oram(&self) -> &O {
        &self.oram
    }

    /// The ORAM behind the cache, for wrappers. Requests to it bypass the cache, so their answers
    /// are right only for blocks that are not in the cache.
    pub fn oram_mut(&mut self) -> &mut O {
        &mut self.oram
    }

    /// Empties the cache and returns its blocks to the ORAM if necessary: see [`RemapPolicy`]. The
    /// cache can then be dropped without loss.
    ///
    /// # Errors
    /// See [`Front::flush`].
    pub fn flush_all(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        let lines: Vec<_> = self.cache.blocks().map(|(line, _)| line).collect();
        lines.into_iter().try_for_each(|line| self.vacate(line))
    }

    fn apply(&mut self, line: LineId, op: &mut Op<'_>) {
        op.apply(self.cache.block_mut(line));
        if let Some(cached) = self.cache.tag_mut(line) {
            cached.changed |= !matches!(op, Op::Read(_));
        }
    }

    /// Finds the line that holds the block `address`. On a miss, empties a line, which returns the
    /// victim to the ORAM if necessary, and fetches the block `address` into this line.
    fn line_of(&mut self, address: u64) -> Result<LineId, Error> {
        if let Some(line) = self.cache.find_for_use(address) {
            self.tally.hits += 1;
            return Ok(line);
        }
        let line = self.cache.line_for(address);
        self.vacate(line)?;
        let fetched = (self.fetch)(&mut self.oram, address, self.cache.block_mut(line));
        self.unless_broken(fetched)?;
        self.cache.fill(line, CachedBlock { address, changed: false });
        self.tally.misses += 1;
        Ok(line)
    }

    /// Empties a line. Returns the block that it held, if any, to the ORAM if necessary: see
    /// [`WriteBack`].
    fn vacate(&mut self, line: LineId) -> Result<(), Error> {
        if let Some(cached) = self.cache.tag(line) {
            let result = (self.write_back)(&mut self.oram, cached, self.cache.block(line));
            self.tally.written_back += u64::from(self.unless_broken(result)?);
            self.cache.release(line);
        }
        Ok(())
    }

    /// Marks the cache as broken after any error except a full stash. A broken cache does not even
    /// answer hits.
    fn unless_broken<T>(&mut self, moved: Result<T, Error>) -> Result<T, Error> {
        self.broken = moved.as_ref().is_err_and(|error| error.kind() != ErrorKind::StashFull);
        moved
    }
}

impl<O: Front> CachedOram<O> {
    /// Puts an empty cache in front of an ORAM that supports the policy.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if `config` is invalid, there is no memory for the cache, or
    /// the ORAM [does not support](Front::check_takes) the policy.
    pub fn new(config: CacheConfig, policy: RemapPolicy, oram: O) -> Result<Self, Error> {
        match policy {
            RemapPolicy::AtAccess => Self::at_access(config, oram),
            RemapPolicy::Delayed => {
                oram.check_takes()?;
                let fetch: Fetch<O> = |oram, address, block| oram.take(address, block).map(drop);
                let write_back: WriteBack<O> =
                    |oram, cached, block| oram.put_back(cached.address, block).map(|()| true);
                Self::with_moves(config, oram, policy, fetch, write_back)
            }
        }
    }
}

impl<O: Oram> Oram for CachedOram<O> {
    fn capacity(&self) -> u64 {
        self.oram.capacity()
    }

    fn block_bytes(&self) -> usize {
        self.oram.block_bytes()
    }

    /// Serves requests one by one, without lookahead. Storage sees the misses.
    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        check_requests(self, batch)?;
        check_not_broken(self.broken)?;
        for Access { address, op } in batch {
            let line = self.line_of(*address)?;
            self.apply(line, op);
        }
        Ok(())
    }
}

impl<O: Front> Front for CachedOram<O> {
    fn check_ready(&self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.oram.check_ready()
    }

    fn dummy(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.oram.dummy()
    }

    fn evict(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.oram.evict()
    }

    /// Serves the request only if the block is in the cache. Does not search the ORAM behind it.
    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        check_request(address, op, self.capacity(), self.block_bytes())?;
        check_not_broken(self.broken)?;
        let Some(line) = self.cache.find_for_use(address) else { return Ok(false) };
        self.tally.hits += 1;
        self.apply(line, op);
        Ok(true)
    }

    fn fetch_position(&mut self, address: u64) -> Result<bool, Error> {
        check_not_broken(self.broken)?;
        self.oram.fetch_position(address)
    }

    fn check_takes(&self) -> Result<(), Error> {
        let message = "blocks cannot be taken from behind a cache, which may hold them: put one \
                       cache before the ORAM";
        Err(Error::new(ErrorKind::InvalidConfig, message))
    }

    fn take(&mut self, _: u64, _: &mut [u8]) -> Result<bool, Error> {
        self.check_takes().map(|()| false)
    }

    fn take_on_client(&mut self, _: u64, _: &mut [u8]) -> Result<bool, Error> {
        self.check_takes().map(|()| false)
    }

    fn put_back(&mut self, _: u64, _: &[u8]) -> Result<(), Error> {
        self.check_takes()
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.flush_all()?;
        self.oram.flush()
    }

    fn populate(&mut self) -> Result<(), Error> {
        self.oram.populate()
    }

    fn counters(&self) -> Counters {
        Counters { cache: Some(self.tally), ..self.oram.counters() }
    }

    fn stash(&self) -> StashView<'_> {
        self.oram.stash()
    }

    fn stash_blocks(&self) -> usize {
        self.oram.stash_blocks()
    }

    /// Checks the invariants of the ORAM behind the cache. With delayed remapping, also checks that
    /// no cached block is still in the ORAM. Storage sees one more scan.
    fn check_invariants(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.oram.check_invariants()?;
        let Self { oram, cache, policy, .. } = self;
        let mut twice = false;
        oram.visit_blocks(&mut |block| {
            twice |= *policy == RemapPolicy::Delayed && cache.find(block.address).is_some();
        })?;
        if twice {
            let message = "a block is both in the cache and behind it";
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        Ok(())
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(VisitedBlock)) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.oram.visit_blocks(visit)
    }
}
