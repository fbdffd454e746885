//! The result of a recording, as text and as JSON.

use std::path::PathBuf;

use oblivio_sim::recording::Traffic;
use oblivio_store::path_text;
use serde_json::{Value, json};

/// Counts of a recorded trace.
pub(super) struct Summary {
    pub(super) path: PathBuf,
    /// The traffic of the records: reads, writes, and instructions.
    pub(super) misses: Traffic,
    /// The traffic past a last-level cache (2 MiB, 8 ways), after the first quarter of the records.
    pub(super) past_last_level: Traffic,
    pub(super) pages: u64,
    /// Instructions emulated, including the warm-up.
    pub(super) emulated: u64,
    pub(super) seconds: f64,
}

impl Summary {
    pub(super) fn text(&self) -> String {
        let Self { path, misses, past_last_level, pages, emulated, seconds } = self;
        format!(
            "trace             {}\n\
             records           {} reads, {} writes in {} instructions ({:.2} and {:.2} per 1000)\n\
             past 2 MiB, 8-way {:.2} reads and {:.2} writes per 1000 instructions\n\
             pages             {pages} of 4 KiB\n\
             emulated          {:.0} million instructions in {seconds:.1} s, \
             {:.0} million a second",
            path.display(),
            misses.reads,
            misses.writes,
            misses.instructions,
            misses.per_kilo(misses.reads),
            misses.per_kilo(misses.writes),
            past_last_level.per_kilo(past_last_level.reads),
            past_last_level.per_kilo(past_last_level.writes),
            *emulated as f64 / 1e6,
            self.millions_a_second(),
        )
    }

    pub(super) fn json(&self) -> Value {
        let Self { path, misses, past_last_level, pages, emulated, seconds } = self;
        json!({
            "trace": path_text(path),
            "instructions": misses.instructions,
            "reads": misses.reads,
            "writes": misses.writes,
            "reads_per_1000": misses.per_kilo(misses.reads),
            "writes_per_1000": misses.per_kilo(misses.writes),
            "past_last_level": {
                "reads_per_1000": past_last_level.per_kilo(past_last_level.reads),
                "writes_per_1000": past_last_level.per_kilo(past_last_level.writes),
            },
            "pages": pages,
            "instructions_emulated": emulated,
            "seconds": seconds,
        })
    }

    pub(super) fn millions_a_second(&self) -> f64 {
        self.emulated as f64 / 1e6 / self.seconds
    }
}
