//! Freecursive ORAM hands blocks out and takes them back.

use rand_core::CryptoRng;

use super::FreecursiveOram;
use crate::error::{Error, ErrorKind, check_sound};
use crate::front::{BackedOram, TakingOram, check_request};
use crate::posmap::leaf_prf::Position;
use crate::scheme::{Op, Scheme};

/// Each way costs the position-map blocks that are not in the PLB, whether the block has changed or
/// not: at most as many accesses as a request, and for a block that is put back none to data.
///
/// A group whose counters begin anew moves the blocks of it that are out like the others: at an
/// access each, which finds nothing.
impl<S: Scheme, R: CryptoRng> TakingOram for FreecursiveOram<S, R> {
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

    fn evict(&mut self) -> Result<(), Error> {
        self.evict()
    }

    fn check_invariants(&mut self) -> Result<(), Error> {
        self.check_invariants()
    }

    fn visit_addresses(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), Error> {
        check_sound(self.broken)?;
        self.scheme.visit_blocks(&mut |_, address, _| visit(address))
    }
}

impl<S: Scheme, R: CryptoRng> BackedOram for FreecursiveOram<S, R> {
    type Scheme = S;

    fn scheme(&self) -> &S {
        &self.scheme
    }

    fn scheme_mut(&mut self) -> &mut S {
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
