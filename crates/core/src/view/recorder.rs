//! The store that sees what storage sees.

use super::{Event, EventSink, Operation};
use crate::error::StoreError;
use crate::store::{BucketStore, Fill, Frames, Piece, TreeId, TreeShape};

/// Wraps a store and tells `sink` of every call. It changes nothing: the store below gets the same
/// calls, the scheme above the same answers.
///
/// It sits below the seal: what passes here is names of buckets and ciphertext, so it cannot see a
/// secret by construction, and it sees everything that storage does.
///
/// A call that fails was seen too: its pieces are recorded as asked, without the bytes that did not
/// move.
pub struct Recorder<S, K> {
    store: S,
    sink: K,
    trips: u64,
}

impl<S: BucketStore, K: EventSink> Recorder<S, K> {
    /// Records what `store` sees from now on.
    pub fn new(store: S, sink: K) -> Self {
        Self { store, sink, trips: 0 }
    }

    /// What was recorded.
    pub fn sink(&self) -> &K {
        &self.sink
    }

    /// The same, to be emptied or changed.
    pub fn sink_mut(&mut self) -> &mut K {
        &mut self.sink
    }

    /// The store below. What is done to it directly is not recorded.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Ends the recording.
    pub fn into_parts(self) -> (S, K) {
        (self.store, self.sink)
    }

    fn begin(&mut self, operation: Operation) -> (&mut S, Call<'_, K>) {
        let trip = self.trips;
        self.trips += 1;
        (&mut self.store, Call { sink: &mut self.sink, trip, operation })
    }
}

/// One call under way.
struct Call<'r, K> {
    sink: &'r mut K,
    trip: u64,
    operation: Operation,
}

impl<K: EventSink> Call<'_, K> {
    /// Records all pieces, with the frames that moved. There may be fewer frames than pieces: the
    /// store is not trusted.
    fn record(&mut self, pieces: &[Piece], frames: Option<Frames<'_>>) {
        for (i, piece) in pieces.iter().enumerate() {
            let moved = frames.filter(|frames| i < frames.len());
            self.record_one(Some(*piece), moved.map_or(&[], |frames| frames.get(i)));
        }
    }

    fn record_one(&mut self, piece: Option<Piece>, contents: &[u8]) {
        let bytes = contents.len() as u64;
        let event = Event { trip: self.trip, operation: self.operation, piece, bytes };
        self.sink.record(&event, contents);
    }
}

impl<S: BucketStore, K: EventSink> BucketStore for Recorder<S, K> {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.store.shape(tree)
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        let (store, mut call) = self.begin(Operation::Prefetch);
        call.record(pieces, None);
        store.prefetch(pieces);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        let (store, mut call) = self.begin(Operation::Read);
        let answer = store.read(pieces);
        call.record(pieces, answer.as_ref().ok().copied());
        answer
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        let (store, mut call) = self.begin(Operation::Write);
        let mut filled = false;
        let answer = store.write(pieces, &mut |blanks| {
            let sealed = fill(blanks);
            call.record(pieces, Some(sealed.frames()));
            filled = true;
            sealed
        });
        if !filled {
            call.record(pieces, None);
        }
        answer
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let (store, mut call) = self.begin(Operation::Flush);
        call.record_one(None, &[]);
        store.flush()
    }
}
