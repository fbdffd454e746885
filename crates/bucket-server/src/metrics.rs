//! Counters of the server. They are public: no counter names a client, a volume or a bucket.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A counter that threads share.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(super) fn increment(&self) {
        self.add(1);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts requests by kind.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) hello: Counter,
    pub(super) open: Counter,
    pub(super) resume: Counter,
    pub(super) look: Counter,
    pub(super) remove: Counter,
    pub(super) read: Counter,
    pub(super) write: Counter,
    pub(super) flush: Counter,
    pub(super) compute: Counter,
    pub(super) peer: Counter,
}

/// Counts messages between servers.
#[derive(Default)]
pub(super) struct DealtCounters {
    pub(super) messages: Counter,
    pub(super) bytes: Counter,
}

impl DealtCounters {
    pub(super) fn record(&self, bytes: usize) {
        self.messages.increment();
        self.bytes.add(bytes as u64);
    }
}

/// Counts refused connections.
#[derive(Default)]
pub(super) struct RefusedCounters {
    /// Connections that did not authenticate with a known key, or took too long to do so.
    pub(super) unauthenticated: Counter,
    /// Handshakes displaced by newer ones.
    pub(super) displaced: Counter,
    /// Clients and servers refused because no seat was free.
    pub(super) no_room: Counter,
}

/// The counters of one server since it was bound.
#[derive(Default)]
pub(super) struct Metrics {
    pub(super) connections: Counter,
    pub(super) refused: RefusedCounters,
    pub(super) requests: Requests,
    pub(super) failures: Counter,
    pub(super) fenced: Counter,
    pub(super) defects: Counter,
    pub(super) received_bytes: Counter,
    pub(super) sent_bytes: Counter,
    pub(super) flushes: Histogram,
    /// Messages from other servers to this one.
    pub(super) dealt_in: DealtCounters,
    /// Messages from this server to others.
    pub(super) dealt_out: DealtCounters,
}

/// The current values that are not counters.
pub(super) struct Gauges {
    pub(super) connections: usize,
    pub(super) peers: usize,
    pub(super) handshakes: usize,
    pub(super) stores: usize,
}

impl Metrics {
    /// Formats the metrics in the text format of Prometheus.
    pub(super) fn text(&self, gauges: &Gauges) -> String {
        let mut text = Text::default();
        text.gauge("connections", "Connected clients.", gauges.connections);
        text.gauge("peers", "Connections of other share servers.", gauges.peers);
        text.gauge("handshakes", "Handshakes in progress.", gauges.handshakes);
        text.gauge("stores_open", "Open stores.", gauges.stores);
        text.counter(
            "connections_total",
            "Accepted connections of clients.",
            &[("", &self.connections)],
        );
        let RefusedCounters { unauthenticated, displaced, no_room } = &self.refused;
        text.counter(
            "refused_total",
            "Refused connections.",
            &[
                ("{reason=\"unknown\"}", unauthenticated),
                ("{reason=\"displaced\"}", displaced),
                ("{reason=\"no_room\"}", no_room),
            ],
        );
        let Requests { hello, open, resume, look, remove, read, write, flush, compute, peer } =
            &self.requests;
        text.counter(
            "requests_total",
            "Received requests.",
            &[
                ("{kind=\"hello\"}", hello),
                ("{kind=\"open\"}", open),
                ("{kind=\"resume\"}", resume),
                ("{kind=\"look\"}", look),
                ("{kind=\"remove\"}", remove),
                ("{kind=\"read\"}", read),
                ("{kind=\"write\"}", write),
                ("{kind=\"flush\"}", flush),
                ("{kind=\"compute\"}", compute),
                ("{kind=\"peer\"}", peer),
            ],
        );
        let [failures, fenced] = [("", &self.failures), ("", &self.fenced)];
        text.counter("failures_total", "Requests that were answered with a failure.", &[failures]);
        text.counter("fenced_total", "Connections that were fenced.", &[fenced]);
        let defects = [("", &self.defects)];
        text.counter("defects_total", "Connections ended by a defect of the server.", &defects);
        let [received, sent] = [("", &self.received_bytes), ("", &self.sent_bytes)];
        text.counter("received_bytes_total", "Bytes of received messages.", &[received]);
        text.counter("sent_bytes_total", "Bytes of sent messages.", &[sent]);
        let ways = [("{way=\"in\"}", &self.dealt_in), ("{way=\"out\"}", &self.dealt_out)];
        let messages = ways.map(|(way, dealt)| (way, &dealt.messages));
        text.counter("deals_total", "Messages between share servers.", &messages);
        let bytes = ways.map(|(way, dealt)| (way, &dealt.bytes));
        text.counter("dealt_bytes_total", "Bytes of messages between share servers.", &bytes);
        text.histogram("flush_seconds", "Duration of flushes.", &self.flushes);
        text.0
    }
}

/// The upper bounds of the histogram's buckets, in seconds. The last bucket has no bound.
const SECONDS: [f64; 7] = [0.001, 0.004, 0.016, 0.064, 0.25, 1.0, 4.0];

/// A histogram of durations.
#[derive(Default)]
pub(super) struct Histogram {
    /// The number of durations in each bucket: above the previous bound, and up to the bucket's
    /// own.
    counts: [Counter; SECONDS.len() + 1],
    microseconds: Counter,
}

impl Histogram {
    pub(super) fn observe(&self, time: Duration) {
        let index = SECONDS.iter().position(|end| time.as_secs_f64() <= *end);
        self.counts[index.unwrap_or(SECONDS.len())].increment();
        self.microseconds.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }
}

const PREFIX: &str = "oblivio_store_";

#[derive(Default)]
struct Text(String);

impl Text {
    fn gauge(&mut self, name: &str, help: &str, number: usize) {
        self.head(name, help, "gauge");
        self.line(format_args!("{name} {number}"));
    }

    fn counter(&mut self, name: &str, help: &str, counters: &[(&str, &Counter)]) {
        self.head(name, help, "counter");
        for (labels, counter) in counters {
            self.line(format_args!("{name}{labels} {}", counter.get()));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        let ends = SECONDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (end, counter) in ends.zip(&histogram.counts) {
            count += counter.get();
            self.line(format_args!("{name}_bucket{{le=\"{end}\"}} {count}"));
        }
        let seconds = histogram.microseconds.get() as f64 / 1e6;
        self.line(format_args!("{name}_sum {seconds}"));
        self.line(format_args!("{name}_count {count}"));
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{PREFIX}{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_format_of_prometheus() {
        let metrics = Metrics::default();
        metrics.requests.read.add(7);
        for milliseconds in [1, 2, 100, 9000] {
            metrics.flushes.observe(Duration::from_millis(milliseconds));
        }
        let text = metrics.text(&Gauges { connections: 3, peers: 0, handshakes: 0, stores: 2 });
        for line in [
            "# TYPE oblivio_store_connections gauge",
            "oblivio_store_connections 3",
            "oblivio_store_requests_total{kind=\"read\"} 7",
            "oblivio_store_refused_total{reason=\"unknown\"} 0",
            "oblivio_store_flush_seconds_bucket{le=\"0.001\"} 1",
            "oblivio_store_flush_seconds_bucket{le=\"0.004\"} 2",
            "oblivio_store_flush_seconds_bucket{le=\"0.25\"} 3",
            "oblivio_store_flush_seconds_bucket{le=\"+Inf\"} 4",
            "oblivio_store_flush_seconds_sum 9.103",
            "oblivio_store_flush_seconds_count 4",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
        }
        assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with(PREFIX)));
    }
}
