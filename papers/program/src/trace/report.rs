//! Statistics of traces, as a table and as JSON.

use oblivio_cli::{output, table};
use oblivio_sim::trace::{Trace, TraceStats};
use serde_json::{Value, json};

use crate::error::ProgramError;

/// A trace's name and statistics.
pub(super) struct Entry {
    name: String,
    stats: TraceStats,
}

/// Base-2 logarithms of the lines of the caches whose hits the table shows: 64 KiB, 2 MiB, 64 MiB.
const REUSE_LOG2_LINES: [usize; 3] = [10, 15, 20];

const HEAD: [&str; 12] = [
    "trace",
    "records",
    "reads",
    "writes",
    "instructions",
    "reads/1000",
    "writes/1000",
    "lines",
    "pages",
    "in 64 KiB",
    "in 2 MiB",
    "in 64 MiB",
];

impl Entry {
    pub(super) fn from_trace(trace: &Trace) -> Self {
        Self { name: trace.name().to_owned(), stats: TraceStats::from_trace(trace) }
    }

    fn row(&self) -> [String; HEAD.len()] {
        let stats = &self.stats;
        let rate =
            |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}"));
        let [small, middle, large] =
            REUSE_LOG2_LINES.map(|log2_lines| format!("{:.1} %", 100.0 * stats.reuse(log2_lines)));
        [
            self.name.clone(),
            stats.records().to_string(),
            stats.reads.to_string(),
            stats.writes.to_string(),
            stats.instructions.to_string(),
            rate(stats.reads_per_1000()),
            rate(stats.writes_per_1000()),
            stats.lines.to_string(),
            stats.pages.to_string(),
            small,
            middle,
            large,
        ]
    }

    fn json(&self) -> Value {
        let stats = &self.stats;
        let reuse =
            |log2_lines| json!({ "lines": 1u64 << log2_lines, "share": stats.reuse(log2_lines) });
        json!({
            "name": self.name,
            "records": stats.records(),
            "reads": stats.reads,
            "writes": stats.writes,
            "instructions": stats.instructions,
            "reads_per_1000_instructions": stats.reads_per_1000(),
            "writes_per_1000_instructions": stats.writes_per_1000(),
            "lines": stats.lines,
            "footprint_bytes": stats.footprint_bytes(),
            "pages": stats.pages,
            "reuse": (0..=stats.reuse_log2_lines_max()).map(reuse).collect::<Vec<_>>(),
        })
    }
}

/// Prints all of `entries`.
pub(super) fn print(entries: &[Entry], as_json: bool) -> Result<(), ProgramError> {
    if as_json {
        let entries: Value = entries.iter().map(Entry::json).collect();
        return Ok(output::print(&format!("{entries:#}"))?);
    }
    let rows = entries.iter().map(Entry::row);
    let table =
        table::aligned(&[HEAD.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>());
    Ok(output::print(&format!(
        "{table}\nreads/1000, writes/1000: per 1000 instructions; lines: distinct lines of 64 \
         bytes; pages: distinct pages of 4 KiB; in 64 KiB, …: records whose line is among the last \
         64 KiB, … of distinct lines requested"
    ))?)
}
