//! The view of the store over several runs.

use oblivio_core::store::Piece;
use oblivio_core::view::{Event, Operation};

/// One event in the view of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreEvent {
    /// One piece of one call, or a flush. Trip numbers continue across runs.
    Event(Event),
    /// A crash, which invalidates the handles of the run.
    Crash,
}

/// Collects the view of the store: all events that an adversary in storage sees.
#[derive(Default)]
pub(super) struct View {
    pub(super) events: Vec<StoreEvent>,
    trips: u64,
}

impl View {
    /// Records a call, with the bytes moved for each piece.
    pub(super) fn call(
        &mut self,
        operation: Operation,
        pieces: impl Iterator<Item = (Piece, usize)>,
    ) {
        let trip = self.trips;
        self.trips += 1;
        self.events.extend(pieces.map(|(piece, bytes)| {
            StoreEvent::Event(Event { trip, operation, piece: Some(piece), bytes: bytes as u64 })
        }));
    }

    pub(super) fn flush(&mut self) {
        let event = Event { trip: self.trips, operation: Operation::Flush, piece: None, bytes: 0 };
        self.trips += 1;
        self.events.push(StoreEvent::Event(event));
    }

    pub(super) fn crash(&mut self) {
        self.events.push(StoreEvent::Crash);
    }
}
