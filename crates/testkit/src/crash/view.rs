//! What the store saw over several runs.

use oblivio_core::store::Piece;
use oblivio_core::view::{Event, Operation};

/// One thing that the store saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// One piece of one call, or a flush. Trips are numbered over all runs.
    Event(Event),
    /// A crash: handles of the run before are dead.
    Crash,
}

/// Collects what the store sees.
#[derive(Default)]
pub(super) struct View {
    pub(super) seen: Vec<Seen>,
    trips: u64,
}

impl View {
    /// A call for pieces, each with as many bytes as moved.
    pub(super) fn call(
        &mut self,
        operation: Operation,
        pieces: impl Iterator<Item = (Piece, usize)>,
    ) {
        let trip = self.trips;
        self.trips += 1;
        self.seen.extend(pieces.map(|(piece, bytes)| {
            Seen::Event(Event { trip, operation, piece: Some(piece), bytes: bytes as u64 })
        }));
    }

    pub(super) fn flush(&mut self) {
        let event = Event { trip: self.trips, operation: Operation::Flush, piece: None, bytes: 0 };
        self.trips += 1;
        self.seen.push(Seen::Event(event));
    }

    pub(super) fn crash(&mut self) {
        self.seen.push(Seen::Crash);
    }
}
