//! The bytes of the blocks on the client.
//!
//! ```text
//! ┌──────────────────────────┬────────────────────────────┬──────┐
//! │ stash and tree top       │ in transit: slots of a path│ zeros│
//! └──────────────────────────┴────────────────────────────┴──────┘
//! ```
//!
//! A path is opened slot by slot into the transit area ("transient storage" in Tiny ORAM, Table I),
//! whatever the slots hold, and most of its blocks are sealed from there again without having moved.

use alloc::format;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::memory::zeros;
use crate::wiped::SparseWipedBytes;

/// Where the bytes of a block are in a [`BlockRoom`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// Room for a fixed number of blocks. Wiped when dropped. Blocks without bytes need none: any place is theirs.
pub(crate) struct BlockRoom {
    bytes: SparseWipedBytes,
    block_bytes: usize,
    /// Places below are lasting, those from here on are in transit.
    first_in_transit: u32,
    /// The free lasting places are the first `free_count` of this list.
    free: Vec<Place>,
    free_count: usize,
    zero: Place,
}

impl BlockRoom {
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when the system has no memory for it.
    pub(crate) fn new(
        lasting: usize,
        in_transit: usize,
        block_bytes: usize,
    ) -> Result<Self, Error> {
        let blocks = lasting + in_transit + 1;
        let bytes = blocks.checked_mul(block_bytes).and_then(zeros);
        let (Ok(zero), Some(bytes)) = (u32::try_from(blocks - 1), bytes) else {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "no memory for a client of {blocks} blocks of {block_bytes} bytes: lower the \
                     stash bound or the tree top"
                ),
            ));
        };
        Ok(Self {
            bytes: bytes.into(),
            block_bytes,
            first_in_transit: lasting as u32,
            free: (0..lasting as u32).rev().map(Place).collect(),
            free_count: lasting,
            zero: Place(zero),
        })
    }

    /// The place of a block of zeros: what a dummy holds.
    pub(crate) fn zero(&self) -> Place {
        self.zero
    }

    /// The place of slot `slot` of a path in one row.
    #[inline]
    pub(crate) fn in_transit(&self, slot: usize) -> Place {
        Place(self.first_in_transit + slot as u32)
    }

    /// The bytes of `slots` slots of a path from `slot` on: in transit they lie side by side.
    #[inline]
    pub(crate) fn row_in_transit(&mut self, slot: usize, slots: usize) -> &mut [u8] {
        let first = self.in_transit(slot).0 as usize;
        &mut self.bytes[first * self.block_bytes..][..slots * self.block_bytes]
    }

    /// A free lasting place. Its bytes are whatever a block left there.
    ///
    /// # Panics
    /// When there is none: whoever sizes the room counts what can be on the client at once.
    #[inline]
    pub(crate) fn take(&mut self) -> Place {
        if self.block_bytes == 0 {
            return self.zero;
        }
        self.free_count =
            self.free_count.checked_sub(1).expect("the room was sized for all a client can hold");
        self.free[self.free_count]
    }

    /// Frees a place, if it is a lasting one. No branch depends on which.
    #[inline]
    pub(crate) fn give_back(&mut self, place: Place) {
        if self.block_bytes == 0 {
            return;
        }
        if let Some(entry) = self.free.get_mut(self.free_count) {
            *entry = place;
            self.free_count += usize::from(place.0 < self.first_in_transit);
        }
    }

    /// A lasting place for a block: its own, or one it moves to out of transit.
    #[inline]
    pub(crate) fn settle(&mut self, place: Place) -> Place {
        if self.block_bytes == 0 || place.0 < self.first_in_transit {
            return place;
        }
        let lasting = self.take();
        let (start, end) =
            (place.0 as usize * self.block_bytes, lasting.0 as usize * self.block_bytes);
        self.bytes.copy_within(start..start + self.block_bytes, end);
        lasting
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> &[u8] {
        &self.bytes[place.0 as usize * self.block_bytes..][..self.block_bytes]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: Place) -> &mut [u8] {
        &mut self.bytes[place.0 as usize * self.block_bytes..][..self.block_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_in_transit_is_its_slots_one_after_the_other() {
        let mut room = BlockRoom::new(3, 9, 16).unwrap();
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
