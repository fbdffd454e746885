//! A store that records what storage sees.

use super::{Event, EventSink, Operation};
use crate::error::StoreError;
use crate::pieces::{Frames, Piece, TreeId, TreeShape};
use crate::store::{BucketStore, Capabilities, Fill};

/// Wraps a store and reports every call to `sink`. It changes nothing: the store gets the same
/// calls, and the scheme the same answers, as without the recorder.
///
/// The recorder sits below the seal. Only names of buckets and ciphertext pass it, so it cannot see
/// a secret, and it sees everything that storage does.
///
/// Failed calls are recorded too: their pieces as requested, with only the bytes that moved.
pub struct Recorder<S, K> {
    store: S,
    sink: K,
    trips: u64,
}

impl<S: BucketStore, K: EventSink> Recorder<S, K> {
    /// A recorder of everything that `store` sees from now on.
    pub fn new(store: S, sink: K) -> Self {
        Self { store, sink, trips: 0 }
    }

    /// The sink that gets the events.
    pub fn sink(&self) -> &K {
        &self.sink
    }

    /// The sink that gets the events, for changes.
    pub fn sink_mut(&mut self) -> &mut K {
        &mut self.sink
    }

    /// The wrapped store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The wrapped store, for changes. Direct calls to it are not recorded.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Records a call that storage received without this recorder, with the bytes that moved for
    /// each piece.
    pub fn record_external(&mut self, operation: Operation, pieces: &[(Piece, &[u8])]) {
        let (_, mut call) = self.begin(operation);
        pieces.iter().for_each(|(piece, contents)| call.record_one(Some(*piece), contents));
    }

    /// Stops recording and returns the store and the sink.
    pub fn into_parts(self) -> (S, K) {
        (self.store, self.sink)
    }

    fn begin(&mut self, operation: Operation) -> (&mut S, Call<'_, K>) {
        let trip = self.trips;
        self.trips += 1;
        (&mut self.store, Call { sink: &mut self.sink, trip, operation })
    }
}

/// A call in progress.
struct Call<'r, K: EventSink> {
    sink: &'r mut K,
    trip: u64,
    operation: Operation,
}

impl<K: EventSink> Drop for Call<'_, K> {
    fn drop(&mut self) {
        self.sink.switch_to(None);
    }
}

impl<K: EventSink> Call<'_, K> {
    /// Records all pieces, with the frames that moved. There may be fewer frames than pieces,
    /// because the store is untrusted.
    fn record(&mut self, pieces: &[Piece], frames: Option<Frames<'_>>) {
        for (i, piece) in pieces.iter().enumerate() {
            let moved = frames.filter(|frames| i < frames.len());
            self.record_one(Some(*piece), moved.map_or(&[], |frames| frames.get(i)));
        }
    }

    /// Runs `work`, and records it as the time in which storage, not the client, works on the call.
    fn in_storage<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.sink.switch_to(Some(self.operation));
        let answer = work();
        self.sink.switch_to(None);
        answer
    }

    fn record_one(&mut self, piece: Option<Piece>, contents: &[u8]) {
        let bytes = contents.len() as u64;
        let event = Event { trip: self.trip, operation: self.operation, piece, bytes };
        self.sink.record(&event, contents);
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: BucketStore, K: EventSink> BucketStore for Recorder<S, K> {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.store.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        let (store, mut call) = self.begin(Operation::Prefetch);
        call.record(pieces, None);
        call.in_storage(|| store.prefetch(pieces));
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        let (store, mut call) = self.begin(Operation::Read);
        let answer = call.in_storage(|| store.read(pieces));
        call.record(pieces, answer.as_ref().ok().copied());
        answer
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let (store, mut call) = self.begin(Operation::Read);
        // A view has one event for each piece read, with the first of its candidate values.
        let mut recorded = 0;
        call.sink.switch_to(Some(Operation::Read));
        let answer = store.read_candidates(pieces, &mut |i, value| {
            call.sink.switch_to(None);
            if i == recorded
                && let Some(piece) = pieces.get(i)
            {
                call.record_one(Some(*piece), value);
                recorded += 1;
            }
            each(i, value);
            call.sink.switch_to(Some(Operation::Read));
        });
        call.sink.switch_to(None);
        call.record(&pieces[recorded..], None);
        answer
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        let (store, mut call) = self.begin(Operation::Write);
        let mut filled = false;
        call.sink.switch_to(Some(Operation::Write));
        let answer = store.write(pieces, &mut |blanks| {
            call.sink.switch_to(None);
            let sealed = fill(blanks);
            call.record(pieces, Some(sealed.frames()));
            filled = true;
            call.sink.switch_to(Some(Operation::Write));
            sealed
        });
        call.sink.switch_to(None);
        if !filled {
            call.record(pieces, None);
        }
        answer
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let (store, mut call) = self.begin(Operation::Flush);
        call.record_one(None, &[]);
        call.in_storage(|| store.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::{Oram, PathOram};
    use crate::scheme::TreeConfig;
    use crate::seal::{NoSecrecy, Sealer};
    use crate::store::MemoryStore;
    use crate::view::Tally;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn an_access_is_seen_as_a_read_and_a_write_of_one_path() {
        let config = TreeConfig::path(16, 32).unwrap();
        let store = MemoryStore::new(&[config.shape().unwrap()], MemoryStore::default_layout());
        let mut written = Vec::new();
        let mut tally = Tally::new();
        let recorder = Recorder::new(store.unwrap(), |event: &Event, contents: &[u8]| {
            assert_eq!(event.bytes, contents.len() as u64);
            tally.record(event, contents);
            if event.operation == Operation::Write {
                written.push(contents.to_vec());
            }
        });
        let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
        let coins = StdRng::seed_from_u64(1);
        let mut oram = PathOram::path(&config, sealer, recorder, coins).unwrap();
        oram.write(7, &[0xAB; 32]).unwrap();
        drop(oram);

        assert_eq!(written.len(), config.geometry.levels());
        assert!(written.concat().windows(32).any(|window| window == [0xAB; 32]));
        let path = config.shape().unwrap().path_bytes();
        for operation in [Operation::Read, Operation::Write] {
            let total = tally.of(operation);
            assert_eq!((total.trips, total.events, total.bytes), (1, 5, path), "{operation:?}");
        }
        assert_eq!(tally.of(Operation::Flush).trips, 0);
    }
}
