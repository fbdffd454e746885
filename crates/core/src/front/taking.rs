//! ORAMs that hand blocks out and take them back: what delayed remapping stands on.

use rand_core::CryptoRng;

use super::{FlatOram, Oram, check_request};
use crate::error::Error;
use crate::scheme::{Op, Scheme};

/// An ORAM out of which a block can be taken, and put back later without an access to its path.
///
/// A block that was taken is in no bucket and not in the stash. Its mapping says nothing any more: the
/// leaf that the position map has for it is a fresh one, which storage has never seen. So when it is
/// put back it goes into the stash as it is (IR-ORAM, section IV-D; Nagarajan et al., ASPLOS'19).
pub trait TakingOram: Oram {
    /// Whether blocks can be taken out of it at all.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) if not.
    fn check_takes(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Takes a block out, into `block`. One that was never written is zeros. Answers whether there
    /// was one. Storage sees an access like any other.
    ///
    /// # Errors
    /// Those of [`Oram::access`].
    fn take(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error>;

    /// Takes a block out, into `block`, if the client finds it by its address: in the stash, or in a
    /// [set-associative](crate::TreeTopKind::SetAssociative) tree top. Answers whether it did; if not,
    /// `block` is as it was.
    ///
    /// Storage sees nothing. So whoever calls this before [`Self::take`] shows storage, by the access
    /// that does not come, what [`HitPolicy::Serve`](crate::HitPolicy::Serve) says.
    ///
    /// # Errors
    /// Those of [`Oram::access`], but it is never refused for want of room.
    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error>;

    /// Puts a block back that [was taken](Self::take) and is still out: one that is not would be
    /// there twice. Storage sees the accesses that the position map takes, if it lies in the ORAM,
    /// and none to data. Towards the stash bound it counts like an access.
    ///
    /// # Errors
    /// Those of [`Oram::access`].
    fn put_back(&mut self, address: u64, block: &[u8]) -> Result<(), Error>;

    /// Makes the stash smaller ahead of time. Storage sees it.
    ///
    /// # Errors
    /// Any that storage causes.
    fn evict(&mut self) -> Result<(), Error>;

    /// Checks over the whole tree that each block is there once at most, and where it belongs.
    /// Storage sees a scan.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) with the first violation, and any that
    /// storage causes.
    fn check_invariants(&mut self) -> Result<(), Error>;

    /// Calls `visit` with the address of each block that is there. Those of a position map have
    /// addresses past the capacity. Storage sees a scan.
    ///
    /// # Errors
    /// Any that storage causes.
    fn visit_addresses(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), Error>;
}

impl<S: Scheme, R: CryptoRng> TakingOram for FlatOram<S, R> {
    fn take(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        check_request(address, &Op::Read(block), self.capacity, self.block_bytes)?;
        self.scheme.check_ready()?;
        let (from, _) = self.position_map.look_up_and_remap(address, &mut self.coins);
        self.tally.data_accesses += 1;
        self.scheme.take(address, from, block)
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        check_request(address, &Op::Read(block), self.capacity, self.block_bytes)?;
        let is_found = self.scheme.take_on_client(address, block)?.is_some();
        self.tally.stash_hits += u64::from(is_found);
        Ok(is_found)
    }

    fn put_back(&mut self, address: u64, block: &[u8]) -> Result<(), Error> {
        check_request(address, &Op::Write(block), self.capacity, self.block_bytes)?;
        self.scheme.check_ready()?;
        let unseen = self.position_map.look_up(address, &mut self.coins);
        self.scheme.append(address, unseen, block)
    }

    fn evict(&mut self) -> Result<(), Error> {
        self.evict()
    }

    fn check_invariants(&mut self) -> Result<(), Error> {
        self.check_invariants()
    }

    fn visit_addresses(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), Error> {
        self.scheme.visit_blocks(&mut |_, address, _| visit(address))
    }
}
