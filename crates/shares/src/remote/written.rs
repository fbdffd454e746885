//! Remembers the pieces written since the store was opened, for servers that were missing and
//! return.

use oblivio_core::StoreError;
use oblivio_core::store::{BucketStore, Piece, SealedTrip};

/// The latest value of every written piece. Only records are written to share servers, so this
/// stays small.
#[derive(Default)]
pub(super) struct Written {
    trips: Vec<Trip>,
}

/// One write, without the pieces that a later write has replaced.
struct Trip {
    /// The pieces, each with its index in the write.
    pieces: Vec<(Piece, usize)>,
    sealed: SealedTrip,
}

impl Written {
    /// Adds a write. It replaces earlier writes of the same pieces.
    pub(super) fn add(&mut self, pieces: &[Piece], sealed: SealedTrip) {
        for trip in &mut self.trips {
            trip.pieces.retain(|(piece, _)| !pieces.contains(piece));
        }
        self.trips.retain(|trip| !trip.pieces.is_empty());
        let pieces = pieces.iter().copied().zip(0..).collect();
        self.trips.push(Trip { pieces, sealed });
    }

    /// Writes the latest value of every written piece to a server.
    pub(super) fn write_to(&self, server: &mut impl BucketStore) -> Result<(), StoreError> {
        self.trips.iter().try_for_each(|Trip { pieces, sealed }| {
            let (pieces, which): (Vec<_>, Vec<_>) = pieces.iter().copied().unzip();
            server.write(&pieces, &mut |blanks| sealed.put(&which, blanks))
        })
    }
}
