//! The results of a benchmark.

use std::time::Duration;

use clap::ValueEnum;
use oblivio_core::view::Total;
use serde_json::{Value, json};

use super::super::machine::Machine;
use super::super::plan::size;
use super::bench_volume::cache_bytes;
use super::drive::Outcome;
use super::load::{Action, Load};
use super::spending::TimeByPurpose;
use crate::args::BenchArgs;

/// One load and its results.
pub(super) struct Figures {
    pub(super) load: Load,
    pub(super) outcome: Outcome,
    /// Time until everything written was durable.
    pub(super) elapsed: Duration,
    pub(super) read: Traffic,
    pub(super) written: Traffic,
    /// Time that the thread of the volume spent during the load, by purpose.
    pub(super) spent: TimeByPurpose,
    /// Processor time of all threads of this process during the load.
    pub(super) processors: Duration,
}

/// Traffic between client and storage in one direction.
#[derive(Clone, Copy)]
pub(super) struct Traffic {
    trips: u64,
    bytes: u64,
}

impl Traffic {
    /// The difference of two totals.
    pub(super) fn between(before: Total, after: Total) -> Self {
        Self { trips: after.trips - before.trips, bytes: after.bytes - before.bytes }
    }
}

impl Figures {
    fn requests_per_second(&self) -> f64 {
        self.outcome.requests as f64 / self.elapsed.as_secs_f64()
    }

    fn bytes_per_second(&self) -> f64 {
        self.requests_per_second() * self.load.request_bytes as f64
    }

    fn per_request(&self, count: u64) -> f64 {
        count as f64 / self.outcome.requests.max(1) as f64
    }

    fn trips_per_request(&self) -> f64 {
        self.per_request(self.read.trips + self.written.trips)
    }

    /// Bytes that storage wrote per requested byte. `None` if the load does not write.
    fn write_amplification(&self) -> Option<f64> {
        let writes = matches!(self.load.action, Action::Write | Action::DurableWrite);
        writes.then(|| self.per_request(self.written.bytes) / self.load.request_bytes as f64)
    }

    fn latencies(&self) -> [Duration; 5] {
        let latencies = &self.outcome.latencies;
        [
            latencies.percentile(50.0),
            latencies.percentile(95.0),
            latencies.percentile(99.0),
            latencies.percentile(99.9),
            latencies.max(),
        ]
    }

    /// The time of a request by purpose, in microseconds, in the order of [`SPENDING_HEAD`].
    fn micros_per_request(&self) -> [f64; 8] {
        let TimeByPurpose { read, write, flush, log, client } = self.spent;
        let elapsed = self.elapsed;
        let rest = self.spent.rest_of(elapsed);
        [client, read, write, flush, log, rest, elapsed, self.processors]
            .map(|time| time.as_secs_f64() * 1e6 / self.outcome.requests.max(1) as f64)
    }

    fn spending_row(&self) -> Vec<String> {
        let micros = self.micros_per_request().map(|micros| format!("{micros:.1}"));
        [self.load.name.to_owned()].into_iter().chain(micros).collect()
    }

    fn row(&self) -> Vec<String> {
        let mut cells = vec![
            self.load.name.to_owned(),
            size(self.load.request_bytes as f64),
            format!("{:.0}", self.requests_per_second()),
            format!("{:.1}", self.bytes_per_second() / 1e6),
        ];
        cells.extend(self.latencies().map(|latency| format!("{:.2}", latency.as_secs_f64() * 1e3)));
        cells.extend([
            size(self.per_request(self.read.bytes)),
            size(self.per_request(self.written.bytes)),
            self.write_amplification().map_or_else(String::new, |times| format!("{times:.1}")),
            format!("{:.2}", self.trips_per_request()),
        ]);
        cells
    }

    fn json(&self) -> Value {
        let [p50, p95, p99, p99_9, max] =
            self.latencies().map(|latency| latency.as_secs_f64() * 1e6);
        let [client, storage_read, storage_write, storage_flush, log, waiting, all, processors] =
            self.micros_per_request();
        json!({
            "name": self.load.name,
            "request_bytes": self.load.request_bytes,
            "requests": self.outcome.requests,
            "seconds": self.elapsed.as_secs_f64(),
            "requests_per_second": self.requests_per_second(),
            "bytes_per_second": self.bytes_per_second(),
            "latency_microseconds": {
                "p50": p50, "p95": p95, "p99": p99, "p99.9": p99_9, "max": max,
            },
            "storage_bytes_read_per_request": self.per_request(self.read.bytes),
            "storage_bytes_written_per_request": self.per_request(self.written.bytes),
            "storage_trips_per_request": self.trips_per_request(),
            "write_amplification": self.write_amplification(),
            "microseconds_per_request": {
                "client": client,
                "storage_read": storage_read,
                "storage_write": storage_write,
                "storage_flush": storage_flush,
                "log": log,
                "waiting": waiting,
                "all": all,
                "processors": processors,
            },
        })
    }
}

const HEAD: [&str; 13] = [
    "",
    "request",
    "req/s",
    "MB/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "reads/req",
    "writes/req",
    "write x",
    "trips/req",
];

const SPENDING_HEAD: [&str; 9] =
    ["us/req", "client", "read", "write", "flush", "log", "waiting", "all", "processors"];

const LEGEND: &str = "\
reads, writes, trips: what storage saw for one request; write x: bytes that storage wrote for one
byte of a request";

const SPENDING_LEGEND: &str = "\
Time of the thread that all requests pass. client: maps, stash, cipher, integrity; read, write,
flush: in storage; log: in the client's directory; waiting: for requests or for a processor.
processors: processor time of all threads together";

pub(super) fn text(args: &BenchArgs, figures: &[Figures]) -> String {
    let head = format!(
        "a disk of {}, {} requests at once, a cache of {}",
        size(args.size as f64),
        args.queue_depth,
        size(cache_bytes(args.size) as f64),
    );
    let head = [vec![head], Machine::here().remarks()].concat().join("\n");
    let rates = table(&HEAD, figures.iter().map(Figures::row));
    let spending = table(&SPENDING_HEAD, figures.iter().map(Figures::spending_row));
    [head, rates, LEGEND.into(), spending, SPENDING_LEGEND.into()].join("\n\n")
}

/// A text table. Names are left-aligned, figures right-aligned.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = head.iter().map(|&cell| cell.to_owned()).collect();
    let table: Vec<Vec<_>> = [head].into_iter().chain(rows).collect();
    let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..table[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    table.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn json(args: &BenchArgs, figures: &[Figures]) -> Value {
    let sync_moves = args.sync_moves.to_possible_value();
    json!({
        "disk_bytes": args.size,
        "queue_depth": args.queue_depth,
        "cache_bytes": cache_bytes(args.size),
        "direct": args.direct,
        "machine": Machine::here().json(),
        "sync_moves": sync_moves.as_ref().map(|name| name.get_name()),
        "loads": figures.iter().map(Figures::json).collect::<Vec<_>>(),
    })
}
