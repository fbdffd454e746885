//! A store as if it lay on a medium.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use oblivio_core::StoreError;
use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, LevelShape, Piece, TreeId, TreeShape, shapes_of,
};

use oblivio_models::medium::{Request, Tally};

/// Whether whoever uses the store waits for the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// No: what it would take is added up.
    Accounts,
    /// Yes: each trip takes as long as the medium would.
    Sleeps,
}

/// Counts what a store is asked for, as if it lay on a medium: tree after tree, level after level, bucket after bucket. Neighbours of a
/// trip are one request. Hints are not counted.
pub struct MeteredStore<S> {
    store: S,
    tally: Arc<Mutex<Tally>>,
    pace: Pace,
    /// Of each tree: where its levels begin, and their shapes.
    trees: Vec<Vec<(u64, LevelShape)>>,
    /// Of the trip under way.
    requests: Vec<Request>,
}

impl<S: BucketStore> MeteredStore<S> {
    /// Counts from now on what `store` is asked for.
    pub fn new(store: S, tally: Tally, pace: Pace) -> Self {
        let mut next = 0;
        let trees = shapes_of(&store).into_iter().map(|shape| {
            let place = |level: &LevelShape| {
                let base = next;
                next += level.buckets * level.bucket_bytes;
                (base, *level)
            };
            shape.levels().iter().map(place).collect()
        });
        let trees = trees.collect();
        let tally = Arc::new(Mutex::new(tally));
        Self { store, tally, pace, trees, requests: Vec::new() }
    }

    /// What was counted. It goes on counting when the store is elsewhere.
    pub fn tally(&self) -> Arc<Mutex<Tally>> {
        self.tally.clone()
    }

    /// Where a piece lies. One that is nowhere is the store's to refuse.
    fn request(&self, piece: &Piece) -> Option<Request> {
        let level = piece.bucket.level();
        let (base, shape) = self.trees.get(usize::from(piece.tree.0))?.get(usize::from(level))?;
        let (offset, bytes) = shape.part(piece.part)?;
        let bucket = base + piece.bucket.index() * shape.bucket_bytes;
        Some(Request { offset: bucket + offset, bytes, level })
    }

    /// A trip is over: neighbours become one request, in the order of the trip.
    fn count(&mut self, pieces: &[Piece]) {
        self.requests.clear();
        for piece in pieces {
            let Some(next) = self.request(piece).filter(|next| next.bytes > 0) else { continue };
            match self.requests.last_mut() {
                Some(last) if last.offset + last.bytes == next.offset => last.bytes += next.bytes,
                _ => self.requests.push(next),
            }
        }
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let before = tally.seconds;
        self.requests.iter().for_each(|request| tally.add(request));
        let taken = tally.seconds - before;
        drop(tally);
        if self.pace == Pace::Sleeps {
            thread::sleep(Duration::from_secs_f64(taken));
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: BucketStore> BucketStore for MeteredStore<S> {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.store.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        self.store.prefetch(pieces);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.count(pieces);
        self.store.read(pieces)
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        self.count(pieces);
        self.store.read_candidates(pieces, each)
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.count(pieces);
        self.store.write(pieces, fill)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.store.flush()
    }
}

#[cfg(test)]
mod tests {
    use oblivio_core::geometry::BucketId;
    use oblivio_core::store::{MemoryStore, Part};

    use super::*;
    use oblivio_models::medium::Medium;

    fn store(pace: Pace) -> MeteredStore<MemoryStore> {
        let level = |buckets| LevelShape {
            buckets,
            slots: 2,
            header_bytes: 10,
            slots_offset: 10,
            slot_bytes: 45,
            bucket_bytes: 100,
        };
        let shapes = [TreeShape::new(vec![level(1), level(2), level(4)])];
        let memory = MemoryStore::new(&shapes, MemoryStore::default_layout()).unwrap();
        MeteredStore::new(memory, Tally::new(Medium::Ssd), pace)
    }

    fn piece(level: u8, index: u64, part: Part) -> Piece {
        Piece { tree: TreeId(0), bucket: BucketId::new(level, index), part }
    }

    #[test]
    fn neighbours_of_a_trip_are_one_request() {
        let mut store = store(Pace::Accounts);
        let whole = |index| piece(2, index, Part::Whole);
        store.read(&[whole(0), whole(1), whole(3), piece(1, 0, Part::Slot(1))]).unwrap();
        store.read(&[piece(2, 2, Part::Header), piece(2, 2, Part::Slot(0))]).unwrap();
        store.prefetch(&[whole(0)]);
        store.flush().unwrap();
        let tally = store.tally().lock().unwrap().clone();
        assert_eq!((tally.requests, tally.bytes), (4, 345 + 55));
        assert!((tally.seconds - (4.0 * 100e-6 + 400.0 / 500e6)).abs() < 1e-9);
        // The last request of the first trip ended at 200, of the second at 555.
        assert_eq!(tally.seeks, 4);
    }

    #[test]
    fn whoever_wants_to_waits_for_the_medium() {
        let mut store = store(Pace::Sleeps);
        // A hundred seeks of an SSD: 10 ms. Sleeps are never shorter.
        for _ in 0..100 {
            store.read(&[piece(0, 0, Part::Whole)]).unwrap();
        }
        let tally = store.tally().lock().unwrap().clone();
        assert!(tally.seconds > 0.01);
    }
}
