//! Tests that every path is read and written completely.

use oblivio_core::geometry::{BucketId, Leaf};
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::Operation;

use super::run::{LEAF_LEVEL, Run, Scheme, Setup, States};
use super::trips::{Trip, schedule, trips};

#[test]
fn are_read_and_written_back_as_a_whole() {
    for scheme in Scheme::each(3) {
        let mut states = States::default();
        for setup in Setup::new(scheme, 1500).variants() {
            for run in setup.runs() {
                states += run.states;
                assert_whole(&run);
            }
        }
        states.assert_rare_ones_occurred(30);
    }
}

#[test]
fn of_freecursive_are_read_and_written_back_as_a_whole() {
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        let mut states = States::default();
        for setup in Setup::freecursive(scheme, 500).variants() {
            for run in setup.runs() {
                states += run.states;
                assert_whole(&run);
            }
        }
        states.assert_rare_ones_occurred(30);
        states.assert_rare_ones_of_the_frontend_occurred(1000);
    }
}

/// Checks that every read covers all levels of a path in storage, with whole buckets. The write
/// after it, if there is one, must cover the same buckets: their headers in an AO (access-only)
/// access of RAW ORAM, otherwise the whole buckets.
#[track_caller]
pub(crate) fn assert_whole(run: &Run) {
    let trips = trips(run);
    let mut moves = trips.iter().filter(|trip| trip.operation != Operation::Prefetch);
    for (i, purpose) in schedule(run).into_iter().enumerate() {
        let mut leaf = None;
        for (operation, part) in purpose.calls(run.setup.scheme) {
            let place = format!("{purpose:?}, path {i}, {}, {:?}", run.workload, run.setup);
            let trip = moves.next().unwrap_or_else(|| panic!("no {operation:?}, {place}"));
            let leaf = *leaf.get_or_insert_with(|| Leaf(trip.leaf()));
            assert_eq!(*trip, whole_trip(run, *operation, leaf, *part), "{place}");
        }
    }
    assert_eq!(
        moves.next(),
        None,
        "more trips than in the schedule, {}, {:?}",
        run.workload,
        run.setup
    );
}

fn whole_trip(run: &Run, operation: Operation, leaf: Leaf, part: Part) -> Trip {
    let levels = run.setup.tree_top_levels..=LEAF_LEVEL;
    let pieces: Vec<_> = levels
        .map(|level| Piece { tree: TreeId(0), bucket: BucketId::on_path(leaf, level), part })
        .collect();
    let bytes = pieces.iter().map(|piece| {
        let shape = run.setup.bucket_shape(piece.bucket.level());
        if part == Part::Header { shape.header_bytes } else { shape.bucket_bytes }
    });
    Trip { operation, bytes: bytes.collect(), pieces }
}
