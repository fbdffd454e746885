//! Turns loads and stores into the records of a trace.
//!
//! A load that misses requests its line ([`AccessKind::Read`]), and a dirty victim is written back
//! ([`AccessKind::Write`]). For a store that misses, see [`StoreMisses`].
//!
//! The gaps of a trace count all instructions. A record represents one instruction, and its gap
//! counts the preceding instructions without a record. If one instruction causes two records, a
//! later gap is shorter by one, so the sum of `gap + 1` remains the number of instructions.

use crate::cache::{Cache, CacheShape};
use crate::trace::{AccessKind, Record};
use crate::{LINE_BYTES, SimError};

/// The effect of a store that misses the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreMisses {
    /// The store causes only a write, when its line leaves the cache. The reads of a trace are
    /// those for which a program waits, and no program waits for a store. Table II of IR-ORAM
    /// counts in this way: lbm writes 45 lines per 1000 instructions and reads none.
    #[default]
    Write,
    /// The store reads the line, like a load: the cache fetches the bytes that the store does not
    /// overwrite.
    Fetch,
}

/// The parameters of a first-level cache and its recording.
#[derive(Clone, Copy, Debug)]
pub struct FirstLevelSpec {
    /// The dimensions of the cache.
    pub shape: CacheShape,
    /// The effect of a store that misses.
    pub store_misses: StoreMisses,
    /// The number of instructions at the start that only fill the cache, and make no records.
    pub warm_up: u64,
}

/// A load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The number of the access's instruction, from 1.
    pub instruction: u64,
    /// Address of the first byte accessed.
    pub address: u64,
    /// Number of bytes accessed.
    pub bytes: u64,
    /// Whether the access is a store.
    pub is_store: bool,
}

/// A first-level data cache: write-back, with LRU replacement.
#[derive(Clone, Debug)]
pub struct FirstLevel {
    cache: Cache,
    store_misses: StoreMisses,
    warm_up: u64,
    /// Instructions covered by the records so far, including the warm-up.
    counted_instructions: u64,
}

impl FirstLevel {
    /// Creates an empty cache.
    ///
    /// # Errors
    /// [`SimError::Spec`] if a cache cannot have these dimensions.
    pub fn new(spec: FirstLevelSpec) -> Result<Self, SimError> {
        let FirstLevelSpec { shape, store_misses, warm_up } = spec;
        Ok(Self { cache: Cache::new(shape)?, store_misses, warm_up, counted_instructions: warm_up })
    }

    /// Makes an access, and passes its records to `emit`. A missed line gives a read, except for a
    /// store under [`StoreMisses::Write`]. If the line evicts a dirty line, the write of that line
    /// follows. The warm-up emits no records.
    pub fn access(&mut self, access: Access, mut emit: impl FnMut(Record)) {
        let Access { instruction, address, bytes, is_store } = access;
        let last_byte = address.saturating_add(bytes.saturating_sub(1));
        for line in address / LINE_BYTES..=last_byte / LINE_BYTES {
            if self.cache.touch(line, is_store) {
                continue;
            }
            let victim = self.cache.insert(line, is_store);
            if instruction <= self.warm_up {
                continue;
            }
            if !is_store || self.store_misses == StoreMisses::Fetch {
                emit(self.record(instruction, AccessKind::Read, line));
            }
            if let Some(victim) = victim.filter(|victim| victim.dirty) {
                emit(self.record(instruction, AccessKind::Write, victim.line));
            }
        }
    }

    fn record(&mut self, instruction: u64, kind: AccessKind, line: u64) -> Record {
        let gap = (instruction - 1).saturating_sub(self.counted_instructions);
        let gap = u32::try_from(gap).unwrap_or(u32::MAX);
        self.counted_instructions += u64::from(gap) + 1;
        Record { gap, kind, line }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPE: CacheShape = CacheShape { lines: 8, ways: 2 };

    fn records(
        store_misses: StoreMisses,
        warm_up: u64,
        accesses: impl IntoIterator<Item = Access>,
    ) -> Vec<Record> {
        let spec = FirstLevelSpec { shape: SHAPE, store_misses, warm_up };
        let mut cache = FirstLevel::new(spec).unwrap();
        let mut records = Vec::new();
        accesses.into_iter().for_each(|access| cache.access(access, |record| records.push(record)));
        records
    }

    fn load(instruction: u64, address: u64) -> Access {
        Access { instruction, address, bytes: 8, is_store: false }
    }

    fn store(instruction: u64, address: u64) -> Access {
        Access { is_store: true, ..load(instruction, address) }
    }

    fn read(gap: u32, line: u64) -> Record {
        Record { gap, kind: AccessKind::Read, line }
    }

    fn write(gap: u32, line: u64) -> Record {
        Record { gap, kind: AccessKind::Write, line }
    }

    #[test]
    fn a_load_reads_once() {
        let accesses = [load(1, 0), load(4, 56), load(5, 64)];
        assert_eq!(records(StoreMisses::Write, 0, accesses), [read(0, 0), read(3, 1)]);
    }

    #[test]
    fn an_access_that_straddles_two_lines_asks_for_both() {
        assert_eq!(records(StoreMisses::Write, 0, [load(3, 60)]), [read(2, 0), read(0, 1)]);
        let last = Access { bytes: 16, ..load(1, u64::MAX - 3) };
        assert_eq!(records(StoreMisses::Write, 0, [last]), [read(0, u64::MAX / 64)]);
    }

    #[test]
    fn a_store_that_misses_writes_at_eviction_or_also_fetches() {
        // Lines 0, 4 and 8 share a set of two.
        let accesses = [store(1, 0), load(2, 4 * 64), load(10, 8 * 64)];
        let written = records(StoreMisses::Write, 0, accesses);
        assert_eq!(written, [read(1, 4), read(7, 8), write(0, 0)]);
        let fetched = records(StoreMisses::Fetch, 0, accesses);
        assert_eq!(fetched, [read(0, 0), read(0, 4), read(7, 8), write(0, 0)]);
    }

    #[test]
    fn a_warm_up_fills_the_cache_without_records() {
        let accesses = [load(1, 0), store(2, 64), load(10, 0), load(11, 128), load(12, 5 * 64)];
        let warm = [read(0, 2), read(0, 5)];
        assert_eq!(records(StoreMisses::Write, 10, accesses), warm);
    }

    #[test]
    fn no_instruction_is_lost_in_the_gaps() {
        let far = u64::from(u32::MAX) + 10;
        let accesses = [load(far, 0), load(far + 100, 64)];
        let emitted = records(StoreMisses::Write, 0, accesses);
        assert_eq!(emitted[0].gap, u32::MAX);
        assert_eq!(emitted.iter().map(|record| u64::from(record.gap) + 1).sum::<u64>(), far + 100);
    }

    proptest! {
        /// Compares the cache with a model: a list of (line, dirty) per set, the most recently used
        /// line last.
        #[test]
        fn it_is_a_list_for_each_set(
            uses in prop::collection::vec((1u64..9, 0u64..2000, 1u64..17, any::<bool>()), 0..200),
            fetches in any::<bool>(),
        ) {
            let mut sets = vec![Vec::<(u64, bool)>::new(); 4];
            let mut expected = Vec::new();
            let mut accesses = Vec::new();
            let mut instruction = 0;
            for (gap, address, bytes, is_store) in uses {
                instruction += gap;
                accesses.push(Access { instruction, address, bytes, is_store });
                let mut lines: Vec<_> = (address..address + bytes).map(|byte| byte / 64).collect();
                lines.dedup();
                for line in lines {
                    let set = &mut sets[line as usize % 4];
                    let held = set.iter().position(|(held, _)| *held == line);
                    let was_dirty = held.is_some_and(|held| set.remove(held).1);
                    set.push((line, was_dirty || is_store));
                    if held.is_none() && (!is_store || fetches) {
                        expected.push((AccessKind::Read, line));
                    }
                    if set.len() > 2 && let (victim, true) = set.remove(0) {
                        expected.push((AccessKind::Write, victim));
                    }
                }
            }
            let store_misses = if fetches { StoreMisses::Fetch } else { StoreMisses::Write };
            let emitted = records(store_misses, 0, accesses);
            let actual: Vec<_> = emitted.iter().map(|record| (record.kind, record.line)).collect();
            prop_assert_eq!(actual, expected);
        }
    }
}
