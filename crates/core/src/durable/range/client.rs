//! The blocks on the client, each once, whatever sub-ORAMs they wait for.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::params::RangeParams;
use crate::error::Error;
use crate::stash::{BlockRoom, Place};

/// Which blocks are on the client, and where in its room: the latest contents of each. Secret.
#[derive(Default)]
pub(super) struct HeldBlocks(BTreeMap<u64, Held>);

/// A block on the client.
#[derive(Clone, Copy)]
struct Held {
    place: Place,
    /// Bit `t`: it waits for an eviction to sub-ORAM `t`.
    awaited_by: u32,
}

/// Room for all that a client can hold, and for what a batch of evictions reads.
pub(super) fn room(params: &RangeParams) -> Result<BlockRoom, Error> {
    let in_batch = params.evictions_max() * params.path_blocks();
    let whole_path = u64::from(params.slots) * (u64::from(params.leaf_level) + 1);
    let in_transit = in_batch.max(whole_path);
    BlockRoom::new(params.room_blocks() as usize, in_transit as usize, params.block_bytes as usize)
}

impl HeldBlocks {
    /// Where a block is, if it is on the client.
    pub(super) fn place(&self, address: u64) -> Option<Place> {
        self.0.get(&address).map(|held| held.place)
    }

    /// Whether a block waits for an eviction to sub-ORAM `at`.
    pub(super) fn is_awaited_by(&self, address: u64, at: usize) -> bool {
        self.0.get(&address).is_some_and(|held| held.awaited_by >> at & 1 == 1)
    }

    /// A block that is not on the client is at this lasting place of the room.
    pub(super) fn hold(&mut self, address: u64, place: Place) {
        self.0.insert(address, Held { place, awaited_by: 0 });
    }

    /// A block on the client waits for an eviction to sub-ORAM `at`.
    pub(super) fn set_awaited(&mut self, address: u64, at: usize) {
        if let Some(held) = self.0.get_mut(&address) {
            held.awaited_by |= 1 << at;
        }
    }

    /// It does not any more. If it waits for none, it leaves the client.
    pub(super) fn set_evicted(&mut self, address: u64, at: usize, room: &mut BlockRoom) {
        let Some(held) = self.0.get_mut(&address) else { return };
        held.awaited_by &= !(1 << at);
        if held.awaited_by == 0 {
            self.drop_block(address, room);
        }
    }

    /// A block leaves the client.
    pub(super) fn drop_block(&mut self, address: u64, room: &mut BlockRoom) {
        if let Some(held) = self.0.remove(&address) {
            room.give_back(held.place);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The blocks of a range that are on the client.
    pub(super) fn within(&self, range: Range<u64>) -> Vec<u64> {
        self.0.range(range).map(|(address, _)| *address).collect()
    }

    /// All of them: address, place, and for which sub-ORAMs they wait.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, Place, u32)> {
        self.0.iter().map(|(address, held)| (*address, held.place, held.awaited_by))
    }
}
