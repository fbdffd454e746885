//! What a trace is like, in numbers.

use std::collections::HashSet;

use super::{Kind, PAGE_LINES, Trace, reuse};
use crate::LINE_BYTES;

/// What a trace is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStats {
    /// Records that read.
    pub reads: u64,
    /// Records that write.
    pub writes: u64,
    /// Instructions covered; see [`Record::instructions`](super::Record::instructions).
    pub instructions: u64,
    /// Lines that are asked for, each counted once.
    pub lines: u64,
    /// Pages of [`PAGE_BYTES`](super::PAGE_BYTES) that are touched, each counted once.
    pub pages: u64,
    /// For each `k`, the records whose line was among the 2^k lines asked for last, and not among
    /// half as many.
    reused: Vec<u64>,
}

impl TraceStats {
    /// Measures `trace`, in time of its records times their logarithm.
    pub fn of(trace: &Trace) -> Self {
        let records = trace.records.as_slice();
        let lines: HashSet<u64> = records.iter().map(|record| record.line).collect();
        let pages: HashSet<u64> = lines.iter().map(|line| line / PAGE_LINES).collect();
        let reads = records.iter().filter(|record| record.kind == Kind::Read).count();
        Self {
            reads: reads as u64,
            writes: (records.len() - reads) as u64,
            instructions: trace.instructions(),
            lines: lines.len() as u64,
            pages: pages.len() as u64,
            reused: reuse::distances(records.iter().map(|record| record.line)),
        }
    }

    /// Reads and writes together.
    pub fn records(&self) -> u64 {
        self.reads + self.writes
    }

    /// Reads for 1000 instructions; none if there is no instruction.
    pub fn reads_per_1000(&self) -> Option<f64> {
        self.per_1000(self.reads)
    }

    /// Writes for 1000 instructions; none if there is no instruction.
    pub fn writes_per_1000(&self) -> Option<f64> {
        self.per_1000(self.writes)
    }

    fn per_1000(&self, count: u64) -> Option<f64> {
        (self.instructions > 0).then(|| 1000.0 * count as f64 / self.instructions as f64)
    }

    /// Bytes of all lines that are asked for.
    pub fn footprint_bytes(&self) -> u64 {
        self.lines * LINE_BYTES
    }

    /// The part of all records whose line was among the `2^log2_lines` lines asked for last: what a
    /// cache of so many lines would serve that lets the line unused for longest go (LRU).
    pub fn reuse(&self, log2_lines: usize) -> f64 {
        let held: u64 = self.reused.iter().take(log2_lines + 1).sum();
        held as f64 / self.records() as f64
    }

    /// The smallest `log2_lines` for which [`TraceStats::reuse`] grows no more.
    pub fn reuse_log2_lines_max(&self) -> usize {
        self.reused.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::{read, record};

    #[test]
    fn figures_by_hand() {
        // 8 instructions: gaps 3 and 2, and three reads. Lines 1, 2, 1, 64, 1.
        let stats = TraceStats::of(&read("3 64 128\n0 64 4096\n2 64").unwrap());
        assert_eq!((stats.records(), stats.reads, stats.writes), (5, 3, 2));
        assert_eq!((stats.instructions, stats.lines, stats.pages), (8, 3, 2));
        assert_eq!((stats.reads_per_1000(), stats.writes_per_1000()), (Some(375.0), Some(250.0)));
        assert_eq!(stats.footprint_bytes(), 192);
        assert_eq!([0, 1, 2, 60].map(|log2_lines| stats.reuse(log2_lines)), [0.0, 0.4, 0.4, 0.4]);
        assert_eq!(stats.reuse_log2_lines_max(), 1);
    }

    #[test]
    fn without_instructions_there_is_no_rate() {
        let trace = Trace::new("a", vec![record(0, Kind::Write, 1)]).unwrap();
        let stats = TraceStats::of(&trace);
        assert_eq!((stats.reads_per_1000(), stats.writes_per_1000()), (None, None));
        assert_eq!((stats.reuse(9), stats.reuse_log2_lines_max()), (0.0, 0));
    }
}
