//! Checks of the whole tree.

use alloc::format;
use alloc::string::{String, ToString};

use super::DurableRawOram;
use super::positions::Positions;
use crate::durable::SparseAddressSet;
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::posmap::NestedPosMap;
use crate::posmap::{LivePosMap, Mapping};
use crate::scheme::Location;
use crate::store::BucketStore;

impl<S: BucketStore, R> DurableRawOram<S, R> {
    /// Reads the whole tree, and checks that every part of every bucket holds its latest write and
    /// that each live block is on its path. Passes the number of buckets read so far to `progress`;
    /// the last number is
    /// [`VersionedTree::buckets_written`](crate::scheme::VersionedTree::buckets_written). Returns
    /// the number of live data blocks. Storage sees a scan.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`], [`ErrorKind::Corrupt`] with the first violation, and any error of
    /// storage.
    pub fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        check_not_broken(self.broken)?;
        let blocks = self.config.raw.tree.capacity;
        let mut found = SparseAddressSet::new(blocks);
        let mut expected = Expected::of_client(&self.positions, blocks, &mut found);
        let Self { backend, positions, .. } = self;
        let positions = &*positions;
        backend.visit_blocks(
            &mut |location, address, leaf, bytes| {
                match positions {
                    // From the root down: the first of several copies is the latest.
                    Positions::Flat(map) if !map.is_live_at(address, leaf) => return,
                    Positions::Flat(_) if found.contains(address) => return,
                    Positions::Flat(_) => (),
                    Positions::Nested(_) if found.contains(address) => {
                        expected.report("a block is in the tree twice".into());
                    }
                    Positions::Nested(map) if map.is_position_map(address) => {
                        expected.add_block(map, address, bytes);
                    }
                    Positions::Nested(_) => (),
                }
                found.insert(address);
                if matches!(location, Location::Bucket(bucket) if !bucket.is_on_path(leaf)) {
                    expected.report(format!("a block is off its path ({location:?})"));
                }
            },
            &mut |_, error| Err(error),
            progress,
        )?;
        let Expected { live, defect } = expected;
        if let Some(message) = defect {
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        // A block counts if all position-map blocks above it are live.
        let is_alive = |address: u64| match positions {
            Positions::Flat(_) => true,
            Positions::Nested(map) => {
                let mut above = core::iter::successors(map.parent(address), |it| map.parent(*it));
                above.all(|address| live.contains(address))
            }
        };
        let (mut alive, mut lost) = (0, 0u64);
        for address in live.iter().filter(|address| is_alive(*address)) {
            lost += u64::from(!found.contains(address));
            alive += u64::from(!positions.is_position_map(address));
        }
        match lost {
            0 => Ok(alive),
            _ => Err(Error::new(ErrorKind::Corrupt, format!("{lost} blocks are missing"))),
        }
    }
}

/// The blocks that the tree and the client should hold, according to the position map.
pub(super) struct Expected {
    pub(super) live: SparseAddressSet,
    /// The first defect that was found.
    pub(super) defect: Option<String>,
}

impl Expected {
    /// The expectations that follow from the part of the position map on the client. Adds the map's
    /// blocks on the client to `found`.
    pub(super) fn of_client(
        positions: &Positions,
        blocks: u64,
        found: &mut SparseAddressSet,
    ) -> Self {
        let mut expected = Self { live: SparseAddressSet::new(blocks), defect: None };
        match positions {
            Positions::Flat(map) => expected.add_table(map, |entry| entry),
            Positions::Nested(map) => {
                expected.add_table(map.table(), |entry| map.address_of_entry(entry));
                for block in map.plb_blocks() {
                    found.insert(block.address);
                    expected.add_block(map, block.address, &block.bytes);
                }
            }
        }
        expected
    }

    fn add_table(&mut self, table: &LivePosMap, address_of: impl Fn(u64) -> u64) {
        for (entry, mapping) in table.mapped(0..table.capacity()) {
            if mapping.live {
                self.live.insert(address_of(entry));
            }
        }
    }

    /// Adds the expectations that follow from a block of the map. They replace those from an older
    /// copy of the block.
    pub(super) fn add_block(&mut self, map: &NestedPosMap, address: u64, bytes: &[u8]) {
        for entry in map.entries_of(address, bytes) {
            match entry {
                Ok((address, Some(Mapping { live: true, .. }))) => self.live.insert(address),
                Ok((address, _)) => self.live.remove(address),
                Err(error) => self.report(error.to_string()),
            }
        }
    }

    fn report(&mut self, defect: String) {
        self.defect.get_or_insert(defect);
    }
}
