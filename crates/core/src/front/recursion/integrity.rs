//! Integrity of blocks in storage.

use rand_core::CryptoRng;

#[cfg(feature = "pmmac")]
use super::pmmac::PMMAC_BYTES;
use super::pmmac::{Pmmac, data_of};
use crate::error::Error;
use crate::posmap::leaf_prf::Position;
use crate::scheme::{Op, Scheme};

/// The protection, if any, against storage that does not return what was written.
///
/// ```
/// use oblivio_core::scheme::PathScheme;
/// use oblivio_core::{
///     ErrorKind, FreecursiveConfig, FreecursiveOram, Integrity, Key, MemoryStore, Oram, Sealer,
/// };
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let mut config = FreecursiveConfig::new(1000, 64)?;
/// config.integrity = Integrity::Pmmac;
/// let tree = config.path_tree()?;
/// assert_eq!(tree.block_bytes, 64 + 16);
/// let store = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
/// // Authenticated, but not durable: position map and counts are lost when the program ends.
/// let sealer = Sealer::aes128(Key::draw(&mut coins), tree.tree);
/// let scheme = PathScheme::new(&tree, sealer, store)?;
/// let mut oram = FreecursiveOram::new(&config, scheme, coins)?;
///
/// for address in 0..1000 {
///     oram.write(address, &[42; 64])?;
/// }
/// oram.scheme_mut().store_mut().contents_mut().fill(0); // storage deletes everything
/// let error = (0..1000).find_map(|address| oram.read(address, &mut [0; 64]).err());
/// assert_eq!(error.unwrap().kind(), ErrorKind::Corrupt);
/// # Ok::<(), oblivio_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Integrity {
    /// No detection: storage is assumed honest but curious. Its answers are validated only so that
    /// nothing panics.
    #[default]
    None,
    /// PosMap MAC (Freecursive ORAM, ASPLOS'15): each block is stored with a tag over its contents,
    /// its address and its count of accesses from the position map. The tag takes [`PMMAC_BYTES`]
    /// in each slot. The [module](super) describes what PMMAC protects. Requires the feature
    /// `pmmac`, which is on by default.
    #[cfg(feature = "pmmac")]
    Pmmac,
}

impl Integrity {
    /// Bytes added to each block in the tree. Public.
    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            #[cfg(feature = "pmmac")]
            Self::Pmmac => PMMAC_BYTES,
        }
    }

    /// Whether each block is sealed under its count of accesses.
    pub(super) fn counts(self) -> bool {
        self != Self::None
    }
}

/// Seals blocks that leave the client and opens blocks that return; does nothing without PMMAC.
pub(super) struct Guard {
    pmmac: Option<Pmmac>,
}

impl Guard {
    #[cfg_attr(
        not(feature = "pmmac"),
        expect(unused_variables, reason = "without the feature there is no key to draw")
    )]
    pub(super) fn new(integrity: Integrity, coins: &mut impl CryptoRng) -> Self {
        let pmmac = match integrity {
            Integrity::None => None,
            #[cfg(feature = "pmmac")]
            Integrity::Pmmac => Some(Pmmac::draw(coins)),
        };
        Self { pmmac }
    }

    /// Whether PMMAC is enabled, so that blocks are sealed and opened.
    pub(super) fn is_on(&self) -> bool {
        self.pmmac.is_some()
    }

    /// Makes an access to the scheme. `op` is applied to the block without its tag, and only if the
    /// block authenticates.
    ///
    /// With PMMAC, every accessed block exists afterwards, even if it was only read: the count
    /// proves the absence only of blocks that were never accessed. The path is written back before
    /// the result of the check is used, so that storage sees a complete access.
    pub(super) fn access<S: Scheme>(
        &self,
        scheme: &mut S,
        address: u64,
        (from, to): (Position, Position),
        op: &mut Op<'_>,
    ) -> Result<(), Error> {
        let Some(pmmac) = &self.pmmac else {
            return scheme.access(address, from.leaf, to.leaf, op);
        };
        let mut verdict = Ok(());
        let mut open_and_seal = |block: &mut [u8]| {
            verdict = pmmac.open(address, from.count, block).and_then(|()| {
                op.apply(data_of(block));
                pmmac.seal(address, to.count, block)
            });
        };
        scheme.access(address, from.leaf, to.leaf, &mut Op::Update(&mut open_and_seal))?;
        verdict
    }

    /// Opens a block that was taken out of the scheme.
    pub(super) fn open(&self, address: u64, at: Position, block: &mut [u8]) -> Result<(), Error> {
        match &self.pmmac {
            Some(pmmac) => pmmac.open(address, at.count, block),
            None => Ok(()),
        }
    }

    /// Seals a block before it is put back into the scheme.
    pub(super) fn seal(&self, address: u64, at: Position, block: &mut [u8]) -> Result<(), Error> {
        match &self.pmmac {
            Some(pmmac) => pmmac.seal(address, at.count, block),
            None => Ok(()),
        }
    }
}
