//! The number of trips per second, over time.

use std::time::Duration;

use oblivio_core::view::Operation;

/// Trips of each operation, in the order of [`Operation::ALL`].
type Trips = [u64; Operation::ALL.len()];

/// Counts trips in spans of equal length since the beginning of the recording. If there are too
/// many spans, their length is doubled.
pub(crate) struct Rates {
    span: Duration,
    spans: Vec<Trips>,
    last_trip: Option<u64>,
    end: Duration,
}

/// Minimum length of a span. Shorter ones hold too few trips for a rate.
const SPAN_MIN: Duration = Duration::from_millis(1);
const SPANS_MAX: usize = 240;

impl Default for Rates {
    fn default() -> Self {
        Self { span: SPAN_MIN, spans: Vec::new(), last_trip: None, end: Duration::ZERO }
    }
}

impl Rates {
    /// Records the trip and the time of the next event.
    pub(super) fn record(&mut self, trip: u64, operation: Operation, time: Duration) {
        self.end = self.end.max(time);
        if self.last_trip.replace(trip) == Some(trip) {
            return;
        }
        while self.index(time) >= SPANS_MAX as u128 {
            self.lengthen();
        }
        let index = self.index(time) as usize;
        if self.spans.len() <= index {
            self.spans.resize(index + 1, Trips::default());
        }
        self.spans[index][operation as usize] += 1;
    }

    fn index(&self, time: Duration) -> u128 {
        time.as_nanos() / self.span.as_nanos()
    }

    fn lengthen(&mut self) {
        self.span *= 2;
        self.spans = self.spans.chunks(2).map(sum).collect();
    }

    /// Time from the beginning of the recording to the last event.
    pub(super) fn duration(&self) -> Duration {
        self.end
    }

    /// Returns the length of a span, and the trips of `operation` per second in each of at most
    /// `columns` spans.
    pub(super) fn per_second(&self, operation: Operation, columns: usize) -> (Duration, Vec<f64>) {
        let together = self.spans.len().div_ceil(columns).max(1);
        let span = self.span * together as u32;
        let rate = |trips: &[Trips]| sum(trips)[operation as usize] as f64 / span.as_secs_f64();
        (span, self.spans.chunks(together).map(rate).collect())
    }

    /// Trips of `operation` per second, over the whole recording.
    pub(super) fn average(&self, operation: Operation) -> f64 {
        let seconds = self.end.max(SPAN_MIN).as_secs_f64();
        sum(&self.spans)[operation as usize] as f64 / seconds
    }
}

fn sum(spans: &[Trips]) -> Trips {
    std::array::from_fn(|operation| spans.iter().map(|trips| trips[operation]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_of_any_length_has_a_bounded_number_of_spans_and_loses_no_trip() {
        for step in [1, 300, 1_000_000, 3_600_000_000, u64::MAX / 1000] {
            let mut rates = Rates::default();
            for trip in 0..1000 {
                let time = Duration::from_micros(trip * step);
                rates.record(trip, Operation::Read, time);
                // Another piece of the same trip.
                rates.record(trip, Operation::Read, time);
            }
            let (span, reads) = rates.per_second(Operation::Read, 60);
            assert!(rates.spans.len() <= SPANS_MAX && reads.len() <= 60, "{step}");
            let trips: f64 = reads.iter().map(|rate| rate * span.as_secs_f64()).sum();
            assert_eq!(trips.round(), 1000.0, "{step}");
            let (_, writes) = rates.per_second(Operation::Write, 60);
            assert!(writes.iter().all(|rate| *rate == 0.0));
        }
    }

    #[test]
    fn a_rate_is_trips_per_second_of_its_span() {
        let mut rates = Rates::default();
        for trip in 0..500 {
            // First 1000 per second, then 100 per second.
            let micros = if trip < 250 { trip * 1000 } else { 250_000 + (trip - 250) * 10_000 };
            rates.record(trip, Operation::Write, Duration::from_micros(micros));
        }
        let (_, rate) = rates.per_second(Operation::Write, 10);
        // The first column ends a little after the fast part.
        assert!((850.0..1000.0).contains(&rate[0]), "{rate:?}");
        assert!((90.0..110.0).contains(&rate[5]), "{rate:?}");
        assert!((rates.average(Operation::Write) - 500.0 / 2.74).abs() < 0.1);
    }
}
