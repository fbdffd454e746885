//! The saved client state of rotating RAW ORAM: the blocks on the client, and the marks of slots
//! whose blocks were taken out.

use super::super::TreeConfig;
use super::super::client::Client;
use super::{TakenSlot, TakenSlots, VersionedTree, invalid};
use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::posmap::LivePosMap;
use crate::store::BucketStore;

/// The location of a block on the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientLocation {
    /// The stash.
    Stash,
    /// A bucket of the tree top.
    TreeTop(BucketId),
    /// The position-map blocks of a front end.
    Frontend,
}

impl<S: BucketStore> VersionedTree<S> {
    /// Drops every block on the client that is not live in `map`, or has another leaf there.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen).
    pub(crate) fn drop_dead(&mut self, map: &LivePosMap) -> Result<(), Error> {
        self.client.check_not_broken()?;
        self.client.retain(|entry| map.is_live_at(entry.address, entry.leaf));
        Ok(())
    }

    /// Every block in the stash and the tree top with its location, address, leaf and bytes, for
    /// [`restore_client_block`](crate::DurableRawOram::restore_client_block). Secret.
    pub fn client_blocks(&self) -> impl Iterator<Item = (ClientLocation, u64, Leaf, &[u8])> {
        let Client { stash, top, blocks, .. } = &self.client;
        let in_stash = stash.entries().iter().map(|entry| (ClientLocation::Stash, entry));
        let in_top = top.blocks().map(|(bucket, entry)| (ClientLocation::TreeTop(bucket), entry));
        in_stash
            .chain(in_top)
            .map(|(location, entry)| (location, entry.address, entry.leaf, blocks.get(entry.place)))
    }

    /// Restores a block to the location that [`Self::client_blocks`] returned.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if the block cannot have
    /// been there.
    pub(crate) fn restore_client_block(
        &mut self,
        location: ClientLocation,
        address: u64,
        leaf: Leaf,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let TreeConfig { capacity, block_bytes, geometry, .. } = &self.client.config;
        let fits =
            address < *capacity && bytes.len() == *block_bytes && geometry.contains_leaf(leaf);
        if fits && self.client.restore_client_block(location, address, leaf, bytes) {
            Ok(())
        } else {
            Err(invalid("the state has a block that cannot have been on this client"))
        }
    }

    /// The slots whose marks are on the client. Empty if slots are not marked. Secret.
    pub fn taken_slots(&self) -> impl Iterator<Item = TakenSlot> + '_ {
        self.taken.iter().flat_map(TakenSlots::marks)
    }

    /// Restores the mark of a taken slot that [`Self::taken_slots`] returned.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if the slot cannot have been
    /// marked.
    pub fn restore_taken_slot(&mut self, slot: TakenSlot) -> Result<(), Error> {
        let geometry = &self.client.config.geometry;
        if self.taken.as_mut().is_some_and(|taken| taken.restore_mark(slot, geometry)) {
            Ok(())
        } else {
            Err(invalid("the state has a taken slot that cannot be in this store"))
        }
    }
}
