//! What an array is like.

use oblivio_core::front::SchemeConfig;
use oblivio_core::store::TreeShape;
use oblivio_core::{
    BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, BucketStore, FreecursiveConfig, Integrity, Key, MemoryStore,
    RawConfig, Sealer, TreeConfig,
};
use oblivio_volume::Coins;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::Array;
use super::on_store::on_store;
use crate::error::{Error, ErrorKind};

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
    pub fn on<S: BucketStore + Send + 'static>(
        &self,
        make: impl FnOnce(TreeShape) -> Result<S, Error>,
    ) -> Result<Array, Error> {
        let (scheme, map) = self.parts()?;
        let mut coins = Coins::from_system()?;
        let tree = scheme.tree();
        let store = make(tree.shape()?)?;
        let sealer = Sealer::aes128(Key::draw(&mut coins), tree.tree);
        let coins = StdRng::from_rng(&mut coins);
        Ok(Array::of(on_store(&scheme, map.as_ref(), sealer, store, coins)?))
    }

    /// The tree, and how the positions and tags are kept in it. Without either, the positions are a table.
    fn parts(&self) -> Result<(SchemeConfig, Option<FreecursiveConfig>), Error> {
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
            return Ok((scheme, None));
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
        Ok((scheme, Some(map)))
    }
}
