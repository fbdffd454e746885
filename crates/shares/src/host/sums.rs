//! Checksums of slots, stored after the slots of each file. A slot has a CRC-32 for each *piece*,
//! which is the part of a slot that an eviction reads at once.
//!
//! A dealer verifies everything that it reads in an eviction, because the shares it deals become
//! part of the secret on all servers. Accesses and repairs do not verify checksums: the client
//! detects wrong shares itself, and needs the data that is still right. The server never computes a
//! new checksum for unverified bytes (ADR 18 in the repository).
//!
//! The stored value is the difference from the checksum of zeros, so unwritten parts of a sparse
//! file are valid.

use crc32fast::Hasher;

use super::evict::part_bytes;
use super::record::sum;
use crate::message::Setup;

/// Bytes of a checksum.
pub(super) const SUM_BYTES: usize = 4;

/// A stored checksum, in little-endian order.
pub(super) type Sum = [u8; SUM_BYTES];

/// How each slot of a tree is divided into pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces {
    block_bytes: usize,
    piece_bytes: usize,
    /// The checksums of two pieces of zeros: one of the usual length, and one of the length of the
    /// last piece of a slot.
    sums_of_zeros: [u32; 2],
}

/// The order of the checksums of a bucket: the distance, in checksums, from one slot to the next,
/// and from one piece to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct SumOrder {
    slot_step: usize,
    piece_step: usize,
}

impl SumOrder {
    /// The order by slot, for the root: a write to the root writes one slot.
    pub(super) fn by_slot(pieces: Pieces) -> Self {
        Self { slot_step: pieces.count(), piece_step: 1 }
    }

    /// The order by piece: an eviction processes a piece of all slots.
    pub(super) fn by_piece(slots: usize) -> Self {
        Self { slot_step: 1, piece_step: slots }
    }

    /// The index of a piece's checksum in the bucket.
    pub(super) fn index(self, slot: usize, piece: usize) -> usize {
        slot * self.slot_step + piece * self.piece_step
    }

    pub(super) fn is_by_slot(self) -> bool {
        self.piece_step == 1
    }
}

impl Pieces {
    pub(super) fn new(setup: &Setup) -> Self {
        let block_bytes = setup.block_bytes;
        let piece_bytes = part_bytes(block_bytes, setup.tree.slots());
        let zeros = vec![0; piece_bytes];
        let last = (block_bytes - 1) % piece_bytes + 1;
        let sums_of_zeros = [sum(&zeros), sum(&zeros[..last])];
        Self { block_bytes, piece_bytes, sums_of_zeros }
    }

    /// The number of pieces of a slot.
    pub(super) fn count(self) -> usize {
        self.block_bytes.div_ceil(self.piece_bytes)
    }

    /// The index of the piece that begins at byte `first` of a slot.
    pub(super) fn number(self, first: usize) -> usize {
        first / self.piece_bytes
    }

    /// Bytes of the checksums of `slots` slots.
    pub(super) fn sums_bytes(self, slots: u64) -> u64 {
        slots * (self.count() * SUM_BYTES) as u64
    }

    /// The checksums to store for the pieces of a slot.
    pub(super) fn sums_of_slot(self, slot: &[u8]) -> impl Iterator<Item = u32> {
        slot.chunks(self.piece_bytes).map(move |piece| self.sum_of(piece))
    }

    /// The checksum to store for a piece.
    pub(super) fn sum_of(self, piece: &[u8]) -> u32 {
        sum(piece) ^ self.sum_of_zeros(piece.len())
    }

    /// The checksum of a whole slot, computed from the stored checksums `stored` of its pieces.
    pub(super) fn sum_of_slot(self, stored: &[Sum]) -> u32 {
        let mut whole = Hasher::new();
        for (piece, stored) in stored.iter().enumerate() {
            let bytes = self.piece_bytes.min(self.block_bytes - piece * self.piece_bytes);
            let sum = u32::from_le_bytes(*stored) ^ self.sum_of_zeros(bytes);
            whole.combine(&Hasher::new_with_initial_len(sum, bytes as u64));
        }
        whole.finalize()
    }

    /// The checksum of a piece of `bytes` zeros.
    fn sum_of_zeros(self, bytes: usize) -> u32 {
        let [of_zeros, of_last_zeros] = self.sums_of_zeros;
        if bytes == self.piece_bytes { of_zeros } else { of_last_zeros }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharing::Parties;
    use crate::tree::{Preset, Tree};

    #[test]
    fn the_checksum_of_a_slot_follows_from_its_pieces() {
        let (parties, slots) = (Parties::new(3, 1).unwrap(), 128);
        let tree = Tree::new(1, Preset { slots, accesses: 4 }).unwrap();
        for block_bytes in [700, 4096, 8192, 9_000] {
            let (number, metadata_bytes, keys) = (1, 0, Vec::new());
            let setup = Setup { number, parties, tree, block_bytes, metadata_bytes, keys };
            let pieces = Pieces::new(&setup);
            let slot: Vec<_> = (0..block_bytes).map(|i| (i * i % 251) as u8).collect();
            for slot in [slot, vec![0; block_bytes]] {
                let stored: Vec<_> = pieces.sums_of_slot(&slot).map(u32::to_le_bytes).collect();
                assert_eq!(stored.len(), block_bytes.div_ceil(4096));
                assert_eq!(pieces.sum_of_slot(&stored), sum(&slot));
            }
        }
    }
}
