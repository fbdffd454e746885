//! The blocks on the client. Each is stored once, even if several sub-ORAMs await it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::params::RangeParams;
use crate::error::Error;
use crate::stash::{ArenaSlot, BlockArena};

/// The blocks on the client, and the slots of their latest contents in the client's arena. Secret.
#[derive(Default)]
pub(super) struct ClientBlocks(BTreeMap<u64, ClientBlock>);

/// A block on the client.
#[derive(Clone, Copy)]
struct ClientBlock {
    place: ArenaSlot,
    /// The sub-ORAMs that await the block: bit `t` is set if it waits for an eviction to sub-ORAM
    /// `t`.
    awaited_by: u32,
}

/// Memory for all blocks that a client can hold, and for the blocks in transit: those of a batch of
/// evictions, or of a whole path.
pub(super) fn new_arena(params: &RangeParams) -> Result<BlockArena, Error> {
    let in_batch = params.evictions_max() * params.path_blocks();
    let whole_path = u64::from(params.slots) * (u64::from(params.leaf_level) + 1);
    let in_transit = in_batch.max(whole_path);
    BlockArena::new(params.room_blocks() as usize, in_transit as usize, params.block_bytes as usize)
}

impl ClientBlocks {
    /// The arena slot that holds a block, if the block is on the client.
    pub(super) fn place(&self, address: u64) -> Option<ArenaSlot> {
        self.0.get(&address).map(|held| held.place)
    }

    /// Whether a block waits for an eviction to sub-ORAM `at`.
    pub(super) fn is_awaited_by(&self, address: u64, at: usize) -> bool {
        self.0.get(&address).is_some_and(|held| held.awaited_by >> at & 1 == 1)
    }

    /// Adds a block whose contents are in the permanent arena slot `place`. No sub-ORAM awaits it
    /// yet.
    pub(super) fn hold(&mut self, address: u64, place: ArenaSlot) {
        self.0.insert(address, ClientBlock { place, awaited_by: 0 });
    }

    /// Marks that a block on the client waits for an eviction to sub-ORAM `at`.
    pub(super) fn set_awaited(&mut self, address: u64, at: usize) {
        if let Some(held) = self.0.get_mut(&address) {
            held.awaited_by |= 1 << at;
        }
    }

    /// Marks that a block no longer waits for sub-ORAM `at`. Drops the block from the client if it
    /// waits for no other sub-ORAM.
    pub(super) fn set_evicted(&mut self, address: u64, at: usize, arena: &mut BlockArena) {
        let Some(held) = self.0.get_mut(&address) else { return };
        held.awaited_by &= !(1 << at);
        if held.awaited_by == 0 {
            self.drop_block(address, arena);
        }
    }

    /// Drops a block from the client.
    pub(super) fn drop_block(&mut self, address: u64, arena: &mut BlockArena) {
        if let Some(held) = self.0.remove(&address) {
            arena.free(held.place);
        }
    }

    /// Number of blocks on the client.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The addresses in a range whose blocks are on the client.
    pub(super) fn within(&self, range: Range<u64>) -> Vec<u64> {
        self.0.range(range).map(|(address, _)| *address).collect()
    }

    /// All blocks, each with its address, its slot in the arena, and a mask of the sub-ORAMs that
    /// await it.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, ArenaSlot, u32)> {
        self.0.iter().map(|(address, held)| (*address, held.place, held.awaited_by))
    }
}
