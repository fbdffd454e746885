//! The origin and destination of the blocks of each path that is written back (IR-ORAM, section
//! III-C).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Slot, TagTree};
use crate::geometry::Leaf;
use crate::stash::PathPlan;

/// The move of a block when a path is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMove {
    /// The location of the block before the path was read.
    pub from: Origin,
    /// The level of the bucket into which the block was written. `None` if the block is in the
    /// stash, or was taken out of the ORAM.
    pub to: Option<u8>,
}

/// The location of a block before a path was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The stash: a *pre-existing* block. Blocks that stay in the stash are not reported.
    Stash,
    /// The bucket of this level of the path.
    Level(u8),
    /// Any location: the block is the requested one, and has another leaf now.
    Requested,
}

/// Reports the move of each block, and marks the move of the requested block.
pub(super) struct MoveReporter {
    /// The address of the requested block.
    pub(super) requested: u64,
    report: Box<dyn FnMut(BlockMove)>,
    /// The blocks that a path held when it was read, each with its level.
    held: Vec<(u64, u8)>,
}

impl MoveReporter {
    pub(super) fn new(report: Box<dyn FnMut(BlockMove)>) -> Self {
        Self { requested: crate::stash::Entry::DUMMY_ADDRESS, report, held: Vec::new() }
    }

    fn report(&mut self, address: u64, origin: Origin, to: Option<u8>) {
        let from = if address == self.requested { Origin::Requested } else { origin };
        (self.report)(BlockMove { from, to });
    }
}

impl TagTree {
    /// Sets the callback for each block of a path that is written back, and for each block that is
    /// put into such a path.
    pub(in crate::scheme) fn observe_moves(&mut self, report: Box<dyn FnMut(BlockMove)>) {
        self.moves = Some(MoveReporter::new(report));
    }

    /// Reports the moves of the blocks of the path to `leaf`. The tree must still hold the blocks
    /// that were read from this path.
    #[cold]
    pub(super) fn report_moves(&mut self, leaf: Leaf, plan: &PathPlan) {
        let Some(mut moves) = self.moves.take() else { return };
        moves.held.clear();
        for level in self.first_level..=self.geometry.leaf_level() {
            let slots: &[Slot] = self.slots_of(leaf, level.into());
            let blocks = slots.iter().filter_map(|slot| self.unpack(*slot));
            moves.held.extend(blocks.map(|(address, _)| (address, level)));
        }
        for level in self.first_level..=self.geometry.leaf_level() {
            for entry in plan.blocks(level.into()) {
                let held = moves.held.iter().position(|(address, _)| *address == entry.address);
                let from = held.map(|place| moves.held.swap_remove(place).1);
                moves.report(entry.address, from.map_or(Origin::Stash, Origin::Level), Some(level));
            }
        }
        while let Some((address, level)) = moves.held.pop() {
            moves.report(address, Origin::Level(level), None);
        }
        self.moves = Some(moves);
    }
}
