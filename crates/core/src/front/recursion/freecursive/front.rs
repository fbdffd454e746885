//! The owner's interface to Freecursive ORAM: dummy accesses, blocks outside of the ORAM, checks.

use alloc::format;
use alloc::vec::Vec;

use rand_core::CryptoRng;

use super::FreecursiveOram;
use crate::address_set::AddressSet;
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::{Counters, Front, VisitedBlock, check_request, visit_tree};
use crate::geometry::Leaf;
use crate::posmap::compressed::Count;
use crate::posmap::leaf_prf::Position;
use crate::posmap::plb::PlbEntry;
use crate::scheme::{Location, Op, Scheme};
use crate::stash::StashView;

/// The message if [`Front::check_invariants`] finds a block twice, or a block with an invalid
/// address.
const TWICE: &str = "twice, or with an invalid address";

/// Number of blocks that the check prefetches ahead: about the number of cache misses that a
/// processor can have in flight.
const BLOCKS_AT_ONCE: usize = 32;

/// # Blocks outside of the ORAM
/// Taking a block out and putting it back each need the position-map blocks that are not in the
/// PLB, whether the block has changed or not. Taking out costs at most as many accesses as a
/// request; putting back costs no access to data.
///
/// A group reset makes an access for each other block of the group, even if the block is outside of
/// the ORAM and the access does not find it.
impl<S: Scheme, R: CryptoRng> Front for FreecursiveOram<S, R> {
    fn check_ready(&self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.scheme.check_ready()
    }

    fn dummy(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.scheme.dummy(&mut self.coins)
    }

    fn evict(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.scheme.evict(&mut self.coins)
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        check_request(address, op, self.capacity, self.block_bytes)?;
        check_not_broken(self.broken)?;
        // With PMMAC, a block that keeps its count would be sealed twice under one nonce.
        if self.guard.is_on() {
            return Ok(false);
        }
        let is_found = self.scheme.serve_on_client(self.space.address(0, address), op)?;
        self.tally.stash_hits += u64::from(is_found);
        Ok(is_found)
    }

    /// Fetches nothing if the ORAM has no PLB, because no position-map block stays on the client
    /// until the request.
    fn fetch_position(&mut self, address: u64) -> Result<bool, Error> {
        check_request(address, &Op::Update(&mut |_| ()), self.capacity, self.block_bytes)?;
        check_not_broken(self.broken)?;
        self.scheme.check_ready()?;
        self.broken = true;
        let lowest = self.lowest_held(address)?;
        let is_needed = self.keeps_plb && lowest > 1;
        if is_needed {
            self.fetch(lowest - 1, address)?;
        }
        self.broken = false;
        Ok(is_needed)
    }

    fn check_takes(&self) -> Result<(), Error> {
        if self.guard.is_on() {
            let message = "blocks cannot be taken out of an ORAM under PMMAC: they would look like \
                           blocks that storage has deleted. Use Integrity::None";
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        }
        Ok(())
    }

    fn take(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        self.check_takes()?;
        check_request(address, &Op::Read(block), self.capacity, self.block_bytes)?;
        self.with_chain(address, |oram| {
            let (from, _) = oram.look_up_and_remap(0, address)?;
            oram.tally.data_accesses += 1;
            oram.scheme.take(oram.space.address(0, address), from.leaf, block)
        })
    }

    /// Takes the block without consulting the position map, whose leaf for the block is still
    /// valid.
    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        self.check_takes()?;
        check_request(address, &Op::Read(block), self.capacity, self.block_bytes)?;
        check_not_broken(self.broken)?;
        let address = self.space.address(0, address);
        let is_found = self.scheme.take_on_client(address, block)?.is_some();
        self.tally.stash_hits += u64::from(is_found);
        Ok(is_found)
    }

    fn put_back(&mut self, address: u64, block: &[u8]) -> Result<(), Error> {
        check_request(address, &Op::Write(block), self.capacity, self.block_bytes)?;
        self.with_chain(address, |oram| {
            let unseen = oram.look_up(address);
            oram.scheme.append(oram.space.address(0, address), unseen.leaf, block)
        })
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn populate(&mut self) -> Result<(), Error> {
        if self.guard.is_on() {
            let message = "an ORAM with PMMAC cannot be populated: use Integrity::None";
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        }
        let Self { scheme, space, table, prf, coins, .. } = self;
        let addresses = (0..space.blocks()).filter(|address| space.contains(*address));
        let mut blocks = addresses.map(|address| {
            let position = match space.parent(address) {
                Err(entry) => table.look_up(entry, address, prf, coins),
                Ok(_) => prf.position(address, Count::NEVER_MOVED),
            };
            (address, position.leaf)
        });
        scheme.populate(&mut blocks)
    }

    fn counters(&self) -> Counters {
        Counters::new(self.tally, self.scheme.aes_blocks())
    }

    fn stash(&self) -> StashView<'_> {
        self.scheme.stash()
    }

    /// Checks that no block exists twice, and that each is in the stash, in the PLB or in a bucket
    /// on its path. If a block's entry in the position map is on the client, the block must have
    /// the leaf of that entry.
    fn check_invariants(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        let Self { scheme, plb, space, table, prf, counters, .. } = self;
        let expected = |address: u64| match space.parent(address) {
            Err(entry) => table.get(entry, address, prf).map(|position| position.leaf),
            Ok((parent, child)) => plb
                .find(parent)
                .map(|line| prf.position(address, counters.count(plb.block(line), child)).leaf),
        };
        let mut seen = AddressSet::new(space.blocks())?;
        let mut violation = None;
        let mut report = |defect: &str| {
            violation.get_or_insert_with(|| format!("a block is in the ORAM {defect}"));
        };
        for (_, PlbEntry { address, position }) in plb.blocks() {
            if !seen.insert(address) {
                report(TWICE);
            } else if expected(address).is_some_and(|expected| expected != position.leaf) {
                report("(PLB) with a leaf other than its parent's");
            }
        }
        let mut judge = |seen: &mut AddressSet,
                         (location, address, leaf): (Location, u64, Leaf)| {
            if !seen.insert(address) {
                report(TWICE);
            } else if expected(address).is_some_and(|expected| expected != leaf) {
                report("with a leaf other than its parent's");
            } else if matches!(location, Location::Bucket(bucket) if !bucket.is_on_path(leaf)) {
                report("off its path");
            }
        };
        // Addresses come in random order, so prefetch their bits some blocks ahead.
        let mut coming = Vec::with_capacity(BLOCKS_AT_ONCE);
        scheme.visit_blocks(&mut |location, address, leaf| {
            seen.announce(address);
            coming.push((location, address, leaf));
            if coming.len() == BLOCKS_AT_ONCE {
                coming.drain(..).for_each(|block| judge(&mut seen, block));
            }
        })?;
        coming.into_iter().for_each(|block| judge(&mut seen, block));
        violation.map_or(Ok(()), |message| Err(Error::new(ErrorKind::Corrupt, message)))
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(VisitedBlock)) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        visit_tree(&mut self.scheme, |address| address, visit)
    }
}

impl<S, R> AsRef<S> for FreecursiveOram<S, R> {
    fn as_ref(&self) -> &S {
        &self.scheme
    }
}

impl<S, R> AsMut<S> for FreecursiveOram<S, R> {
    fn as_mut(&mut self) -> &mut S {
        &mut self.scheme
    }
}

impl<S: Scheme, R: CryptoRng> FreecursiveOram<S, R> {
    /// Brings the position-map block that holds the position of `data` to the client, and runs
    /// `work`. If anything fails after the first checks, the ORAM is broken.
    fn with_chain<T>(
        &mut self,
        data: u64,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        check_not_broken(self.broken)?;
        self.scheme.check_ready()?;
        self.broken = true;
        self.fetch_chain(data)?;
        let done = work(self)?;
        if !self.keeps_plb {
            self.flush()?;
        }
        self.broken = false;
        Ok(done)
    }

    /// Returns the position at which data block `data` must be put back. The position-map block
    /// that holds this position must be on the client.
    fn look_up(&mut self, data: u64) -> Position {
        let Self { space, plb, prf, counters, table, coins, .. } = self;
        match space.parent(space.address(0, data)) {
            Err(entry) => table.look_up(entry, data, prf, coins),
            Ok((parent, child)) => {
                let parent = plb.find(parent).expect("the parent has been fetched");
                prf.position(data, counters.count(plb.block(parent), child))
            }
        }
    }
}
