//! ρ as a [`Front`]: dummies, taking blocks out of the ORAM and putting them back (the paper's use
//! case: Nagarajan et al., ASPLOS'19), and checks.

use hashbrown::HashMap;
use rand_core::CryptoRng;

use super::{RhoOram, TwoTrees};
use crate::block_cache::LineId;
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::{Counters, Front, VisitedBlock, check_request, visit_tree};
use crate::scheme::{Op, Scheme};
use crate::stash::StashView;

/// A [`Front`] whose blocks are taken out of the tree that holds them, and put back into the small
/// one. Putting a block back costs one small access and no access to data in the main tree.
///
/// The small access takes out the victim of the array, or is a dummy if there is no victim. Either
/// way the access writes back what it reads, so the stash of the small tree does not grow. Then the
/// block makes the stash grow by one, as in an insertion and in any access to a new block. So the
/// stash bound holds as for accesses, and [`StashFull`](crate::ErrorKind::StashFull) is returned
/// before anything is done.
impl<F, S, R> Front for RhoOram<F, S, R>
where
    F: Front + AsRef<TwoTrees<S, R>> + AsMut<TwoTrees<S, R>>,
    S: Scheme,
    R: CryptoRng,
{
    fn check_ready(&self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.check_both_ready()
    }

    /// Makes a [round of dummies](Self::idle_round), or, if batches do not end rounds, a [dummy
    /// access](Self::idle_access) to the tree that the pattern requires next.
    fn dummy(&mut self) -> Result<(), Error> {
        if self.ends_rounds { self.idle_round() } else { self.idle_access() }
    }

    /// Makes a [dummy](Self::dummy) instead of an eviction, because only dummies fit into the
    /// pattern.
    fn evict(&mut self) -> Result<(), Error> {
        self.dummy()
    }

    /// Serves nothing and returns false: every request must make its accesses in the pattern, even
    /// if the client holds the block.
    fn serve_on_client(&mut self, _: u64, _: &mut Op<'_>) -> Result<bool, Error> {
        check_not_broken(self.broken)?;
        Ok(false)
    }

    /// Fetches nothing, because position-map accesses must follow the fixed pattern of accesses.
    fn fetch_position(&mut self, _: u64) -> Result<bool, Error> {
        check_not_broken(self.broken)?;
        Ok(false)
    }

    fn check_takes(&self) -> Result<(), Error> {
        self.main.check_takes()
    }

    /// Storage sees the rounds that the accesses need: for a block in the array, one small access;
    /// otherwise, the accesses that the main ORAM makes.
    fn take(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        check_request(address, &Op::Read(block), self.main.capacity(), self.main.block_bytes())?;
        self.complete_round_after(|oram| {
            oram.serve(|oram| match oram.array.find(address) {
                Some(line) => oram.take_small(line, block),
                None => {
                    oram.trees().tally.misses += 1;
                    oram.main.take(address, block)
                }
            })
        })
    }

    /// Searches only the tree that holds the block according to the array, and of this tree only
    /// the part on the client.
    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error> {
        check_request(address, &Op::Read(block), self.main.capacity(), self.main.block_bytes())?;
        check_not_broken(self.broken)?;
        let Some(line) = self.array.find(address) else {
            let is_found = self.main.take_on_client(address, block)?;
            self.trees().tally.misses += u64::from(is_found);
            return Ok(is_found);
        };
        let trees = self.main.as_mut();
        let is_found = trees.small_mut().take_on_client(line.number(), block)?.is_some();
        if is_found {
            trees.tally.hits += 1;
            self.array.release(line);
        }
        Ok(is_found)
    }

    /// Puts the block into the small tree even if it has not changed, because it exists nowhere
    /// else. Storage sees the rounds for one small access, and for the position-map accesses that
    /// the victim of the array makes in the main ORAM.
    fn put_back(&mut self, address: u64, block: &[u8]) -> Result<(), Error> {
        check_request(address, &Op::Write(block), self.main.capacity(), self.main.block_bytes())?;
        self.complete_round_after(|oram| {
            oram.serve(|oram| {
                let line = oram.array.line_for(address);
                oram.take_victim(line)?;
                oram.inserted.copy_from_slice(block);
                oram.insert(line, address)
            })
        })
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Populates the main ORAM; the small tree stays empty.
    fn populate(&mut self) -> Result<(), Error> {
        self.main.populate()
    }

    fn is_in_small_tree(&self, address: u64) -> bool {
        self.array.find(address).is_some()
    }

    fn counters(&self) -> Counters {
        Counters { rho: Some(self.tally()), ..self.main.counters() }
    }

    fn stash(&self) -> StashView<'_> {
        self.main.stash()
    }

    fn stash_blocks(&self) -> usize {
        self.stashes().iter().map(|stash| stash.blocks()).sum()
    }

    /// Checks the main ORAM. Also checks that the small tree holds exactly the blocks of the array,
    /// on their paths, and that the main ORAM holds none of them. Storage sees scans that do not
    /// follow the pattern of accesses.
    fn check_invariants(&mut self) -> Result<(), Error> {
        self.check_both_trees()
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(VisitedBlock)) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        if let Some(address) = self.victim {
            visit(VisitedBlock { address, placement: None });
        }
        let addresses: HashMap<u64, u64> =
            self.array.blocks().map(|(line, tag)| (line.number(), tag.address)).collect();
        let mut is_known = true;
        let address = |line| {
            let address = addresses.get(&line).copied();
            is_known &= address.is_some();
            address.unwrap_or(u64::MAX)
        };
        visit_tree(self.main.as_mut().small_mut(), address, visit)?;
        if !is_known {
            let message = "a block of the small tree is not in the array";
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        self.main.visit_blocks(visit)
    }
}

impl<F, S, R> RhoOram<F, S, R>
where
    F: Front + AsRef<TwoTrees<S, R>> + AsMut<TwoTrees<S, R>>,
    S: Scheme,
    R: CryptoRng,
{
    /// Takes the block of an occupied line out of the small tree, copies it to `block`, and frees
    /// the line. Returns `false` if the small tree lacks the block, which happens only if storage
    /// has lost it; `block` is then zeros.
    fn take_small(&mut self, line: LineId, block: &mut [u8]) -> Result<bool, Error> {
        let from = self.array.tag(line).expect("the block is in the array").leaf;
        let trees = self.main.as_mut();
        trees.tally.hits += 1;
        let is_found = trees.access_small(|small| small.take(line.number(), from, block))?;
        self.array.release(line);
        Ok(is_found)
    }
}
