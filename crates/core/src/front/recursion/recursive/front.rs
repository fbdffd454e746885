//! Plain recursion as a [`Front`]. Every request makes an access in each tree, even if the client
//! holds the block. So this front end serves no request on the client, and takes no block out.

use rand_core::CryptoRng;

use super::RecursiveOram;
use crate::error::{Error, ErrorKind};
use crate::front::{Counters, Front, FrontTally, Oram, VisitedBlock, check_request, visit_tree};
use crate::scheme::{Op, Scheme};
use crate::stash::StashView;

impl<S: Scheme, R: CryptoRng> Front for RecursiveOram<S, R> {
    fn check_ready(&self) -> Result<(), Error> {
        self.levels.iter().try_for_each(Scheme::check_ready)
    }

    fn dummy(&mut self) -> Result<(), Error> {
        Self::dummy(self)
    }

    fn evict(&mut self) -> Result<(), Error> {
        Self::evict(self)
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        check_request(address, op, self.capacity(), self.block_bytes())?;
        Ok(false)
    }

    /// Fetches nothing, because the accesses of a request cannot be separated.
    fn fetch_position(&mut self, address: u64) -> Result<bool, Error> {
        let op = Op::Update(&mut |_| ());
        check_request(address, &op, self.capacity(), self.block_bytes())?;
        Ok(false)
    }

    fn check_takes(&self) -> Result<(), Error> {
        let message =
            "blocks cannot be taken out of a recursive ORAM: use FreecursiveOram or FlatOram";
        Err(Error::new(ErrorKind::InvalidConfig, message))
    }

    fn take(&mut self, _: u64, _: &mut [u8]) -> Result<bool, Error> {
        self.check_takes().map(|()| false)
    }

    fn take_on_client(&mut self, _: u64, _: &mut [u8]) -> Result<bool, Error> {
        self.check_takes().map(|()| false)
    }

    fn put_back(&mut self, _: u64, _: &[u8]) -> Result<(), Error> {
        self.check_takes()
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn populate(&mut self) -> Result<(), Error> {
        let message = "a recursive ORAM cannot be populated: write each of its blocks";
        Err(Error::new(ErrorKind::InvalidConfig, message))
    }

    fn counters(&self) -> Counters {
        let maps = self.levels.len() as u64 - 1;
        let front = FrontTally {
            data_accesses: self.requests,
            position_map_accesses: self.requests * maps,
            ..FrontTally::default()
        };
        Counters::new(front, self.levels.iter().map(Scheme::aes_blocks).sum())
    }

    fn stash(&self) -> StashView<'_> {
        self.levels[0].stash()
    }

    fn stash_blocks(&self) -> usize {
        self.levels.iter().map(|scheme| scheme.stash().blocks()).sum()
    }

    fn check_invariants(&mut self) -> Result<(), Error> {
        Self::check_invariants(self)
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(VisitedBlock)) -> Result<(), Error> {
        let mut first = 0;
        for scheme in &mut self.levels {
            visit_tree(scheme, |number| first + number, visit)?;
            first += scheme.config().capacity;
        }
        Ok(())
    }
}
