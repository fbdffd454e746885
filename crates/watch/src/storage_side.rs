//! Counts what storage sees, and lists the first visits of buckets of each frame. Public.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_core::store::{BucketStore, TreeId};
use oblivio_core::view::{Event, EventSink, Operation, Tally};

use super::WatchLimits;
use super::frame::{StorageFrame, Visit};

/// The shape of a tree that is drawn. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnTree {
    /// The number of the tree in a view file.
    pub tree: TreeId,
    /// Number of buckets on each level, root first.
    pub buckets: Vec<u64>,
}

/// Returns the trees of `ids`, up to the first that the store does not have. Leaves out trees
/// without buckets.
pub fn drawn_trees(store: &dyn BucketStore, ids: impl Iterator<Item = TreeId>) -> Vec<DrawnTree> {
    let shapes = ids.map_while(|tree| store.shape(tree).map(|shape| (tree, shape)));
    let drawn = shapes.map(|(tree, shape)| {
        let buckets = shape.levels().iter().map(|level| level.buckets).collect();
        DrawnTree { tree, buckets }
    });
    drawn.filter(|drawn| drawn.buckets.iter().any(|buckets| *buckets > 0)).collect()
}

/// An [event sink](EventSink) that counts the events that storage sees, and lists the first visits
/// of each frame.
#[derive(Clone)]
pub struct StorageSide(Arc<Mutex<Sums>>);

struct Sums {
    trees: Vec<DrawnTree>,
    visits_max: usize,
    tally: Tally,
    /// Numbers of pieces read and written on each level of each tree.
    levels: Vec<Vec<[u64; 2]>>,
    /// The visits of buckets since the last frame: the first ones, up to a limit.
    visits: Vec<Visit>,
    visits_left_out: u64,
    latest: Option<Visit>,
}

impl StorageSide {
    /// Creates a storage side with all counters at zero.
    pub fn new(trees: Vec<DrawnTree>, limits: &WatchLimits) -> Self {
        let levels = trees.iter().map(|tree| vec![[0; 2]; tree.buckets.len()]).collect();
        Self(Arc::new(Mutex::new(Sums {
            trees,
            visits_max: limits.visits_max,
            tally: Tally::new(),
            levels,
            visits: Vec::with_capacity(limits.visits_max),
            visits_left_out: 0,
            latest: None,
        })))
    }

    pub(super) fn trees(&self) -> Vec<DrawnTree> {
        self.sums().trees.clone()
    }

    /// Returns storage's part of the current frame. Starts the next frame.
    pub(super) fn take_frame(&self) -> StorageFrame {
        let mut sums = self.sums();
        let empty = Vec::with_capacity(sums.visits_max);
        StorageFrame {
            operations: Operation::ALL.map(|operation| sums.tally.of(operation).into()),
            levels: sums.levels.clone(),
            visits: std::mem::replace(&mut sums.visits, empty),
            visits_left_out: std::mem::take(&mut sums.visits_left_out),
        }
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for StorageSide {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.sums().record(event, contents);
    }
}

impl Sums {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.tally.record(event, contents);
        let is_write = match event.operation {
            Operation::Read => false,
            Operation::Write => true,
            Operation::Prefetch | Operation::Flush => return,
        };
        let Some(piece) = event.piece else { return };
        let drawn = self.trees.iter().position(|drawn| drawn.tree == piece.tree);
        let Some(tree) = drawn else { return };
        let (level, bucket) = (piece.bucket.level(), piece.bucket.index());
        let Some(counts) = self.levels[tree].get_mut(usize::from(level)) else { return };
        counts[usize::from(is_write)] += 1;
        let visit = Visit { trip: event.trip, tree, is_write, level, bucket };
        // Consecutive pieces of one bucket count as one visit.
        if self.latest.replace(visit) != Some(visit) {
            if self.visits.len() < self.visits_max {
                self.visits.push(visit);
            } else {
                self.visits_left_out += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use oblivio_core::BucketId;
    use oblivio_core::store::{Part, Piece};

    use super::*;

    fn side(visits_max: usize) -> StorageSide {
        let tree = DrawnTree { tree: TreeId(2), buckets: vec![1, 2, 4] };
        StorageSide::new(vec![tree], &WatchLimits { visits_max, ..WatchLimits::DEFAULT })
    }

    fn event(trip: u64, operation: Operation, tree: u16, level: u8, part: Part) -> Event {
        let piece = Piece { tree: TreeId(tree), bucket: BucketId::new(level, 1), part };
        Event { trip, operation, piece: Some(piece), bytes: 10 }
    }

    #[test]
    fn slots_of_a_bucket_are_one_visit_and_each_is_counted() {
        let mut side = side(10);
        for event in [
            event(0, Operation::Prefetch, 2, 2, Part::Whole),
            event(1, Operation::Read, 2, 1, Part::Slot(0)),
            event(1, Operation::Read, 2, 1, Part::Slot(1)),
            event(1, Operation::Read, 7, 1, Part::Whole),
            event(2, Operation::Write, 2, 1, Part::Whole),
            event(3, Operation::Read, 2, 60, Part::Whole),
            Event { trip: 4, operation: Operation::Flush, piece: None, bytes: 0 },
        ] {
            side.record(&event, &[]);
        }
        let frame = side.take_frame();
        let visits: Vec<_> = frame.visits.iter().map(|it| (it.trip, it.is_write)).collect();
        assert_eq!(visits, [(1, false), (2, true)]);
        assert_eq!(frame.levels, [[[0, 0], [2, 1], [0, 0]]]);
        assert_eq!(frame.operations.map(|it| it.trips), [1, 2, 1, 1]);
        assert_eq!(frame.operations.map(|it| it.bytes), [10, 40, 10, 0]);
    }

    #[test]
    fn a_frame_is_bounded_and_counts_omitted_visits() {
        let mut side = side(3);
        for trip in 0..10 {
            side.record(&event(trip, Operation::Read, 2, 1, Part::Whole), &[]);
        }
        let frame = side.take_frame();
        assert_eq!((frame.visits.len(), frame.visits_left_out), (3, 7));
        side.record(&event(10, Operation::Read, 2, 1, Part::Whole), &[]);
        let frame = side.take_frame();
        assert_eq!((frame.visits.len(), frame.visits_left_out), (1, 0));
        assert_eq!(frame.levels[0][1], [11, 0], "totals keep counting");
    }
}
