//! The logical interface: an array of blocks that hides how it is used.

mod backed;
mod cached;
mod hits;
pub mod recursion;
pub mod rho;
mod rotating;
mod taking;
mod tally;

pub use backed::BackedOram;
pub use cached::{CacheConfig, CacheTally, CachedOram, RemapPolicy};
pub use hits::HitPolicy;
pub use rotating::{
    Fate, Kept, RotatingConfig, RotatingOram, RotatingShapes, Salvage, nothing_to_do,
};
pub use taking::TakingOram;
pub use tally::FrontendTally;

use rand_core::CryptoRng;

use crate::error::{Error, ErrorKind};
use crate::posmap::FlatPosMap;
use crate::scheme::{
    Location, Op, PathScheme, RawConfig, RawScheme, Scheme, TreeConfig, WINDOW_ACCESSES_MAX,
};
use crate::seal::Sealer;
use crate::stash::StashView;
use crate::store::BucketStore;

/// One request of a batch.
pub struct Access<'a> {
    /// Which block, from 0 to the capacity less one. Secret.
    pub address: u64,
    /// What to do with it. Secret, and so is whether it reads or writes.
    pub op: Op<'a>,
}

/// An oblivious array of `capacity` blocks of `block_bytes` each.
///
/// Storage learns how many accesses there were, and nothing else: not which blocks, not how often
/// the same, not whether they were read or written. A position map that lies in the ORAM
/// itself adds accesses of its own: see [`crate::front::recursion`]. Where [`HitPolicy::Serve`] was chosen,
/// requests for blocks on the client make none, and storage learns what that policy says.
pub trait Oram {
    /// How many blocks. Public.
    fn capacity(&self) -> u64;

    /// Bytes of a block. Public.
    fn block_bytes(&self) -> usize;

    /// Serves a batch in order, as many accesses as it has entries. Storage may see that they came
    /// together: the path of the next access is shown to it ahead of time, in windows of
    /// [`WINDOW_ACCESSES_MAX`].
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) before anything is touched, for the whole
    /// batch. Any other error: the accesses before the failing one have taken effect, and
    /// [`ErrorKind`] says whether the ORAM goes on.
    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error>;

    /// Reads a block into `buffer`.
    ///
    /// # Errors
    /// See [`Self::access`].
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Read(buffer) }])
    }

    /// Replaces a block by `data`.
    ///
    /// # Errors
    /// See [`Self::access`].
    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Write(data) }])
    }

    /// Reads, modifies and writes a block in one access.
    ///
    /// # Errors
    /// See [`Self::access`].
    fn update(&mut self, address: u64, mut change: impl FnMut(&mut [u8])) -> Result<(), Error>
    where
        Self: Sized,
    {
        self.access(&mut [Access { address, op: Op::Update(&mut change) }])
    }
}

/// An ORAM whose position map is one table in client memory: the simplest frontend.
///
/// ```
/// use oblivio_core::{Key, MemoryStore, Oram, PathOram, Sealer, TreeConfig};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let config = TreeConfig::path(1000, 64)?;
/// let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
/// let sealer = Sealer::aes128(&Key::draw(&mut coins), config.tree);
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
    tally: FrontendTally,
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

    /// The store, for whoever wraps it.
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

    /// The store, for whoever wraps it.
    pub fn store_mut(&mut self) -> &mut S {
        self.scheme.store_mut()
    }
}

impl<S: Scheme, R: CryptoRng> FlatOram<S, R> {
    /// Fills an ORAM that was never accessed: afterwards each block has been written, with zeros.
    ///
    /// # Errors
    /// Those of [`Scheme::populate`].
    pub fn populate(&mut self) -> Result<(), Error> {
        let Self { scheme, position_map, coins, capacity, .. } = self;
        let mut blocks =
            (0..*capacity).map(|address| (address, position_map.look_up(address, coins)));
        scheme.populate(&mut blocks)
    }
}

impl<S: Scheme, R: CryptoRng> FlatOram<S, R> {
    /// Puts a flat position map before `scheme`. `coins` must be unpredictable to storage; the
    /// same coins give the same trace.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when there is no memory for the map.
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
            tally: FrontendTally::default(),
        })
    }

    /// The same ORAM with another policy for blocks that are on the client. It decides what storage
    /// learns: see [`HitPolicy`].
    #[must_use]
    pub fn with_hits(self, hits: HitPolicy) -> Self {
        Self { hits, ..self }
    }

    /// The scheme, for whoever wraps it.
    pub fn scheme_mut(&mut self) -> &mut S {
        &mut self.scheme
    }

    /// What it did so far. Secret.
    pub fn tally(&self) -> FrontendTally {
        self.tally
    }

    /// The parameters of the tree. Public.
    pub fn config(&self) -> &TreeConfig {
        self.scheme.config()
    }

    /// The stash. Secret.
    pub fn stash(&self) -> StashView<'_> {
        self.scheme.stash()
    }

    /// Starts to keep a histogram of the stash. Secret.
    pub fn record_stash_histogram(&mut self) {
        self.scheme.record_stash_histogram();
    }

    /// AES blocks computed so far. Public.
    pub fn aes_blocks(&self) -> u64 {
        self.scheme.aes_blocks()
    }

    /// Bytes of client memory for the position map. Public.
    pub fn position_map_bytes(&self) -> usize {
        self.position_map.bytes()
    }

    /// An access to nothing: see [`Scheme::dummy`].
    ///
    /// # Errors
    /// Those of [`Scheme::dummy`].
    pub fn dummy(&mut self) -> Result<(), Error> {
        self.scheme.dummy(&mut self.coins)
    }

    /// Makes the stash smaller ahead of time: see [`Scheme::evict`].
    ///
    /// # Errors
    /// Any that storage causes.
    pub fn evict(&mut self) -> Result<(), Error> {
        self.scheme.evict(&mut self.coins)
    }

    /// Checks the Path ORAM invariant over the whole tree: each block exactly once, in the stash or
    /// in a bucket on the path that the position map says. Storage sees a scan.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] with the first violation, and any that storage causes.
    pub fn check_invariants(&mut self) -> Result<(), Error> {
        let mut seen = std::collections::HashSet::new();
        let mut violation = None;
        let position_map = &self.position_map;
        self.scheme.visit_blocks(&mut |location, address, leaf| {
            let defect = if !seen.insert(address) {
                "twice"
            } else if position_map.get(address) != Some(leaf) {
                "with another leaf than the position map's"
            } else if matches!(location, Location::Bucket(bucket) if !bucket.is_on_path(leaf)) {
                "off its path"
            } else {
                return;
            };
            violation.get_or_insert_with(|| format!("there is a block {defect} ({location:?})"));
        })?;
        violation.map_or(Ok(()), |message| Err(Error::new(ErrorKind::Corrupt, message)))
    }

    /// How many blocks each level of the tree holds, from the root to the leaves. Secret. Storage
    /// sees a scan.
    ///
    /// # Errors
    /// Any that storage causes.
    pub fn blocks_on_levels(&mut self) -> Result<Vec<u64>, Error> {
        let mut blocks = vec![0; self.config().geometry.levels()];
        self.scheme.visit_blocks(&mut |location, _, _| {
            if let Location::Bucket(bucket) = location {
                blocks[usize::from(bucket.level())] += 1;
            }
        })?;
        Ok(blocks)
    }

    /// Shows storage the path of the access after the one under way.
    ///
    /// By now the access under way has its new leaf in the map, so that a second access to the same
    /// block looks ahead to the path it will really read.
    ///
    /// Where hits are served, nothing is shown: whether there is an access after this one turns out
    /// when its turn comes, because this one may bring its block to the client. A path that was
    /// shown and then not read would tell that the block is there; and if the block were asked for
    /// again, its path would be shown twice.
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

/// Refuses a batch of which an ORAM cannot serve every request.
pub(crate) fn check_requests<O: Oram>(oram: &O, batch: &[Access<'_>]) -> Result<(), Error> {
    batch.iter().try_for_each(|request| {
        check_request(request.address, &request.op, oram.capacity(), oram.block_bytes())
    })
}

/// Refuses a request that no ORAM of this size can serve.
pub(crate) fn check_request(
    address: u64,
    op: &Op<'_>,
    capacity: u64,
    block_bytes: usize,
) -> Result<(), Error> {
    let invalid = |message| Err(Error::new(ErrorKind::InvalidRequest, message));
    if address >= capacity {
        // The address itself stays out of the message: messages may be logged.
        return invalid(format!("the address is past the end: there are {capacity} blocks"));
    }
    match op.buffer_bytes() {
        Some(bytes) if bytes != block_bytes => {
            invalid(format!("the buffer has {bytes} bytes, a block has {block_bytes}"))
        }
        _ => Ok(()),
    }
}
