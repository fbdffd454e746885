//! The results of a run, as text and as JSON.

use oblivio_sim::LINE_BYTES;
use oblivio_sim::controller::ControllerTally;
use oblivio_sim::system::{Outcome, SystemSpec};
use serde_json::json;

/// The results of a finished run.
pub(super) struct Report {
    pub(super) machine: String,
    pub(super) trace: String,
    pub(super) seed: u64,
    pub(super) spec: SystemSpec,
    pub(super) outcome: Outcome,
    /// Wall-clock seconds of the whole run.
    pub(super) seconds: f64,
    /// Wall-clock seconds of the run after the warm-up; `None` if the run ended within the warm-up.
    pub(super) measured_seconds: Option<f64>,
}

impl Report {
    pub(super) fn text(&self) -> String {
        let Outcome { cycles, records, processor, memory } = &self.outcome;
        let mut rows = vec![
            ("machine", self.machine.clone()),
            ("trace", format!("{}, {records} records", self.trace)),
            ("cycles", format!("{cycles}, {:.1} a record", over(*cycles, *records))),
            ("instructions", processor.instructions.to_string()),
            (
                "LLC misses",
                format!("{} reads, {} writes", processor.read_misses, processor.write_misses),
            ),
        ];
        rows.extend(memory.controller.as_ref().map(|tally| ("paths", paths(tally))));
        rows.extend(memory.controller.as_ref().map(|tally| {
            let on_client = tally.served_on_client + tally.forwarded;
            ("no path", format!("{on_client} requests were served on the client"))
        }));
        let switched = memory.controller.as_ref().filter(|tally| tally.context_switches > 0);
        rows.extend(switched.map(|tally| ("switched out", switched_out(tally))));
        rows.push(("DRAM", self.dram()));
        rows.extend(self.energy().map(|energy| ("energy", energy)));
        rows.push(("simulated", self.speed()));
        rows.into_iter().map(|(what, value)| format!("{what:13} {value}\n")).collect()
    }

    pub(super) fn json(&self) -> String {
        let Self { machine, trace, seed, spec, outcome, seconds, measured_seconds } = self;
        let report = json!({
            "machine": machine,
            "trace": trace,
            "seed": seed,
            "spec": spec,
            "outcome": outcome,
            "cycles_per_record": over(outcome.cycles, outcome.records),
            "dram_gb_per_second": self.gb_per_second(),
            "dram_row_hits": outcome.memory.dram.row_hits(),
            "dram_nanojoules": outcome.dram_energy(spec).ok().map(|energy| energy.total()),
            "seconds": seconds,
            "measured_seconds": measured_seconds,
            "paths_per_second": self.paths_per_second(),
            "version": env!("CARGO_PKG_VERSION"),
        });
        format!("{report:#}")
    }

    fn dram(&self) -> String {
        let peak = self.spec.dram.peak_gb_per_second(self.spec.channels);
        let hits = self.outcome.memory.dram.row_hits();
        let hits = hits.map(|hits| format!(", {:.1} % of lines hit an open row", 100.0 * hits));
        format!("{:.2} of {peak:.1} GB/s{}", self.gb_per_second(), hits.unwrap_or_default())
    }

    /// Describes the energy of DRAM, if the chips' currents are known.
    fn energy(&self) -> Option<String> {
        let energy = self.outcome.dram_energy(&self.spec).ok()?;
        let (total, lines) = (energy.total(), self.outcome.memory.dram.lines());
        let of_line = if lines == 0 { 0.0 } else { total / lines as f64 };
        Some(format!("{:.3} mJ in DRAM, {of_line:.1} nJ a line", total / 1e6))
    }

    /// Gigabytes read and written per second of simulated time.
    fn gb_per_second(&self) -> f64 {
        let bytes = self.outcome.memory.dram.lines() * LINE_BYTES;
        // Bytes per microsecond are megabytes per second.
        over(bytes, self.outcome.cycles) * f64::from(self.spec.processor.clock_mhz) / 1000.0
    }

    fn speed(&self) -> String {
        let paths = self.paths_per_second();
        let paths = paths.map(|speed| format!(", {speed:.0} paths a second after the warm-up"));
        format!("in {:.1} s{}", self.seconds, paths.unwrap_or_default())
    }

    fn paths_per_second(&self) -> Option<f64> {
        let paths = self.outcome.memory.controller.as_ref()?.paths();
        self.measured_seconds.map(|seconds| paths as f64 / seconds)
    }
}

fn paths(tally: &ControllerTally) -> String {
    let position_map = (1..).zip(&tally.position_map);
    let position_map =
        position_map.map(|(level, count)| format!("position map {level}: {count}, "));
    format!(
        "{}: data {}, {}evictions {}, dummies {}",
        tally.paths(),
        tally.data,
        position_map.collect::<String>(),
        tally.evictions,
        tally.dummies
    )
}

fn switched_out(tally: &ControllerTally) -> String {
    let ControllerTally { context_switches, flush_evictions, busy_flushing, .. } = tally;
    format!(
        "{context_switches} times: {flush_evictions} of the evictions, which took {busy_flushing} \
         cycles, and {} cycles to move the tree top to memory and back",
        tally.moving_tree_top
    )
}

fn over(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}
