//! Options of an array.

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

/// The tree ORAM that holds the blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// RAW ORAM (Tiny ORAM): an access reads a path, and every fifth access also writes one back.
    #[default]
    Raw,
    /// Path ORAM: an access reads a path and writes it back.
    Path,
}

/// The location of the position map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Positions {
    /// The map is on the client: 4 or 8 bytes per block, and one access per request.
    #[default]
    OnClient,
    /// The map is in the tree itself (Freecursive ORAM), which takes additional accesses. **Storage
    /// sees their number**, which depends on the locality of the requests.
    InTree,
}

/// Options of an array. The defaults are the safest ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayOptions {
    capacity: u64,
    block_bytes: usize,
    scheme: Scheme,
    positions: Positions,
    integrity: Integrity,
}

impl ArrayOptions {
    /// An array of `capacity` blocks of `block_bytes` bytes: an authenticated RAW ORAM with the
    /// positions on the client.
    pub fn new(capacity: u64, block_bytes: usize) -> Self {
        Self {
            capacity,
            block_bytes,
            scheme: Scheme::default(),
            positions: Positions::default(),
            integrity: Integrity::Pmmac,
        }
    }

    /// Sets the tree ORAM.
    #[must_use]
    pub fn with_scheme(self, scheme: Scheme) -> Self {
        Self { scheme, ..self }
    }

    /// Sets the location of the position map.
    #[must_use]
    pub fn with_positions(self, positions: Positions) -> Self {
        Self { positions, ..self }
    }

    /// Turns authentication off. Each slot is 16 bytes shorter, and **storage can change answers
    /// undetected**.
    #[must_use]
    pub fn unauthenticated(self) -> Self {
        Self { integrity: Integrity::None, ..self }
    }

    /// An array in the memory of this process. An attacker who can read this memory sees
    /// everything, including the client's secrets.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) for an impossible capacity or block size.
    pub fn in_memory(&self) -> Result<Array, Error> {
        self.on(|shape| Ok(MemoryStore::new(&[shape], MemoryStore::default_layout())?))
    }

    /// An array on the store that `make` makes for a tree of this shape. The store must never have
    /// been written to.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) for an impossible capacity or block size; errors of `make`.
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
        Ok(Array::from_oram(on_store(&scheme, map.as_ref(), sealer, store, coins)?))
    }

    /// The parameters of the tree, and those of its map of positions and authentication tags. The
    /// map is `None` if the positions are a plain table without tags.
    fn parts(&self) -> Result<(SchemeConfig, Option<FreecursiveConfig>), Error> {
        let Self { capacity, block_bytes, scheme, positions, integrity } = *self;
        // The engine also allows blocks without bytes, for simulations.
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
