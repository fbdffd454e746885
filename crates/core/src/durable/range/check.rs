//! Checks of all trees, and recovery from damaged storage.

use alloc::format;
use core::cell::RefCell;

use super::access::RangeArray;
use super::sub_oram::SubOram;
use crate::durable::SparseAddressSet;
use crate::durable::salvage::{Damage, Salvage};
use crate::error::{Error, ErrorKind, check_not_broken};

impl RangeArray {
    /// Reads all trees, and checks that each bucket holds its latest write. Also checks that each
    /// tree holds every block with contents, unless the block waits on the client for that tree.
    /// Returns the number of blocks with contents.
    pub(super) fn check_all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        check_not_broken(self.broken)?;
        let blocks = self.params.blocks;
        let mut before = 0;
        for at in 0..self.subs.len() {
            let Self { subs, held, arena, live, store, evictions, .. } = self;
            let SubOram { tree, positions, .. } = &mut subs[at];
            let mut found = SparseAddressSet::new(blocks);
            held.all().filter(|it| it.2 >> at & 1 == 1).for_each(|it| found.insert(it.0));
            let mut off_path = None;
            tree.visit_blocks(
                store,
                *evictions,
                arena,
                &mut |bucket, entry, _| {
                    // From the root down: the first of several copies is the latest.
                    let counts = live.contains(entry.address)
                        && positions.of_block(entry.address) == entry.leaf;
                    if counts && !found.contains(entry.address) {
                        found.insert(entry.address);
                        if !bucket.is_on_path(entry.leaf) {
                            off_path = Some(bucket);
                        }
                    }
                },
                &mut |_, error| Err(error),
                &mut |buckets| progress(before + buckets),
            )?;
            if let Some(bucket) = off_path {
                let message = format!("a block is off its path ({bucket})");
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
            let lost = live.iter().filter(|address| !found.contains(*address)).count();
            if lost > 0 {
                let message = format!(
                    "{lost} blocks are missing in the tree of class {}",
                    subs[at].positions.class()
                );
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
            before += subs[at].tree.buckets_written(*evictions);
        }
        Ok(self.live.iter().count() as u64)
    }

    /// Reads all trees, and passes each block of which a copy is found to `each`. May pass a block
    /// twice: first a doubtful copy, then the latest. A copy is doubtful if a damaged bucket nearer
    /// to the root may have held a later copy, and no other tree has a copy that is certainly the
    /// latest.
    pub(super) fn salvage_all(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        check_not_broken(self.broken)?;
        let blocks = self.params.blocks;
        let [mut found, mut doubtful] = [(); 2].map(|()| SparseAddressSet::new(blocks));
        let live = self.live.clone();
        // The contents on the client are the latest.
        for (address, place, _) in self.held.all() {
            found.insert(address);
            each(address, self.arena.get(place));
        }
        let mut before = 0;
        for sub in &mut self.subs {
            let SubOram { tree, positions, .. } = sub;
            let damage = RefCell::new(Damage::new(&self.geometry));
            let mut seen = SparseAddressSet::new(blocks);
            tree.visit_blocks(
                &mut self.store,
                self.evictions,
                &mut self.arena,
                &mut |bucket, entry, bytes| {
                    let address = entry.address;
                    let counts = live.contains(address)
                        && positions.of_block(address) == entry.leaf
                        && !seen.contains(address);
                    if !counts {
                        return;
                    }
                    seen.insert(address);
                    let is_doubtful = damage.borrow().is_above(bucket.level(), entry.leaf);
                    let is_better = !is_doubtful && doubtful.contains(address);
                    if found.contains(address) && !is_better {
                        return;
                    }
                    found.insert(address);
                    doubtful.remove(address);
                    if is_doubtful {
                        doubtful.insert(address);
                    }
                    each(address, bytes);
                },
                &mut |bucket, error| {
                    damage.borrow_mut().add(bucket);
                    damaged(&error);
                    Ok(())
                },
                &mut |buckets| progress(before + buckets),
            )?;
            before += tree.buckets_written(self.evictions);
        }
        Ok(Salvage::new(blocks, found, doubtful, live))
    }
}
