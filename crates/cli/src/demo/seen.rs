//! What storage saw.

use oblivio_core::store::TreeId;
use oblivio_core::view::{Event, EventSink, Operation, Tally};

/// A bucket on the level of the leaves that storage saw being used.
#[derive(Clone, Copy)]
pub(super) struct Visit {
    /// How many accesses came before.
    pub(super) access: u64,
    /// Which bucket of its level, as storage counts them.
    pub(super) bucket: u64,
    /// Written by an eviction, rather than read by an access.
    pub(super) is_eviction: bool,
}

/// Everything that storage saw, in short. Public.
pub(super) struct Seen {
    pub(super) visits: Vec<Visit>,
    pub(super) accesses: u64,
    /// Buckets on the level of the leaves, those that are free for the next evictions included.
    pub(super) leaf_buckets: u64,
    pub(super) tally: Tally,
}

impl Seen {
    /// Of the events of a view, those of the tree with the data.
    pub(super) fn new(events: &[Event], tree: TreeId, leaf_level: u8) -> Self {
        let mut seen =
            Self { visits: Vec::new(), accesses: 0, leaf_buckets: 1, tally: Tally::new() };
        // An eviction reads a path, like an access, and writes it at once.
        let mut reading = None;
        for event in events {
            seen.tally.record(event, &[]);
            let of_data = event.piece.filter(|piece| piece.tree == tree);
            let at_leaf = of_data.filter(|piece| piece.bucket.level() == leaf_level);
            let (Some(piece), Operation::Read | Operation::Write) = (at_leaf, event.operation)
            else {
                continue;
            };
            let bucket = piece.bucket.index();
            seen.leaf_buckets = seen.leaf_buckets.max(bucket + 1);
            if event.operation == Operation::Read {
                seen.push_access(reading.replace(bucket));
            } else {
                reading = None;
                let access = seen.accesses;
                seen.visits.push(Visit { access, bucket, is_eviction: true });
            }
        }
        seen.push_access(reading);
        seen
    }

    fn push_access(&mut self, bucket: Option<u64>) {
        if let Some(bucket) = bucket {
            let access = self.accesses;
            self.visits.push(Visit { access, bucket, is_eviction: false });
            self.accesses += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use oblivio_core::BucketId;
    use oblivio_core::store::{Part, Piece};

    use super::*;

    #[test]
    fn accesses_are_told_from_evictions() {
        let event = |operation, level, index| {
            let bucket = BucketId::new(level, index);
            let piece = Some(Piece { tree: TreeId(2), bucket, part: Part::Whole });
            Event { trip: 0, operation, piece, bytes: 1 }
        };
        let events = [
            event(Operation::Read, 3, 5),
            event(Operation::Read, 2, 1),
            event(Operation::Read, 3, 6),
            event(Operation::Read, 3, 1),
            event(Operation::Write, 3, 7),
            event(Operation::Prefetch, 3, 4),
            event(Operation::Read, 3, 2),
        ];
        let seen = Seen::new(&events, TreeId(2), 3);
        let visits: Vec<_> = seen
            .visits
            .iter()
            .map(|visit| (visit.access, visit.bucket, visit.is_eviction))
            .collect();
        assert_eq!(visits, [(0, 5, false), (1, 6, false), (2, 7, true), (2, 2, false)]);
        assert_eq!((seen.accesses, seen.leaf_buckets), (3, 8));
    }
}
