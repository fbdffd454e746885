//! What the owner of a Freecursive ORAM has: accesses that nobody asked for, blocks that are out, checks.

use alloc::format;
use alloc::vec::Vec;

use rand_core::CryptoRng;

use super::FreecursiveOram;
use crate::address_set::AddressSet;
use crate::error::{Error, ErrorKind, check_sound};
use crate::front::{Counters, Front, VisitedBlock, check_request, visit_tree};
use crate::geometry::Leaf;
use crate::posmap::compressed::Count;
use crate::posmap::leaf_prf::Position;
use crate::posmap::plb::Held;
use crate::scheme::{Location, Op, Scheme};
use crate::stash::StashView;

/// A defect that [`Front::check_invariants`] finds.
const TWICE: &str = "twice, or past the last address";

/// A processor waits for no more lines of memory at once.
const BLOCKS_AT_ONCE: usize = 32;

/// # Blocks that are out
/// Each way costs the position-map blocks that are not in the PLB, whether the block has changed or
/// not: at most as many accesses as a request, and for a block that is put back none to data.
///
/// A group whose counters begin anew moves the blocks of it that are out like the others: at an
/// access each, which finds nothing.
impl<S: Scheme, R: CryptoRng> Front for FreecursiveOram<S, R> {
    fn check_ready(&self) -> Result<(), Error> {
        check_sound(self.broken)?;
        self.scheme.check_ready()
    }

    fn dummy(&mut self) -> Result<(), Error> {
        check_sound(self.broken)?;
        self.scheme.dummy(&mut self.coins)
    }

    fn evict(&mut self) -> Result<(), Error> {
        check_sound(self.broken)?;
        self.scheme.evict(&mut self.coins)
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        check_request(address, op, self.capacity, self.block_bytes)?;
        check_sound(self.broken)?;
        // Under PMMAC a block that keeps its count would be sealed twice under one name.
        if self.guard.is_on() {
            return Ok(false);
        }
        let is_found = self.scheme.serve_on_client(self.space.address(0, address), op)?;
        self.tally.stash_hits += u64::from(is_found);
        Ok(is_found)
    }

    /// Without a PLB nothing is fetched ahead of its time.
    fn fetch_position(&mut self, address: u64) -> Result<bool, Error> {
        check_request(address, &Op::Update(&mut |_| ()), self.capacity, self.block_bytes)?;
        check_sound(self.broken)?;
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
            let message = "blocks cannot be taken out of an ORAM under PMMAC: one that is out and one \
                           that storage has deleted would look the same. Use Integrity::None";
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

    /// The position map is not asked: the block has the leaf that it says.
    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        self.check_takes()?;
        check_request(address, &Op::Read(block), self.capacity, self.block_bytes)?;
        check_sound(self.broken)?;
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
            let message = "an ORAM under PMMAC cannot be filled at once: use Integrity::None";
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

    /// Each block exactly once in the stash, in the PLB or in a bucket on its path, with the leaf that its
    /// parent says, where that is on the client.
    fn check_invariants(&mut self) -> Result<(), Error> {
        check_sound(self.broken)?;
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
            violation.get_or_insert_with(|| format!("there is a block {defect}"));
        };
        for (_, Held { address, position }) in plb.blocks() {
            if !seen.insert(address) {
                report(TWICE);
            } else if expected(address).is_some_and(|expected| expected != position.leaf) {
                report("in the PLB with another leaf than its parent's");
            }
        }
        let mut judge = |seen: &mut AddressSet,
                         (location, address, leaf): (Location, u64, Leaf)| {
            if !seen.insert(address) {
                report(TWICE);
            } else if expected(address).is_some_and(|expected| expected != leaf) {
                report("with another leaf than its parent's");
            } else if matches!(location, Location::Bucket(bucket) if !bucket.is_on_path(leaf)) {
                report("off its path");
            }
        };
        // Addresses come in no order: where each is noted, is asked for some blocks before.
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
        check_sound(self.broken)?;
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
    /// Has `work` done while the chain of `data` is on the client. A failure half way breaks the ORAM.
    fn with_chain<T>(
        &mut self,
        data: u64,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        check_sound(self.broken)?;
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

    /// Where data block `data` goes when it is put back. Its chain is on the client.
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
