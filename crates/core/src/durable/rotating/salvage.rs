//! Recovery of an ORAM whose storage is damaged.

use core::cell::RefCell;

use super::DurableRawOram;
use super::check::Expected;
use super::positions::Positions;
use crate::durable::salvage::Damage;
use crate::durable::{Recoverability, Salvage, SparseAddressSet};
use crate::error::{Error, check_not_broken};
use crate::scheme::Location;
use crate::store::BucketStore;

impl<S: BucketStore, R> DurableRawOram<S, R> {
    /// Reads the whole tree, and passes each data block with an authentic copy to `each`. May pass
    /// a block twice: first a doubtful copy, then the latest. Passes the error to `damaged` for
    /// each bucket that cannot be read or is not authentic, and the number of buckets read so far
    /// to `progress`. Pass the result to [`Self::recoverability`]. Changes nothing; storage sees a
    /// scan.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen). Damage is no error.
    pub fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        check_not_broken(self.broken)?;
        let blocks = self.config.raw.tree.capacity;
        let (mut found, mut doubtful) =
            (SparseAddressSet::new(blocks), SparseAddressSet::new(blocks));
        let mut expected = Expected::of_client(&self.positions, blocks, &mut found);
        let Self { backend, positions, config, .. } = self;
        let (positions, data_blocks) = (&*positions, config.data_blocks());
        let damage = RefCell::new(Damage::new(&config.raw.tree.geometry));
        backend.visit_blocks(
            &mut |location, address, leaf, bytes| {
                let is_mapped = positions.flat().is_none_or(|map| map.is_live_at(address, leaf));
                let was_sure = found.contains(address) && !doubtful.contains(address);
                if !is_mapped || was_sure {
                    return;
                }
                // With a flat map, a later copy may have been in a damaged bucket nearer to the
                // root. With a nested map, the mark that this copy was taken may have been damaged.
                let is_doubtful = match location {
                    Location::Bucket(bucket) => {
                        let (damage, level) = (damage.borrow(), bucket.level());
                        damage.is_above(level, leaf)
                            || positions.flat().is_none() && damage.is_on_level(level)
                    }
                    Location::Stash => false,
                };
                if found.contains(address) && is_doubtful {
                    return;
                }
                found.insert(address);
                doubtful.remove(address);
                if is_doubtful {
                    doubtful.insert(address);
                }
                match positions {
                    Positions::Nested(map) if map.is_position_map(address) => {
                        expected.add_block(map, address, bytes);
                    }
                    _ if address < data_blocks => each(address, bytes),
                    _ => (),
                }
            },
            &mut |bucket, error| {
                damage.borrow_mut().add(bucket);
                damaged(&error);
                Ok(())
            },
            progress,
        )?;
        let Expected { live, .. } = expected;
        Ok(Salvage::new(blocks, found, doubtful, live))
    }

    /// The recoverability of the block `address`, given the result of [`Self::salvage`].
    pub fn recoverability(&self, salvage: &Salvage, address: u64) -> Recoverability {
        if let Some(recoverability) = salvage.after_state(address) {
            return recoverability;
        }
        let Salvage { found, doubtful, live, .. } = salvage;
        let is_known = match self.ancestors_of(salvage, address) {
            AncestorState::Ends => return Recoverability::Empty,
            AncestorState::Known => true,
            AncestorState::Damaged => false,
        };
        match (live.contains(address), found.contains(address)) {
            (_, false) if !is_known => Recoverability::Lost,
            (_, true) if !is_known || doubtful.contains(address) => Recoverability::Doubtful,
            (false, _) => Recoverability::Empty,
            (true, false) => Recoverability::Lost,
            (true, true) => Recoverability::Found,
        }
    }

    /// The condition of the map blocks above a block, which lead from the client's entries to its
    /// position. If the map is in the tree, a block can be trusted only if all map blocks above it
    /// can.
    fn ancestors_of(&self, salvage: &Salvage, address: u64) -> AncestorState {
        let above = match &self.positions {
            Positions::Nested(map) => map.parent(address),
            Positions::Flat(_) => None,
        };
        let Some(above) = above else { return AncestorState::Known };
        match self.ancestors_of(salvage, above) {
            // A map block that was never written or was forgotten has no live blocks below it.
            AncestorState::Known if !salvage.live.contains(above) => AncestorState::Ends,
            AncestorState::Known
                if !salvage.found.contains(above) || salvage.doubtful.contains(above) =>
            {
                AncestorState::Damaged
            }
            state => state,
        }
    }
}

/// The condition of the map blocks above a block of the array or of the map.
enum AncestorState {
    /// The latest copies of all map blocks above were found.
    Known,
    /// According to the latest map blocks, no block below them has contents.
    Ends,
    /// A map block above is missing or doubtful, so the blocks below it are unknown.
    Damaged,
}
