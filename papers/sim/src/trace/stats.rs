//! Statistics of a trace.

use std::collections::HashSet;

use super::{AccessKind, PAGE_LINES, Trace, reuse};
use crate::LINE_BYTES;

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStats {
    /// The number of reads.
    pub reads: u64,
    /// The number of writes.
    pub writes: u64,
    /// Number of instructions; see [`Record::instructions`](super::Record::instructions).
    pub instructions: u64,
    /// Number of different lines.
    pub lines: u64,
    /// Number of different pages of [`PAGE_BYTES`](super::PAGE_BYTES).
    pub pages: u64,
    /// The number of records by reuse distance. Element `k` counts records whose line was among the
    /// 2^k lines used last, but not among the last 2^(k-1).
    reused: Vec<u64>,
}

impl TraceStats {
    /// Measures `trace`. For `n` records, this takes time O(n log n).
    pub fn from_trace(trace: &Trace) -> Self {
        let records = trace.records.as_slice();
        let lines: HashSet<u64> = records.iter().map(|record| record.line).collect();
        let pages: HashSet<u64> = lines.iter().map(|line| line / PAGE_LINES).collect();
        let reads = records.iter().filter(|record| record.kind == AccessKind::Read).count();
        Self {
            reads: reads as u64,
            writes: (records.len() - reads) as u64,
            instructions: trace.instructions(),
            lines: lines.len() as u64,
            pages: pages.len() as u64,
            reused: reuse::distances(records.iter().map(|record| record.line)),
        }
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.reads + self.writes
    }

    /// Reads per 1000 instructions; `None` without instructions.
    pub fn reads_per_1000(&self) -> Option<f64> {
        self.per_1000(self.reads)
    }

    /// Writes per 1000 instructions; `None` without instructions.
    pub fn writes_per_1000(&self) -> Option<f64> {
        self.per_1000(self.writes)
    }

    fn per_1000(&self, count: u64) -> Option<f64> {
        (self.instructions > 0).then(|| 1000.0 * count as f64 / self.instructions as f64)
    }

    /// The number of bytes of all different lines.
    pub fn footprint_bytes(&self) -> u64 {
        self.lines * LINE_BYTES
    }

    /// The fraction of records whose line was among the `2^log2_lines` lines used last. This is the
    /// hit rate of a fully associative LRU cache of that size.
    pub fn reuse(&self, log2_lines: usize) -> f64 {
        let held: u64 = self.reused.iter().take(log2_lines + 1).sum();
        held as f64 / self.records() as f64
    }

    /// The smallest `log2_lines` at which [`TraceStats::reuse`] reaches its maximum.
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
        // 8 instructions: gaps of 3 and 2, and three reads. Lines 1, 2, 1, 64, 1.
        let stats = TraceStats::from_trace(&read("3 64 128\n0 64 4096\n2 64").unwrap());
        assert_eq!((stats.records(), stats.reads, stats.writes), (5, 3, 2));
        assert_eq!((stats.instructions, stats.lines, stats.pages), (8, 3, 2));
        assert_eq!((stats.reads_per_1000(), stats.writes_per_1000()), (Some(375.0), Some(250.0)));
        assert_eq!(stats.footprint_bytes(), 192);
        assert_eq!([0, 1, 2, 60].map(|log2_lines| stats.reuse(log2_lines)), [0.0, 0.4, 0.4, 0.4]);
        assert_eq!(stats.reuse_log2_lines_max(), 1);
    }

    #[test]
    fn without_instructions_there_is_no_rate() {
        let trace = Trace::new("a", vec![record(0, AccessKind::Write, 1)]).unwrap();
        let stats = TraceStats::from_trace(&trace);
        assert_eq!((stats.reads_per_1000(), stats.writes_per_1000()), (None, None));
        assert_eq!((stats.reuse(9), stats.reuse_log2_lines_max()), (0.0, 0));
    }
}
