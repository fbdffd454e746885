//! The simplest front end: a flat position map.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashSet;
use rand_core::CryptoRng;

use super::{
    Access, Counters, Front, FrontTally, HitPolicy, Oram, VisitedBlock, check_request,
    check_requests, visit_tree,
};
use crate::error::{Error, ErrorKind};
use crate::posmap::FlatPosMap;
use crate::scheme::{
    Location, Op, PathScheme, RawConfig, RawScheme, Scheme, TreeConfig, WINDOW_ACCESSES_MAX,
};
use crate::seal::Sealer;
use crate::stash::StashView;
use crate::store::BucketStore;

/// An ORAM with its position map as one table in client memory.
///
/// ```
/// use oblivio_core::{Key, MemoryStore, Oram, PathOram, Sealer, TreeConfig};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let config = TreeConfig::path(1000, 64)?;
/// let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
/// // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
/// let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree);
/// let mut oram = PathOram::path(&config, sealer, store, coins)?;
///
/// oram.write(7, &[42; 64])?;
/// let mut block = [0; 64];
/// oram.read(7, &mut block)?;
/// assert_eq!(block, [42; 64]);
/// oram.read(8, &mut block)?;
/// assert_eq!(block, [0; 64], "never written");
/// # Ok::<(), oblivio_core::Error>(())
/// ```
pub struct FlatOram<S, R> {
    scheme: S,
    position_map: FlatPosMap,
    coins: R,
    capacity: u64,
    block_bytes: usize,
    hits: HitPolicy,
    tally: FrontTally,
}

/// Path ORAM with a flat position map.
pub type PathOram<S, R> = FlatOram<PathScheme<S>, R>;

/// RAW ORAM with a flat position map.
pub type RawOram<S, R> = FlatOram<RawScheme<S>, R>;

impl<S: BucketStore, R: CryptoRng> PathOram<S, R> {
    /// An empty Path ORAM.
    ///
    /// # Errors
    /// See [`PathScheme::new`].
    pub fn path(config: &TreeConfig, sealer: Sealer, store: S, coins: R) -> Result<Self, Error> {
        Self::new(PathScheme::new(config, sealer, store)?, coins)
    }

    /// The store, for callers that wrap it.
    pub fn store_mut(&mut self) -> &mut S {
        self.scheme.store_mut()
    }
}

impl<S: BucketStore, R: CryptoRng> RawOram<S, R> {
    /// An empty RAW ORAM.
    ///
    /// # Errors
    /// See [`RawScheme::new`].
    pub fn raw(config: &RawConfig, sealer: Sealer, store: S, coins: R) -> Result<Self, Error> {
        Self::new(RawScheme::new(config, sealer, store)?, coins)
    }

    /// The store, for callers that wrap it.
    pub fn store_mut(&mut self) -> &mut S {
        self.scheme.store_mut()
    }
}

impl<S: Scheme, R: CryptoRng> FlatOram<S, R> {
    /// Puts a flat position map in front of `scheme`. `coins` must be unpredictable to storage; the
    /// same coins give the same trace.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if there is no memory for the map.
    pub fn new(scheme: S, coins: R) -> Result<Self, Error> {
        let config = scheme.config();
        let (capacity, block_bytes) = (config.capacity, config.block_bytes);
        let position_map = FlatPosMap::new(capacity, config.geometry.leaf_level())?;
        Ok(Self {
            scheme,
            position_map,
            coins,
            capacity,
            block_bytes,
            hits: HitPolicy::default(),
            tally: FrontTally::default(),
        })
    }

    /// The same ORAM with another policy for blocks on the client. The policy decides what storage
    /// learns: see [`HitPolicy`].
    #[must_use]
    pub fn with_hits(self, hits: HitPolicy) -> Self {
        Self { hits, ..self }
    }

    /// The scheme, which makes the accesses.
    pub fn scheme(&self) -> &S {
        &self.scheme
    }

    /// The scheme, for callers that wrap it.
    pub fn scheme_mut(&mut self) -> &mut S {
        &mut self.scheme
    }

    /// Drops the front end and returns its scheme.
    pub fn into_scheme(self) -> S {
        self.scheme
    }

    /// Counters since the front end was made. Secret.
    pub fn tally(&self) -> FrontTally {
        self.tally
    }

    /// The parameters of the tree. Public.
    pub fn config(&self) -> &TreeConfig {
        self.scheme.config()
    }

    /// Starts a histogram of the number of blocks in the stash. The histogram is secret.
    pub fn record_stash_histogram(&mut self) {
        self.scheme.record_stash_histogram();
    }

    /// Number of AES blocks computed so far. Public.
    pub fn aes_blocks(&self) -> u64 {
        self.scheme.aes_blocks()
    }

    /// Bytes of client memory for the position map. Public.
    pub fn position_map_bytes(&self) -> usize {
        self.position_map.bytes()
    }

    /// The number of blocks on each level of the tree, from the root to the leaves. Secret. Storage
    /// sees a scan.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`], and any error of storage.
    pub fn blocks_on_levels(&mut self) -> Result<Vec<u64>, Error> {
        let mut blocks = vec![0; self.config().geometry.levels()];
        self.scheme.visit_blocks(&mut |location, _, _| {
            if let Location::Bucket(bucket) = location {
                blocks[usize::from(bucket.level())] += 1;
            }
        })?;
        Ok(blocks)
    }

    /// Announces the path of the access after the current one to storage.
    ///
    /// The map already has the new leaf of the current access. So if both accesses are to the same
    /// block, the announced path is the one that the second access will read.
    ///
    /// Nothing is announced with [`HitPolicy::Serve`]: the current access may bring the next block
    /// to the client, and then the next request makes no access. A path that was announced but not
    /// read would reveal this. The path would also be announced a second time, at the next access
    /// to the block.
    fn look_ahead(&mut self, next: &Access<'_>) {
        if self.hits == HitPolicy::Serve {
            return;
        }
        let leaf = self.position_map.look_up(next.address, &mut self.coins);
        self.scheme.announce(&[leaf]);
    }
}

impl<S: Scheme, R: CryptoRng> Oram for FlatOram<S, R> {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        check_requests(self, batch)?;
        for window in batch.chunks_mut(WINDOW_ACCESSES_MAX) {
            self.scheme.check_ready()?;
            let mut requests = window.iter_mut().peekable();
            while let Some(Access { address, op }) = requests.next() {
                if self.hits == HitPolicy::Serve && self.scheme.serve_on_client(*address, op)? {
                    self.tally.stash_hits += 1;
                    continue;
                }
                let (from, to) = self.position_map.look_up_and_remap(*address, &mut self.coins);
                if let Some(next) = requests.peek() {
                    self.look_ahead(next);
                }
                self.tally.data_accesses += 1;
                self.scheme.access(*address, from, to, op)?;
            }
        }
        Ok(())
    }
}

impl<S: Scheme, R: CryptoRng> Front for FlatOram<S, R> {
    fn check_ready(&self) -> Result<(), Error> {
        self.scheme.check_ready()
    }

    fn dummy(&mut self) -> Result<(), Error> {
        self.scheme.dummy(&mut self.coins)
    }

    fn evict(&mut self) -> Result<(), Error> {
        self.scheme.evict(&mut self.coins)
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        check_request(address, op, self.capacity, self.block_bytes)?;
        let is_found = self.scheme.serve_on_client(address, op)?;
        self.tally.stash_hits += u64::from(is_found);
        Ok(is_found)
    }

    /// Makes no access and returns false, because the position map is on the client.
    fn fetch_position(&mut self, address: u64) -> Result<bool, Error> {
        check_request(address, &Op::Update(&mut |_| ()), self.capacity, self.block_bytes)?;
        Ok(false)
    }

    fn check_takes(&self) -> Result<(), Error> {
        Ok(())
    }

    fn take(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        check_request(address, &Op::Read(block), self.capacity, self.block_bytes)?;
        self.scheme.check_ready()?;
        let (from, _) = self.position_map.look_up_and_remap(address, &mut self.coins);
        self.tally.data_accesses += 1;
        self.scheme.take(address, from, block)
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        check_request(address, &Op::Read(block), self.capacity, self.block_bytes)?;
        let is_found = self.scheme.take_on_client(address, block)?.is_some();
        self.tally.stash_hits += u64::from(is_found);
        Ok(is_found)
    }

    fn put_back(&mut self, address: u64, block: &[u8]) -> Result<(), Error> {
        check_request(address, &Op::Write(block), self.capacity, self.block_bytes)?;
        self.scheme.check_ready()?;
        let unseen = self.position_map.look_up(address, &mut self.coins);
        self.scheme.append(address, unseen, block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn populate(&mut self) -> Result<(), Error> {
        let Self { scheme, position_map, coins, capacity, .. } = self;
        let mut blocks =
            (0..*capacity).map(|address| (address, position_map.look_up(address, coins)));
        scheme.populate(&mut blocks)
    }

    fn counters(&self) -> Counters {
        Counters::new(self.tally, self.scheme.aes_blocks())
    }

    fn stash(&self) -> StashView<'_> {
        self.scheme.stash()
    }

    /// Checks the Path ORAM invariant: no block exists twice, and each is in the stash or in a
    /// bucket on the path to its leaf in the position map.
    fn check_invariants(&mut self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let mut violation = None;
        let position_map = &self.position_map;
        self.scheme.visit_blocks(&mut |location, address, leaf| {
            let defect = if !seen.insert(address) {
                "twice"
            } else if position_map.get(address) != Some(leaf) {
                "with a leaf other than the position map's"
            } else if matches!(location, Location::Bucket(bucket) if !bucket.is_on_path(leaf)) {
                "off its path"
            } else {
                return;
            };
            violation
                .get_or_insert_with(|| format!("a block is in the tree {defect} ({location:?})"));
        })?;
        violation.map_or(Ok(()), |message| Err(Error::new(ErrorKind::Corrupt, message)))
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(VisitedBlock)) -> Result<(), Error> {
        visit_tree(&mut self.scheme, |address| address, visit)
    }
}

impl<S, R> AsRef<S> for FlatOram<S, R> {
    fn as_ref(&self) -> &S {
        &self.scheme
    }
}

impl<S, R> AsMut<S> for FlatOram<S, R> {
    fn as_mut(&mut self) -> &mut S {
        &mut self.scheme
    }
}
