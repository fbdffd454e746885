//! The memory for the bytes of blocks on the client.
//!
//! ```text
//! ┌──────────────────────────┬────────────────────────────┬──────┐
//! │ stash and tree top       │ in transit: slots of a path│ zeros│
//! └──────────────────────────┴────────────────────────────┴──────┘
//! ```
//!
//! A path is opened slot by slot, including dummies, into the transit area ("transient storage" in
//! Tiny ORAM, Table I). Most of its blocks are sealed from there again without being copied.

use alloc::format;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::memory::zeros;
use crate::wiped::SparseWipedBytes;

/// The location of a block's bytes in a [`BlockArena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArenaSlot(u32);

/// Memory for a fixed number of blocks. Wiped when dropped. If blocks have no bytes, they need no
/// memory, and all of them can use the same place.
pub(crate) struct BlockArena {
    bytes: SparseWipedBytes,
    block_bytes: usize,
    /// The first place of the transit area. All places below it are permanent.
    first_in_transit: u32,
    /// A list whose first `free_count` places are the free permanent places.
    free: Vec<ArenaSlot>,
    free_count: usize,
    zero: ArenaSlot,
}

impl BlockArena {
    /// Allocates the memory for the given numbers of blocks.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the system has no memory for it.
    pub(crate) fn new(
        permanent: usize,
        in_transit: usize,
        block_bytes: usize,
    ) -> Result<Self, Error> {
        let blocks = permanent + in_transit + 1;
        let bytes = blocks.checked_mul(block_bytes).and_then(zeros);
        let (Ok(zero), Some(bytes)) = (u32::try_from(blocks - 1), bytes) else {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "no memory for a client of {blocks} blocks of {block_bytes} bytes: lower the \
                     stash bound or the number of tree-top levels"
                ),
            ));
        };
        Ok(Self {
            bytes: bytes.into(),
            block_bytes,
            first_in_transit: permanent as u32,
            free: (0..permanent as u32).rev().map(ArenaSlot).collect(),
            free_count: permanent,
            zero: ArenaSlot(zero),
        })
    }

    /// The place of a block of zeros, the contents of a dummy.
    pub(crate) fn zero(&self) -> ArenaSlot {
        self.zero
    }

    /// The place in transit of slot `slot` of a path, whose slots are numbered from the root down.
    #[inline]
    pub(crate) fn in_transit(&self, slot: usize) -> ArenaSlot {
        ArenaSlot(self.first_in_transit + slot as u32)
    }

    /// The bytes of `slots` consecutive slots of a path, starting with slot number `slot`. They are
    /// adjacent in the transit area.
    #[inline]
    pub(crate) fn row_in_transit(&mut self, slot: usize, slots: usize) -> &mut [u8] {
        let first = self.in_transit(slot).0 as usize;
        &mut self.bytes[first * self.block_bytes..][..slots * self.block_bytes]
    }

    /// Takes a free permanent place. It may still hold the bytes of an earlier block.
    ///
    /// # Panics
    /// If no place is free. The caller of [`Self::new`] must count every block that can be on the
    /// client at once.
    #[inline]
    pub(crate) fn take(&mut self) -> ArenaSlot {
        if self.block_bytes == 0 {
            return self.zero;
        }
        self.free_count = self
            .free_count
            .checked_sub(1)
            .expect("the memory was sized for every block a client can hold");
        self.free[self.free_count]
    }

    /// Frees a place if it is permanent; otherwise does nothing. No branch depends on whether it is
    /// permanent.
    #[inline]
    pub(crate) fn free(&mut self, place: ArenaSlot) {
        if self.block_bytes == 0 {
            return;
        }
        if let Some(entry) = self.free.get_mut(self.free_count) {
            *entry = place;
            self.free_count += usize::from(place.0 < self.first_in_transit);
        }
    }

    /// Returns a permanent place for a block. A block in transit is moved to a new place.
    #[inline]
    pub(crate) fn make_permanent(&mut self, place: ArenaSlot) -> ArenaSlot {
        if self.block_bytes == 0 || place.0 < self.first_in_transit {
            return place;
        }
        let permanent = self.take();
        let (start, end) =
            (place.0 as usize * self.block_bytes, permanent.0 as usize * self.block_bytes);
        self.bytes.copy_within(start..start + self.block_bytes, end);
        permanent
    }

    #[inline]
    pub(crate) fn get(&self, place: ArenaSlot) -> &[u8] {
        &self.bytes[place.0 as usize * self.block_bytes..][..self.block_bytes]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: ArenaSlot) -> &mut [u8] {
        &mut self.bytes[place.0 as usize * self.block_bytes..][..self.block_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_in_transit_is_its_slots_one_after_the_other() {
        let mut room = BlockArena::new(3, 9, 16).unwrap();
        for slot in 0..9 {
            let place = room.in_transit(slot);
            room.get_mut(place).fill(slot as u8);
        }
        for (first, slots) in
            (0..9).flat_map(|first| (0..=9 - first).map(move |slots| (first, slots)))
        {
            let expected: Vec<u8> =
                (first..first + slots).flat_map(|slot| [slot as u8; 16]).collect();
            assert_eq!(room.row_in_transit(first, slots), expected);
        }
    }
}
