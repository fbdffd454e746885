//! An array of blocks in memory or on a store of one's own, which lives as long as the program.

use std::fmt;

use oblivio_core::front::{Front, MapConfig, OnStores, OramConfig, SchemeConfig, build};
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;
use oblivio_core::store::TreeShape;
use oblivio_core::{
    Access, BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, BucketStore, FreecursiveConfig, Integrity, Key,
    MemoryStore, Op, RawConfig, Sealer, TreeConfig,
};
use oblivio_volume::Coins;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::error::{Error, ErrorKind};

/// An eviction makes room for more than one block, so long before this something else is wrong.
const EVICTIONS_MAX: usize = 1000;

/// An oblivious array of blocks: storage learns how many accesses there were and when, and not to which blocks, nor whether they read or wrote.
///
/// **Never fork or copy a process that has one**, or go back to a snapshot of its machine: two that go on from one state seal different data with one mask, and storage has the difference of both.
///
/// **It lives as long as the program.** Key, stash and position map are in its memory alone, and nothing opens the storage again once they are
/// gone. For what has to last, take a [`Volume`](crate::Volume).
///
/// ```
/// use oblivio::{ArrayOptions, Scheme};
///
/// let mut array = ArrayOptions::new(1000, 64).with_scheme(Scheme::Path).in_memory()?;
/// array.write(7, &[42; 64])?;
/// array.update(7, |block| block[0] += 1)?;
/// let mut block = [0; 64];
/// array.read(7, &mut block)?;
/// assert_eq!((block[0], block[1]), (43, 42));
/// # Ok::<(), oblivio::Error>(())
/// ```
pub struct Array {
    oram: Box<dyn Front>,
}

/// Which tree the blocks are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// RAW ORAM (Tiny ORAM): an access reads a path, and each fifth one writes one back.
    #[default]
    Raw,
    /// Path ORAM: an access reads a path and writes it back.
    Path,
}

/// Where it is kept which path each block is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Positions {
    /// With the client: 4 or 8 bytes for each block, and one access for each request.
    #[default]
    OnClient,
    /// In the tree itself (Freecursive ORAM), which takes accesses of its own. **Storage sees how many**, and that depends on how near to each
    /// other requests are.
    InTree,
}

/// What an array is like. What is not said is as it is safest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayOptions {
    capacity: u64,
    block_bytes: usize,
    scheme: Scheme,
    positions: Positions,
    integrity: Integrity,
}

impl ArrayOptions {
    /// So many blocks of so many bytes, authenticated, in a RAW ORAM whose positions are with the client.
    pub fn new(capacity: u64, block_bytes: usize) -> Self {
        Self {
            capacity,
            block_bytes,
            scheme: Scheme::default(),
            positions: Positions::default(),
            integrity: Integrity::Pmmac,
        }
    }

    /// In this tree.
    #[must_use]
    pub fn with_scheme(self, scheme: Scheme) -> Self {
        Self { scheme, ..self }
    }

    /// With the positions there.
    #[must_use]
    pub fn with_positions(self, positions: Positions) -> Self {
        Self { positions, ..self }
    }

    /// Without tags: 16 bytes less for each slot, and **storage that changes a bit changes an answer**, which nobody notices.
    #[must_use]
    pub fn unauthenticated(self) -> Self {
        Self { integrity: Integrity::None, ..self }
    }

    /// In the memory of this process. Whoever can read that sees what storage would see, and the client as well.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) for a capacity or a block size that cannot be.
    pub fn in_memory(&self) -> Result<Array, Error> {
        self.on(|shape| Ok(MemoryStore::new(&[shape], MemoryStore::default_layout())?))
    }

    /// On a store that `make` makes for a tree of this shape. Nothing was ever written to it.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) for a capacity or a block size that cannot be, and those of `make`.
    pub fn on<S: BucketStore + 'static>(
        &self,
        make: impl FnOnce(TreeShape) -> Result<S, Error>,
    ) -> Result<Array, Error> {
        let config = self.config()?;
        let mut coins = Coins::from_system()?;
        let tree = config.scheme.tree();
        let store = make(tree.shape()?)?;
        let mut outside = Some((Sealer::aes128(Key::draw(&mut coins), tree.tree), store));
        // There is one tree, so it is asked for once.
        let outside = |_: &TreeConfig| outside.take().ok_or_else(two_trees);
        let mut ground = OnStores::new(outside, || StdRng::from_rng(&mut coins));
        Ok(Array { oram: build(&config, &mut ground)? })
    }

    fn config(&self) -> Result<OramConfig, Error> {
        let Self { capacity, block_bytes, scheme, positions, integrity } = *self;
        // The engine has blocks without bytes as well, for simulations.
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes) {
            let message = format!(
                "a block has {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes, not {block_bytes}"
            );
            return Err(Error::new(ErrorKind::Input, message));
        }
        if (positions, integrity) == (Positions::OnClient, Integrity::None) {
            let scheme = match scheme {
                Scheme::Raw => SchemeConfig::Raw(RawConfig::new(capacity, block_bytes)?),
                Scheme::Path => SchemeConfig::Path(TreeConfig::path(capacity, block_bytes)?),
            };
            return Ok(OramConfig::flat(scheme));
        }
        let mut map = FreecursiveConfig::new(capacity, block_bytes)?;
        map.integrity = integrity;
        if positions == Positions::OnClient {
            map.client_entries_max = capacity;
        }
        let scheme = match scheme {
            Scheme::Raw => SchemeConfig::Raw(map.raw_tree()?),
            Scheme::Path => SchemeConfig::Path(map.path_tree()?),
        };
        Ok(OramConfig { map: MapConfig::Freecursive(map), ..OramConfig::flat(scheme) })
    }
}

fn two_trees() -> oblivio_core::Error {
    oblivio_core::Error::new(oblivio_core::ErrorKind::InvalidConfig, "an array has one tree")
}

impl Array {
    /// As it is unless somebody says otherwise, in memory. See [`ArrayOptions`].
    ///
    /// # Errors
    /// Those of [`ArrayOptions::in_memory`].
    pub fn in_memory(capacity: u64, block_bytes: usize) -> Result<Self, Error> {
        ArrayOptions::new(capacity, block_bytes).in_memory()
    }

    /// How many blocks. Public.
    pub fn capacity(&self) -> u64 {
        self.oram.capacity()
    }

    /// Bytes of a block. Public.
    pub fn block_bytes(&self) -> usize {
        self.oram.block_bytes()
    }

    /// Reads a block into `buffer`. One that was never written is zeros.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    pub fn read(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Read(buffer) }])
    }

    /// Replaces a block.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Write(data) }])
    }

    /// Reads, changes and writes a block in one access. `change` runs between the two in Path ORAM, and storage sees how long it takes.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    pub fn update(&mut self, address: u64, mut change: impl FnMut(&mut [u8])) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Update(&mut change) }])
    }

    /// Serves a batch in order, as many accesses as it has entries. If the stash is over its bound, evictions come first: storage sees them, and they depend
    /// on leaves alone.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) for an address past the end and for a buffer of another length than a block: of a batch, nothing was done then.
    /// [`Tampered`](ErrorKind::Tampered) if storage does not hold what was written, and is authenticated. After any but the first, the array answers
    /// nothing more.
    pub fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        for Access { address, op } in &*batch {
            oblivio_core::front::check_request(*address, op, self.capacity(), self.block_bytes())?;
        }
        for window in batch.chunks_mut(WINDOW_ACCESSES_MAX) {
            self.make_room()?;
            self.oram.access(window)?;
        }
        Ok(())
    }

    /// An access to nothing, which storage cannot tell from another.
    ///
    /// # Errors
    /// Those of storage.
    pub fn dummy(&mut self) -> Result<(), Error> {
        self.make_room()?;
        Ok(self.oram.dummy()?)
    }

    /// An eviction ahead of its time: it makes the stash smaller. Storage sees it.
    ///
    /// # Errors
    /// Those of storage.
    pub fn background_evict(&mut self) -> Result<(), Error> {
        Ok(self.oram.evict()?)
    }

    fn make_room(&mut self) -> Result<(), Error> {
        let is_full =
            |error: &oblivio_core::Error| error.kind() == oblivio_core::ErrorKind::StashFull;
        for _ in 0..EVICTIONS_MAX {
            match self.oram.check_ready() {
                Err(error) if is_full(&error) => self.oram.evict()?,
                ready => return Ok(ready?),
            }
        }
        Ok(self.oram.check_ready()?)
    }
}

/// Nothing of what it holds.
impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} blocks of {} bytes)", self.capacity(), self.block_bytes())
    }
}
