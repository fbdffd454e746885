//! The bytes of the blocks on the client.

use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind};
use crate::memory::zeros;

/// Where the bytes of a block are in a [`BlockRoom`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    /// The place of no block.
    pub(crate) const NOWHERE: Self = Self(u32::MAX);
}

/// Room for a fixed number of blocks. Wiped when dropped.
pub(crate) struct BlockRoom {
    bytes: Zeroizing<Vec<u8>>,
    block_bytes: usize,
    free: Vec<Place>,
}

impl BlockRoom {
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when the system has no memory for it.
    pub(crate) fn new(blocks: usize, block_bytes: usize) -> Result<Self, Error> {
        let places = u32::try_from(blocks).ok().filter(|places| *places < Place::NOWHERE.0);
        let room = blocks.checked_mul(block_bytes).and_then(|bytes| zeros(bytes as u64));
        let (Some(places), Some(bytes)) = (places, room) else {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "no memory for a client of {blocks} blocks of {block_bytes} bytes: lower the \
                     stash bound or the tree top"
                ),
            ));
        };
        Ok(Self {
            bytes: Zeroizing::new(bytes),
            block_bytes,
            free: (0..places).rev().map(Place).collect(),
        })
    }

    /// A free place. Its bytes are whatever a block left there.
    ///
    /// # Panics
    /// When there is none: whoever sizes the room counts what can be on the client at once.
    #[inline]
    pub(crate) fn take(&mut self) -> Place {
        self.free.pop().expect("the block room was sized for all blocks a client can hold")
    }

    #[inline]
    pub(crate) fn give_back(&mut self, place: Place) {
        self.free.push(place);
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
