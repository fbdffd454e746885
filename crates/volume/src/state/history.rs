//! From the records of a file to the state at the last checkpoint, and what came after it.

use oblivio_core::RotatingConfig;
use oblivio_core::geometry::Leaf;
use oblivio_core::posmap::{LivePosMap, Mapping};
use oblivio_core::scheme::TakenSlot;

use super::file::{StateReader, damaged};
use super::record::{ClientBlock, Head, Record};
use crate::error::VolumeError;

/// What a state file says.
pub(crate) struct History {
    pub(crate) head: Head,
    /// The position map, or the entries of it that are on the client.
    pub(crate) table: LivePosMap,
    pub(crate) blocks: Vec<ClientBlock>,
    pub(crate) taken: Vec<TakenSlot>,
    /// What came in after the last checkpoint, to be done again.
    pub(crate) pending: Vec<Record>,
}

/// A state of which not all records have come.
struct Incomplete {
    head: Head,
    blocks: Vec<ClientBlock>,
    taken: Vec<TakenSlot>,
}

impl History {
    /// Reads a whole file of a volume.
    pub(crate) fn read(
        reader: &mut StateReader,
        config: &RotatingConfig,
    ) -> Result<Self, VolumeError> {
        let leaf_level = config.raw.tree.geometry.leaf_level();
        let table = LivePosMap::new(config.client_entries()?, leaf_level)?;
        let is_flat = config.recursion.is_none();
        let mut map = BoundedMap { map: table, leaf_level };
        let mut complete: Option<Incomplete> = None;
        let mut incomplete: Option<Incomplete> = None;
        let (mut tables, mut pending) = (Vec::new(), Vec::new());
        while let Some(record) = reader.next()? {
            match (record, &mut incomplete, &mut complete) {
                (Record::Head(head), None, _) => {
                    let (blocks, taken) = (Vec::new(), Vec::new());
                    incomplete = Some(Incomplete { head, blocks, taken });
                }
                (Record::Block(block), Some(state), _) => state.blocks.push(block),
                (Record::Taken(slots), Some(state), _) if !is_flat => state.taken.extend(slots),
                // Only a snapshot has a map: a checkpoint's follows from what came in before it.
                (Record::Map { start, mappings }, Some(_), None) => {
                    map.set_all(start, mappings)?;
                }
                // Unless most of it lies in the tree. No entry of such a map is ever taken back.
                (Record::Map { start, mappings }, Some(_), Some(_)) if !is_flat => {
                    tables.push((start, mappings));
                }
                (Record::End, Some(_), _) => {
                    complete = incomplete.take();
                    for (start, mappings) in tables.drain(..) {
                        map.set_all(start, mappings)?;
                    }
                    let pending = std::mem::take(&mut pending);
                    if is_flat {
                        pending.iter().try_for_each(|record| map.apply(record))?;
                    }
                }
                (
                    record @ (Record::Batch(_) | Record::Forget { .. } | Record::Evict),
                    None,
                    Some(_),
                ) => pending.push(record),
                _ => return Err(damaged("the client's state holds a record out of place")),
            }
        }
        let Incomplete { head, blocks, taken } =
            complete.ok_or_else(|| damaged("the client's state is not complete"))?;
        Ok(Self { head, table: map.map, blocks, taken, pending })
    }
}

/// A position map that refuses what is out of bounds.
struct BoundedMap {
    map: LivePosMap,
    leaf_level: u8,
}

impl BoundedMap {
    fn set_all(&mut self, start: u64, mappings: Vec<Option<Mapping>>) -> Result<(), VolumeError> {
        for (i, mapping) in mappings.into_iter().enumerate() {
            if let Some(mapping) = mapping {
                let address = start.checked_add(i as u64).ok_or_else(out_of_bounds)?;
                self.set(address, mapping)?;
            }
        }
        Ok(())
    }

    /// What a record does to the map, without storage.
    fn apply(&mut self, record: &Record) -> Result<(), VolumeError> {
        match record {
            Record::Batch(accesses) => accesses.iter().try_for_each(|access| {
                if access.step.is_of_nothing() {
                    return Ok(());
                }
                let was_alive = self.map.get(access.step.address).is_some_and(|old| old.live);
                let live = was_alive || access.data.is_some();
                self.set(access.step.address, Mapping { leaf: access.step.to, live })
            }),
            Record::Forget { start, end } if start <= end && *end <= self.map.capacity() => {
                self.map.forget(*start..*end);
                Ok(())
            }
            Record::Forget { .. } => Err(out_of_bounds()),
            _ => Ok(()),
        }
    }

    fn set(&mut self, address: u64, mapping: Mapping) -> Result<(), VolumeError> {
        let Mapping { leaf: Leaf(leaf), .. } = mapping;
        if address < self.map.capacity() && leaf >> self.leaf_level == 0 {
            self.map.set(address, mapping);
            Ok(())
        } else {
            Err(out_of_bounds())
        }
    }
}

fn out_of_bounds() -> VolumeError {
    damaged("the client's state names a block or a leaf that does not exist")
}
