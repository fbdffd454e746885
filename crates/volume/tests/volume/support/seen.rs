//! Derives, from a recorded view (the calls that storage saw), the leaves that storage can
//! determine without a key.

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{Part, TreeId};
use oblivio_core::view::{Event, Operation};
use oblivio_testkit::crash::StoreEvent;
use oblivio_testkit::crash::small_volume::{EVICT_PERIOD, SmallVolume};
use oblivio_volume::volume::shapes;

/// The tree of the store that holds the blocks.
pub(crate) const DATA_TREE: TreeId = TreeId(2);

/// The leaf of each path that an access read, as storage can determine it without a key. Also
/// checks that each call has the shape of an access or an eviction, and that no opening has
/// forgotten more than `evictions_forgotten_max` evictions.
pub(crate) fn leaves(
    setup: &SmallVolume,
    view: &[StoreEvent],
    evictions_forgotten_max: u64,
) -> Vec<u64> {
    let levels = usize::from(setup.leaf_level - setup.tree_top_levels) + 1;
    let tree = shapes(&setup.params()).unwrap()[usize::from(DATA_TREE.0)].clone();
    let ring = (1u64 << setup.leaf_level) + (1 << setup.tree_top_levels);
    // A new tree starts as if each leaf had been evicted once.
    let mut evictions = 1 << setup.leaf_level;
    let mut leaves = Vec::new();
    let mut since_eviction = 0;
    let calls = calls(view);
    for (i, call) in calls.iter().enumerate() {
        let [first, ..] = call[..] else {
            since_eviction = 0;
            continue;
        };
        if let [event] = call[..] {
            // An opening reads the bucket that is written after its repeated work: the log may have
            // some evictions that were not made.
            let piece = event.piece.unwrap();
            assert_eq!(event.operation, Operation::Read);
            let mut coming =
                evictions - evictions_forgotten_max..=evictions + (1 << setup.tree_top_levels);
            let looked_at = |next| piece.bucket == BucketId::new(setup.leaf_level + 1, next % ring);
            assert!(coming.any(looked_at), "{piece:?} after {evictions} evictions");
            continue;
        }
        assert_eq!(call.len(), levels, "a bucket of each level");
        for (event, level) in
            call.iter().zip(tree.levels().iter().skip(tree.level_count() - levels))
        {
            let piece = event.piece.unwrap();
            assert_eq!((piece.part, level.buckets > 0), (Part::Whole, true));
            assert!([0, level.bucket_bytes].contains(&event.bytes));
        }
        let place = call.last().unwrap().piece.unwrap().bucket.index();
        // The latest eviction that wrote to this place.
        let written = |before: u64| (0..before).rev().find(|e| e % ring == place).unwrap();
        match first.operation {
            Operation::Write => {
                // After a crash, evictions are repeated.
                evictions = written(evictions + 1) + 1;
                assert!(since_eviction <= EVICT_PERIOD, "{since_eviction} accesses");
                since_eviction = 0;
            }
            Operation::Read => {
                let leaf = written(evictions) % (1 << setup.leaf_level);
                let next = calls.get(i + 1).map(|next| next.first().map(|event| event.operation));
                // A crash may separate the read and the write of an eviction. The end of the view
                // does not: an access may have the leaf of the next eviction by chance.
                let is_due = leaf == evictions % (1 << setup.leaf_level);
                let is_eviction =
                    next == Some(Some(Operation::Write)) || (is_due && next == Some(None));
                // A failed read has shown its leaf, too.
                if !is_eviction {
                    leaves.push(leaf);
                    since_eviction += 1;
                }
            }
            Operation::Prefetch | Operation::Flush => unreachable!("left out"),
        }
    }
    leaves
}

/// The calls for buckets of blocks, without announcements. A call without events is a crash.
fn calls(view: &[StoreEvent]) -> Vec<Vec<Event>> {
    let mut calls: Vec<Vec<Event>> = Vec::new();
    for seen in view {
        match seen {
            StoreEvent::Crash => calls.push(Vec::new()),
            StoreEvent::Event(event) => {
                let is_of_blocks = event.piece.is_some_and(|piece| piece.tree == DATA_TREE);
                if !is_of_blocks || event.operation == Operation::Prefetch {
                    continue;
                }
                match calls.last_mut() {
                    Some(call) if call.last().is_some_and(|last| last.trip == event.trip) => {
                        call.push(*event);
                    }
                    _ => calls.push(vec![*event]),
                }
            }
        }
    }
    calls
}

/// The trip, the operation, the piece without its bucket's index, and the bytes of a call. `None`
/// is a crash.
pub(crate) type StorageCall = Option<(u64, Operation, Option<(TreeId, u8, Part)>, u64)>;

pub(crate) fn assert_alike([one, other]: &[Vec<StorageCall>; 2], what: &str) {
    let first = one.iter().zip(other).position(|(one, other)| one != other);
    let differing = first.map(|at| (at, one[at], other[at]));
    assert_eq!((differing, one.len()), (None, other.len()), "{what}");
}

/// Everything in the view that must not depend on requests: all except which paths were used.
pub(crate) fn looks(view: &[StoreEvent]) -> Vec<StorageCall> {
    let look = |event: &Event| {
        let place = event.piece.map(|piece| (piece.tree, piece.bucket.level(), piece.part));
        (event.trip, event.operation, place, event.bytes)
    };
    view.iter()
        .map(|seen| match seen {
            StoreEvent::Event(event) => Some(look(event)),
            StoreEvent::Crash => None,
        })
        .collect()
}
