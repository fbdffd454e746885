//! What the client knows: where each block is, and which write was its last. All of it changes with the plans of accesses alone.

use std::ops::Range;
use zeroize::Zeroize;

use oblivio_core::durable::Bits;
use oblivio_core::durable::section::strange;
use oblivio_core::seal::BlockName;
use oblivio_core::{Error, Leaf};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::impossible;
use super::load::Failed;
use super::params::S3OramParams;
use super::sections::Entry;
use crate::client::{Client, ClientError};
use crate::field::Gf256;
use crate::message::{Point, Slots};
use crate::sharing::Share;

/// The address of what is no block.
pub(super) const NOTHING: u64 = u64::MAX;

/// An access, as it was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Secret.
    pub(super) address: Option<u64>,
    /// Whose path is shown.
    pub(super) from: Leaf,
    /// To whose path the block goes. Secret, until it is accessed again.
    pub(super) to: Leaf,
    /// What the shares of its write follow from, beside the block: they are the same if it is done again, and others if another access is in its place. Secret.
    pub(super) salt: [u8; SALT_BYTES],
}

impl Zeroize for Step {
    fn zeroize(&mut self) {
        let Self { address, from: Leaf(from), to: Leaf(to), salt } = self;
        address.zeroize();
        [from, to].into_iter().for_each(Zeroize::zeroize);
        salt.zeroize();
    }
}

/// Bytes of the salt of a step.
pub(super) const SALT_BYTES: usize = 32;

/// What the client knows. Secret; wiped when dropped.
pub(super) struct Known {
    /// Where blocks are, and how far servers are.
    pub(super) client: Client<Gf256>,
    /// Of each block, the number of its last write, and in the lowest bit whether it has contents.
    versions: Zeroizing<Vec<u64>>,
    evict_period: u64,
}

impl Known {
    /// Bytes that are kept of the last write of a block.
    pub(super) const NUMBER_BYTES: usize = size_of::<u64>();

    /// The number of blocks that were there from the beginning: no access has it, because evictions are taken for done then.
    const LOADED: u64 = 0;

    /// Of an array that is empty.
    pub(super) fn new(params: &S3OramParams) -> Result<Self, Error> {
        let blocks = params.blocks as usize;
        let client = Client::new(params.parties, params.tree, blocks, params.slot_bytes());
        let client = client.map_err(|error| impossible(error.to_string()))?;
        let versions = Zeroizing::new(vec![0; blocks]);
        Ok(Self { client, versions, evict_period: params.evict_period() })
    }

    pub(super) fn blocks(&self) -> u64 {
        self.versions.len() as u64
    }

    /// Maps all blocks that are there from the beginning, as [`Client::load`]. `block` seals each of them as it is named.
    pub(super) fn load(
        &mut self,
        at_once: usize,
        coins: &mut dyn CryptoRng,
        mut block: impl FnMut(BlockName, &mut [u8]) -> Result<bool, Failed>,
        send: impl FnMut(Slots, Vec<Share<u8>>) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let Self { client, versions, .. } = self;
        let block = |at: usize, slot: &mut [u8]| {
            let is_some = block(BlockName { address: at as u64, number: Self::LOADED }, slot)?;
            versions[at] = Self::LOADED << 1 | u64::from(is_some);
            Ok(is_some)
        };
        client.load(at_once, coins, block, send)
    }

    /// How many accesses there were. Public.
    pub(super) fn accesses(&self) -> u64 {
        let Point { evictions, written } = self.client.at();
        evictions * self.evict_period + written as u64
    }

    /// How far servers are after so many accesses.
    pub(super) fn point_after(&self, accesses: u64) -> Point {
        let written = (accesses % self.evict_period) as usize;
        Point { evictions: accesses / self.evict_period, written }
    }

    /// The leaf that a block is mapped to; none if it is nowhere.
    pub(super) fn leaf(&self, address: u64) -> Option<Leaf> {
        self.client.positions().get(address as usize).map(|position| position.leaf)
    }

    /// Under which name the block is sealed that has to be found; none if nothing but zeros has.
    pub(super) fn name(&self, address: Option<u64>) -> Option<BlockName> {
        let address = address.filter(|address| self.leaf(*address).is_some())?;
        Some(BlockName { address, number: self.number(address) })
    }

    /// The number of the last write of a block.
    pub(super) fn number(&self, address: u64) -> u64 {
        self.versions[address as usize] >> 1
    }

    /// Whether a block has contents.
    pub(super) fn is_live(&self, address: u64) -> bool {
        self.versions[address as usize] & 1 == 1
    }

    /// All blocks that have contents.
    pub(super) fn live(&self) -> Bits {
        let mut live = Bits::new(self.blocks());
        let addresses = (0..self.blocks()).filter(|address| self.is_live(*address));
        addresses.for_each(|address| live.insert(address));
        live
    }

    pub(super) fn is_any_live(&self) -> bool {
        self.versions.iter().any(|version| version & 1 == 1)
    }

    /// Whether it starts from here: a block shows the leaf that it is mapped to, and one that is nowhere any.
    pub(super) fn check(&self, step: &Step) -> Result<(), Error> {
        let leaf = step.address.and_then(|address| self.leaf(address));
        if leaf.is_none_or(|leaf| leaf == step.from) { Ok(()) } else { Err(strange()) }
    }

    /// A block, or none, was written to the root.
    pub(super) fn write(&mut self, step: &Step, is_written: bool) {
        let number = self.accesses();
        if let Some(address) = step.address {
            let version = &mut self.versions[address as usize];
            *version = number << 1 | u64::from(is_written) | *version & 1;
        }
        self.client.keep(step.address.map(|address| address as usize), step.to);
    }

    /// A path was evicted.
    pub(super) fn evict(&mut self) -> Result<(), Error> {
        let next = self.client.next_eviction().map_err(overflow)?;
        self.client.evicted(next);
        Ok(())
    }

    /// An access, with the eviction that comes after it, was made.
    pub(super) fn access(&mut self, step: &Step, is_written: bool) -> Result<(), Error> {
        self.check(step)?;
        self.write(step, is_written);
        if self.client.must_evict() { self.evict() } else { Ok(()) }
    }

    /// The blocks of a range are nowhere and have no contents any more. What is in their slots is dropped where it is evicted.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        for address in range {
            self.versions[address as usize] = 0;
            self.client.positions_mut().remove(address as usize);
        }
    }

    /// What is kept of a block in a state: where it is, and its last write.
    pub(super) fn entry(&self, address: u64) -> Entry {
        [self.client.positions().entry(address as usize), self.versions[address as usize]]
    }

    /// Puts that back. Answers whether there is such a block, and such a place.
    #[must_use]
    pub(super) fn set_entry(&mut self, address: u64, [position, version]: Entry) -> bool {
        let Some(known) = self.versions.get_mut(address as usize) else { return false };
        *known = version;
        self.client.positions_mut().set_entry(address as usize, position)
    }
}

/// What is said of a bucket that has no room.
pub(super) fn overflow(error: ClientError) -> Error {
    impossible(format!(
        "{error}: copy what the volume holds to one with more slots (`oblivio rescue` reads it)"
    ))
}
