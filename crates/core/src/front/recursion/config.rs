//! The parameters of Freecursive ORAM.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::integrity::Integrity;
use crate::error::{Error, ErrorKind};
use crate::front::HitPolicy;
use crate::posmap::address_space::AddressSpace;
use crate::posmap::compressed::{COUNTER_BITS_MAX, CounterFormat};
use crate::scheme::{RawConfig, TreeConfig, WINDOW_ACCESSES_MAX};

/// Maximum fan-out (counters in a position-map block). The bound limits the cost of resetting a
/// group: one access per block.
const FAN_OUT_MAX: u64 = 4096;

/// Maximum fan-out that [`FreecursiveConfig::new`] chooses.
const DEFAULT_FAN_OUT_MAX: u64 = 256;

/// Maximum number of blocks in a PLB.
const PLB_BLOCKS_MAX: usize = 1 << 20;

/// Parameters of Freecursive ORAM, with their names in the papers in parentheses.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FreecursiveConfig {
    /// Number of data blocks (N).
    pub capacity: u64,
    /// Bytes of a block (B/8), of data and of the position map.
    pub block_bytes: usize,
    /// Number of blocks whose counters one position-map block holds (X). These blocks are a
    /// *group*. From 2 to 4096, and limited by the space next to the group's shared counter of 64
    /// bits.
    pub fan_out: u64,
    /// Bits of a block's own counter, from 1 to 24 (14 in Freecursive ORAM). After
    /// `2^counter_bits` accesses to one block since the last reset, its group is reset, which costs
    /// `fan_out - 1` accesses.
    pub counter_bits: u32,
    /// Maximum number of entries of the position map in client memory, at least 1. An entry takes 4
    /// bytes, or 8 with PMMAC and in trees of `2^32` leaves or more. The number of levels of the
    /// recursion (H - 1) follows from this maximum.
    pub client_entries_max: u64,
    /// Number of blocks in the PLB, the client's cache of position-map blocks. With 0, every
    /// request fetches a position-map block on each level.
    pub plb_blocks: usize,
    /// Number of blocks in a set of the PLB, a divisor of `plb_blocks`. 1 is a direct-mapped PLB,
    /// as in Freecursive ORAM.
    pub plb_ways: usize,
    /// Whether a request for a block on the client makes a path access, and whether fetching a
    /// position-map block that is on the client makes one. This decides what storage learns.
    pub hits: HitPolicy,
    /// Whether to detect storage that does not return what was written.
    pub integrity: Integrity,
}

impl FreecursiveConfig {
    /// The paper's sizes if they fit: 14-bit counters and X = 32 in blocks of 64 bytes. In larger
    /// blocks, X grows up to 256, and counters grow until group resets cost at most one access in
    /// 512. Client memory has up to 2048 entries (8 KiB, as in Tiny ORAM, section V-E), and a
    /// direct-mapped PLB of 64 blocks.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if no tree fits `capacity`, or blocks cannot have this size.
    pub fn new(capacity: u64, block_bytes: usize) -> Result<Self, Error> {
        let fan_out = |counter_bits| {
            CounterFormat { counter_bits }.fitting(block_bytes).min(DEFAULT_FAN_OUT_MAX)
        };
        let counter_bits = (14..COUNTER_BITS_MAX)
            .find(|bits| fan_out(*bits) << 9 <= 1 << bits)
            .unwrap_or(COUNTER_BITS_MAX);
        let config = Self {
            capacity,
            block_bytes,
            fan_out: fan_out(counter_bits),
            counter_bits,
            client_entries_max: 2048,
            plb_blocks: 64,
            plb_ways: 1,
            hits: HitPolicy::Access,
            integrity: Integrity::None,
        };
        config.path_tree()?.shape()?;
        Ok(config)
    }

    /// Levels of the position map in the tree; 0 if the whole map fits on the client. Public.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent.
    pub fn depth(&self) -> Result<usize, Error> {
        Ok(self.space()?.depth())
    }

    /// A Path ORAM tree for data and position map: see [`TreeConfig::path`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent or no tree fits.
    pub fn path_tree(&self) -> Result<TreeConfig, Error> {
        let mut tree = TreeConfig::path(self.space()?.blocks(), self.tree_block_bytes())?;
        tree.burst_accesses_max = self.burst_accesses_max()?;
        Ok(tree)
    }

    /// A RAW ORAM tree for data and position map: see [`RawConfig::new`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent or no tree fits.
    pub fn raw_tree(&self) -> Result<RawConfig, Error> {
        let mut config = RawConfig::new(self.space()?.blocks(), self.tree_block_bytes())?;
        config.tree.burst_accesses_max = self.burst_accesses_max()?;
        Ok(config)
    }

    /// Number of addresses that the tree needs: the blocks of all levels, with complete groups.
    /// Public.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent.
    pub fn tree_capacity(&self) -> Result<u64, Error> {
        Ok(self.space()?.blocks())
    }

    /// The tree addresses of the blocks of each level, starting with the data. Public.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent.
    pub fn level_addresses(&self) -> Result<Vec<Range<u64>>, Error> {
        let space = self.space()?;
        Ok((0..=space.depth()).map(|level| space.level_addresses(level)).collect())
    }

    /// Bytes of a block in the tree, including its integrity tag if it has one. Public.
    pub fn tree_block_bytes(&self) -> usize {
        self.block_bytes.saturating_add(self.integrity.bytes())
    }

    /// Maximum number of path accesses that one request can make (on each level of the map, one
    /// access and a group reset), but at least [`WINDOW_ACCESSES_MAX`]. The scheme's stash needs
    /// headroom for these accesses beyond its bound. Public.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent.
    pub fn burst_accesses_max(&self) -> Result<usize, Error> {
        // 1 for the data block. Without a PLB, the last position-map block returns to the stash at
        // the end of the request: 1 more.
        let accesses = self.space()?.depth() * self.fan_out as usize + 2;
        Ok(accesses.max(WINDOW_ACCESSES_MAX))
    }

    pub(super) fn counters(&self) -> CounterFormat {
        CounterFormat { counter_bits: self.counter_bits }
    }

    /// Checks the parameters that do not depend on the tree, and returns the address space.
    pub(super) fn space(&self) -> Result<AddressSpace, Error> {
        let invalid = |message: String| Err(Error::new(ErrorKind::InvalidConfig, message));
        if !(1..=COUNTER_BITS_MAX).contains(&self.counter_bits) {
            return invalid(format!(
                "counter_bits must be 1 to {COUNTER_BITS_MAX}, not {}",
                self.counter_bits
            ));
        }
        let fan_out_max = self.counters().fitting(self.block_bytes).min(FAN_OUT_MAX);
        if !(2..=fan_out_max).contains(&self.fan_out) {
            return invalid(format!(
                "the fan-out is {} but must be 2 to {fan_out_max} with counters of {} bits in \
                 blocks of {} bytes: use narrower counters or larger blocks",
                self.fan_out, self.counter_bits, self.block_bytes
            ));
        }
        if self.hits == HitPolicy::Serve && self.integrity.counts() {
            return invalid(
                "PMMAC cannot be combined with HitPolicy::Serve: a block served on the client \
                 would be sealed twice under the same count. Use HitPolicy::Access or \
                 Integrity::None"
                    .to_owned(),
            );
        }
        let ways_fit = match self.plb_blocks {
            0 => true,
            blocks => self.plb_ways != 0 && blocks.is_multiple_of(self.plb_ways),
        };
        if !ways_fit || self.plb_blocks > PLB_BLOCKS_MAX {
            return invalid(format!(
                "a PLB has 0 to {PLB_BLOCKS_MAX} blocks, in a multiple of its ways: {} blocks with \
                 {} ways do not work",
                self.plb_blocks, self.plb_ways
            ));
        }
        AddressSpace::new(self.capacity, self.fan_out, self.client_entries_max)
    }
}

impl FreecursiveConfig {
    /// The same parameters with another [`capacity`](Self::capacity).
    #[must_use]
    pub const fn with_capacity(self, capacity: u64) -> Self {
        Self { capacity, ..self }
    }

    /// The same parameters with another [`block_bytes`](Self::block_bytes).
    #[must_use]
    pub const fn with_block_bytes(self, block_bytes: usize) -> Self {
        Self { block_bytes, ..self }
    }

    /// The same parameters with another [`fan_out`](Self::fan_out).
    #[must_use]
    pub const fn with_fan_out(self, fan_out: u64) -> Self {
        Self { fan_out, ..self }
    }

    /// The same parameters with another [`counter_bits`](Self::counter_bits).
    #[must_use]
    pub const fn with_counter_bits(self, counter_bits: u32) -> Self {
        Self { counter_bits, ..self }
    }

    /// The same parameters with another [`client_entries_max`](Self::client_entries_max).
    #[must_use]
    pub const fn with_client_entries_max(self, client_entries_max: u64) -> Self {
        Self { client_entries_max, ..self }
    }

    /// The same parameters with another [`plb_blocks`](Self::plb_blocks).
    #[must_use]
    pub const fn with_plb_blocks(self, plb_blocks: usize) -> Self {
        Self { plb_blocks, ..self }
    }

    /// The same parameters with another [`plb_ways`](Self::plb_ways).
    #[must_use]
    pub const fn with_plb_ways(self, plb_ways: usize) -> Self {
        Self { plb_ways, ..self }
    }

    /// The same parameters with another [`hits`](Self::hits).
    #[must_use]
    pub const fn with_hits(self, hits: HitPolicy) -> Self {
        Self { hits, ..self }
    }

    /// The same parameters with another [`integrity`](Self::integrity).
    #[must_use]
    pub const fn with_integrity(self, integrity: Integrity) -> Self {
        Self { integrity, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_papers() {
        let config = FreecursiveConfig::new(1 << 20, 64).unwrap();
        assert_eq!((config.fan_out, config.counter_bits), (32, 14));
        // 2 PosMap ORAMs and less than 8 KiB: Tiny ORAM, section V-E.
        assert_eq!(config.depth().unwrap(), 2);
        for block_bytes in [16, 17, 100, 512, 4096, 1 << 20] {
            let config = FreecursiveConfig::new(5000, block_bytes).unwrap();
            assert!(config.fan_out << 9 <= 1 << config.counter_bits || block_bytes <= 64);
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let good = FreecursiveConfig::new(1000, 64).unwrap();
        let bad = [
            FreecursiveConfig { counter_bits: 0, ..good.clone() },
            FreecursiveConfig { counter_bits: 25, ..good.clone() },
            FreecursiveConfig { fan_out: 33, ..good.clone() },
            FreecursiveConfig { fan_out: 1, ..good.clone() },
            FreecursiveConfig { client_entries_max: 0, ..good.clone() },
            FreecursiveConfig { plb_ways: 0, ..good.clone() },
            FreecursiveConfig { plb_ways: 3, ..good.clone() },
            FreecursiveConfig { plb_blocks: usize::MAX, ..good.clone() },
            FreecursiveConfig { capacity: u64::MAX, ..good.clone() },
            FreecursiveConfig { block_bytes: 8, ..good.clone() },
            FreecursiveConfig {
                hits: HitPolicy::Serve,
                integrity: Integrity::Pmmac,
                ..good.clone()
            },
        ];
        for config in bad {
            let error = config.path_tree().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{config:?}");
        }
        assert!(FreecursiveConfig::new(0, 64).is_err());
    }
}
