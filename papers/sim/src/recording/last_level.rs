//! The memory traffic of a trace behind a last-level cache, as in Table II of IR-ORAM.
//!
//! There is no processor and no timing. The first quarter of the trace fills the cache, and the
//! rest is counted.

use std::ops::AddAssign;

use crate::SimError;
use crate::cache::{Cache, CacheShape};
use crate::trace::{AccessKind, Record};

/// The memory traffic of a number of instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of instructions.
    pub instructions: u64,
    /// Lines read, for which the program waited.
    pub reads: u64,
    /// Dirty lines written back.
    pub writes: u64,
}

impl Traffic {
    /// The value of `requests` per 1000 instructions (MPKI).
    pub fn per_kilo(&self, requests: u64) -> f64 {
        requests as f64 * 1000.0 / self.instructions.max(1) as f64
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.reads += other.reads;
        self.writes += other.writes;
    }
}

/// A last-level cache that writes back dirty lines. Each write covers its whole line, so a write
/// that misses fetches nothing.
#[derive(Clone, Debug)]
pub struct LastLevel {
    cache: Cache,
    /// Number of records of the warm-up that remain.
    warm_up: u64,
    traffic: Traffic,
}

impl LastLevel {
    /// The shape of the LLC in IR-ORAM, Table I: 2 MiB in 8 ways.
    pub const SHAPE: CacheShape = CacheShape { lines: 32 << 10, ways: 8 };

    /// Creates an empty cache, for a trace of `records` records.
    ///
    /// # Errors
    /// [`SimError::Spec`] if a cache cannot have this shape.
    pub fn new(shape: CacheShape, records: u64) -> Result<Self, SimError> {
        Ok(Self { cache: Cache::new(shape)?, warm_up: records / 4, traffic: Traffic::default() })
    }

    /// Serves the next record.
    pub fn serve(&mut self, record: Record) {
        let Record { gap, kind, line } = record;
        let changes = kind == AccessKind::Write;
        let mut asked = Traffic { instructions: u64::from(gap) + 1, ..Traffic::default() };
        if !self.cache.touch(line, changes) {
            asked.reads = u64::from(!changes);
            let victim = self.cache.insert(line, changes);
            asked.writes = u64::from(victim.is_some_and(|victim| victim.dirty));
        }
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else {
            self.traffic += asked;
        }
    }

    /// The traffic of the trace after the first quarter.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(records: &[(AccessKind, u64)]) -> Traffic {
        let shape = CacheShape { lines: 2, ways: 2 };
        let mut cache = LastLevel::new(shape, records.len() as u64).unwrap();
        for (kind, line) in records {
            cache.serve(Record { gap: 9, kind: *kind, line: *line });
        }
        cache.traffic()
    }

    #[test]
    fn misses_are_reads_and_dirty_victims_are_writes() {
        use AccessKind::{Read, Write};
        let records = [
            (Write, 0), // the first quarter
            (Write, 0),
            (Read, 1),
            (Read, 1),
            (Write, 2), // evicts 0
            (Read, 3),  // evicts 1, which is clean
            (Read, 2),
        ];
        let counted = traffic(&records);
        assert_eq!(counted, Traffic { instructions: 60, reads: 2, writes: 1 });
        assert_eq!(counted.per_kilo(counted.writes), 1000.0 / 60.0);
    }

    #[test]
    fn an_empty_trace_has_no_traffic() {
        assert_eq!(traffic(&[]), Traffic::default());
        assert_eq!(traffic(&[]).per_kilo(0), 0.0);
    }
}
