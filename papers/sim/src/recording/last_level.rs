//! What a trace asks of memory past a last-level cache: the figures of IR-ORAM, Table II.
//!
//! No processor and no time: each record in turn. The first quarter of a trace fills the cache; what
//! comes after is counted.

use std::ops::AddAssign;

use crate::SimError;
use crate::cache::{Cache, CacheShape};
use crate::trace::{Kind, Record};

/// Requests to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Instructions in which they came.
    pub instructions: u64,
    /// Lines that the program waited for.
    pub reads: u64,
    /// Changed lines that went back.
    pub writes: u64,
}

impl Traffic {
    /// Of `requests`, so many per 1000 instructions (MPKI).
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

/// A last-level cache: write-back, and a line written to it whole is not fetched.
#[derive(Clone, Debug)]
pub struct LastLevel {
    cache: Cache,
    /// Records that still only fill the cache.
    warm_up: u64,
    traffic: Traffic,
}

impl LastLevel {
    /// 2 MiB of 8 ways (IR-ORAM, Table I).
    pub const SHAPE: CacheShape = CacheShape { lines: 32 << 10, ways: 8 };

    /// An empty cache, for a trace of so many records.
    ///
    /// # Errors
    /// [`SimError::Spec`] when there is no such cache.
    pub fn new(shape: CacheShape, records: u64) -> Result<Self, SimError> {
        Ok(Self { cache: Cache::new(shape)?, warm_up: records / 4, traffic: Traffic::default() })
    }

    /// Takes the next record.
    pub fn serve(&mut self, record: Record) {
        let Record { gap, kind, line } = record;
        let changes = kind == Kind::Write;
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

    /// What was asked of memory after the first quarter.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(records: &[(Kind, u64)]) -> Traffic {
        let shape = CacheShape { lines: 2, ways: 2 };
        let mut cache = LastLevel::new(shape, records.len() as u64).unwrap();
        for (kind, line) in records {
            cache.serve(Record { gap: 9, kind: *kind, line: *line });
        }
        cache.traffic()
    }

    #[test]
    fn misses_are_reads_and_changed_victims_are_writes() {
        use Kind::{Read, Write};
        let records = [
            (Write, 0), // the first quarter
            (Write, 0),
            (Read, 1),
            (Read, 1),
            (Write, 2), // 0 goes
            (Read, 3),  // 1 goes, unchanged
            (Read, 2),
        ];
        let counted = traffic(&records);
        assert_eq!(counted, Traffic { instructions: 60, reads: 2, writes: 1 });
        assert_eq!(counted.per_kilo(counted.writes), 1000.0 / 60.0);
    }

    #[test]
    fn a_trace_of_nothing_asks_for_nothing() {
        assert_eq!(traffic(&[]), Traffic::default());
        assert_eq!(traffic(&[]).per_kilo(0), 0.0);
    }
}
