//! A sink that only counts.

use super::{Event, EventSink, Operation};

/// The number of calls of each operation, and the bytes they moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// The totals of all operations, in the order of [`Operation::ALL`].
    totals: [Total; Operation::ALL.len()],
    last_trip: Option<u64>,
}

/// The sum over all calls of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Number of calls. Calls without pieces have no event and are not counted.
    pub trips: u64,
    /// Number of pieces. A flush has no piece and counts as one.
    pub events: u64,
    /// Number of bytes moved.
    pub bytes: u64,
}

impl Tally {
    /// A tally without calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// The total of `operation`.
    pub fn of(&self, operation: Operation) -> Total {
        self.totals[operation as usize]
    }
}

impl EventSink for Tally {
    fn record(&mut self, event: &Event, _: &[u8]) {
        let total = &mut self.totals[event.operation as usize];
        total.trips += u64::from(self.last_trip != Some(event.trip));
        total.events += 1;
        // A view file may contain any number.
        total.bytes = total.bytes.saturating_add(event.bytes);
        self.last_trip = Some(event.trip);
    }
}
