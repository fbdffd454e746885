//! Counts the requests to a store as requests to a medium.

use std::sync::{Arc, Mutex, PoisonError};

use oblivio_core::BucketStore;
use oblivio_core::store::{LevelShape, shapes_of};
use oblivio_core::view::{Event, EventSink, Operation};
use oblivio_models::medium::{Request, Tally};

/// Counts reads and writes of a store as if its buckets were on a medium in order of tree, level
/// and bucket. Successive pieces of a trip that are adjacent on the medium form one request.
/// Prefetches do not count.
pub struct MediumSink {
    tally: Arc<Mutex<Tally>>,
    /// The offset and the shape of each level, for each tree.
    trees: Vec<Vec<(u64, LevelShape)>>,
    /// The requests of the current trip.
    requests: Vec<Request>,
}

impl MediumSink {
    /// Counts requests to the trees of `store` in `tally`.
    pub fn new(store: &impl BucketStore, tally: Arc<Mutex<Tally>>) -> Self {
        let mut next = 0;
        let trees = shapes_of(store).into_iter().map(|shape| {
            let place = |level: &LevelShape| {
                let base = next;
                next += level.buckets * level.bucket_bytes;
                (base, *level)
            };
            shape.levels().iter().map(place).collect()
        });
        Self { tally, trees: trees.collect(), requests: Vec::new() }
    }

    /// The request for a piece. `None` if the event transfers no piece.
    fn request(&self, event: &Event) -> Option<Request> {
        let piece = event.piece?;
        let level = piece.bucket.level();
        let (base, shape) = self.trees.get(usize::from(piece.tree.0))?.get(usize::from(level))?;
        let (offset, bytes) = shape.part(piece.part)?;
        let bucket = base + piece.bucket.index() * shape.bucket_bytes;
        Some(Request { offset: bucket + offset, bytes, level })
    }
}

impl EventSink for MediumSink {
    fn record(&mut self, event: &Event, _: &[u8]) {
        if event.operation == Operation::Prefetch {
            return;
        }
        let Some(next) = self.request(event).filter(|next| next.bytes > 0) else { return };
        match self.requests.last_mut() {
            Some(last) if last.offset + last.bytes == next.offset => last.bytes += next.bytes,
            _ => self.requests.push(next),
        }
    }

    fn switch_to(&mut self, _: Option<Operation>) {
        if self.requests.is_empty() {
            return;
        }
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        self.requests.drain(..).for_each(|request| tally.add(&request));
    }
}

#[cfg(test)]
mod tests {
    use oblivio_core::geometry::BucketId;
    use oblivio_core::store::{MemoryStore, Part, Piece, TreeId, TreeShape};
    use oblivio_core::view::Recorder;

    use super::*;
    use oblivio_models::medium::Medium;

    #[test]
    fn adjacent_pieces_of_a_trip_are_one_request() {
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
        let tally = Arc::new(Mutex::new(Tally::new(Medium::Ssd)));
        let sink = MediumSink::new(&memory, tally.clone());
        let mut store = Recorder::new(memory, sink);
        let piece = |level: u8, index: u64, part: Part| Piece {
            tree: TreeId(0),
            bucket: BucketId::new(level, index),
            part,
        };
        let whole = |index| piece(2, index, Part::Whole);
        store.read(&[whole(0), whole(1), whole(3), piece(1, 0, Part::Slot(1))]).unwrap();
        store.read(&[piece(2, 2, Part::Header), piece(2, 2, Part::Slot(0))]).unwrap();
        store.prefetch(&[whole(0)]);
        store.flush().unwrap();
        let tally = tally.lock().unwrap().clone();
        assert_eq!((tally.requests, tally.bytes), (4, 345 + 55));
        assert!((tally.seconds - (4.0 * 100e-6 + 400.0 / 500e6)).abs() < 1e-9);
        // The last request of the first trip ended at 200, of the second at 555.
        assert_eq!(tally.seeks, 4);
    }
}
