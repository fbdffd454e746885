//! The position map on the client: for each block, its position and the number of its last write.

use std::ops::Range;

use oblivio_core::durable::SparseAddressSet;
use oblivio_core::seal::BlockName;
use oblivio_core::{BucketId, Error, Leaf};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::client_state::{AccessStep, overflow};
use super::impossible;
use super::load::LoadError;
use super::params::S3OramParams;
use super::sections::Entry;
use crate::client::{Client, EvictionPlan};
use crate::field::Gf256;
use crate::map_trees::map_block::Mapped;
use crate::message::Slots;
use crate::sharing::Share;

/// The positions and versions of all blocks, and the planned next eviction. Secret; wiped when
/// dropped.
pub(super) struct ClientMap {
    /// The client of the tree, which knows the positions.
    pub(super) client: Client<Gf256>,
    /// For each block, the number of its last write, shifted left by one. The lowest bit is set if
    /// the block has contents.
    versions: Zeroizing<Vec<u64>>,
    /// The planned next eviction, until all servers have made it.
    pub(super) next: Option<EvictionPlan<u8>>,
}

impl ClientMap {
    /// Bytes of a block's last write number, with the bit that tells whether the block has
    /// contents.
    pub(super) const NUMBER_BYTES: usize = size_of::<u64>();

    /// The write number of initially loaded blocks. No access has this number, because loading
    /// counts as having made evictions, and accesses are numbered after them.
    const LOADED: u64 = 0;

    /// Creates the map of an array in which no block has been written.
    pub(super) fn new(params: &S3OramParams) -> Result<Self, Error> {
        let blocks = params.blocks as usize;
        let client = Client::new(params.parties, params.tree, blocks, params.slot_bytes());
        let client = client.map_err(|error| impossible(error.to_string()))?;
        Ok(Self { client, versions: Zeroizing::new(vec![0; blocks]), next: None })
    }

    pub(super) fn blocks(&self) -> u64 {
        self.versions.len() as u64
    }

    /// Loads all initial blocks, as [`Client::load`] does. `block` seals each block under its name.
    pub(super) fn load(
        &mut self,
        at_once: usize,
        coins: &mut dyn CryptoRng,
        mut block: impl FnMut(BlockName, &mut [u8]) -> Result<bool, LoadError>,
        send: impl FnMut(Slots, Vec<Share<u8>>) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let Self { client, versions, .. } = self;
        let block = |at: usize, slot: &mut [u8]| {
            let is_some = block(BlockName { address: at as u64, number: Self::LOADED }, slot)?;
            versions[at] = Self::LOADED << 1 | u64::from(is_some);
            Ok(is_some)
        };
        client.load(at_once, coins, block, send)
    }

    /// The leaf that a block is mapped to; `None` if it has no position.
    pub(super) fn leaf(&self, address: u64) -> Option<Leaf> {
        self.client.positions().get(address as usize).map(|position| position.leaf)
    }

    /// The leaf of a block and the number of its last write; `None` if it has no position.
    pub(super) fn mapped(&self, address: u64) -> Option<Mapped> {
        let write = self.versions[address as usize] >> 1;
        self.leaf(address).map(|leaf| Mapped { leaf, write })
    }

    /// For each occupied slot, its bucket, its index and the address of its block, sorted by bucket
    /// and slot.
    pub(super) fn occupied_slots(&self) -> Zeroizing<Vec<[u64; 3]>> {
        let mut places = Zeroizing::new(Vec::with_capacity(self.versions.len()));
        for address in 0..self.blocks() {
            if let Some(position) = self.client.positions().get(address as usize) {
                let bucket = BucketId::on_path(position.leaf, position.level);
                places.push([bucket.0, position.slot as u64, address]);
            }
        }
        places.sort_unstable();
        places
    }

    /// Whether a block has contents.
    pub(super) fn is_live(&self, address: u64) -> bool {
        self.versions[address as usize] & 1 == 1
    }

    /// The set of blocks that have contents.
    pub(super) fn live(&self) -> SparseAddressSet {
        let mut live = SparseAddressSet::new(self.blocks());
        let addresses = (0..self.blocks()).filter(|address| self.is_live(*address));
        addresses.for_each(|address| live.insert(address));
        live
    }

    pub(super) fn is_any_live(&self) -> bool {
        self.versions.iter().any(|version| version & 1 == 1)
    }

    /// Records that a block or a dummy was written to the root. `is_written` tells whether the
    /// access wrote data to the block.
    pub(super) fn write(&mut self, step: &AccessStep, number: u64, is_written: bool) {
        if let Some(address) = step.address {
            let version = &mut self.versions[address as usize];
            *version = number << 1 | u64::from(is_written) | *version & 1;
        }
        self.client.record_write(step.address.map(|address| address as usize), step.draws[0].to);
    }

    /// Plans the next eviction. Planning is slow, so all attempts at the eviction use the same
    /// plan.
    pub(super) fn plan_eviction(&mut self) -> Result<(), Error> {
        self.next = Some(self.client.next_eviction().map_err(overflow)?);
        Ok(())
    }

    /// Records that the next path was evicted.
    pub(super) fn evict(&mut self) -> Result<(), Error> {
        if self.next.is_none() {
            self.plan_eviction()?;
        }
        self.next.take().into_iter().for_each(|next| self.client.record_eviction(next));
        Ok(())
    }

    /// Removes the positions and contents of a range of blocks. A later eviction empties their
    /// slots.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        for address in range {
            self.versions[address as usize] = 0;
            self.client.positions_mut().remove(address as usize);
        }
    }

    /// The encoded position and last write of a block, for a saved state.
    pub(super) fn entry(&self, address: u64) -> Entry {
        [self.client.positions().entry(address as usize), self.versions[address as usize]]
    }

    /// Restores an encoded entry. Returns whether the block exists and the position is valid.
    #[must_use]
    pub(super) fn set_entry(&mut self, address: u64, [position, version]: Entry) -> bool {
        let Some(known) = self.versions.get_mut(address as usize) else { return false };
        *known = version;
        self.client.positions_mut().set_entry(address as usize, position)
    }
}
