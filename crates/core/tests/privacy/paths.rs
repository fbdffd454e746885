//! Nobody leaves a path early.

use oblivio_core::geometry::{BucketId, Leaf};
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::Operation;
use oblivio_testkit::workload::Workload;

use crate::run::{LEAF_LEVEL, Run, Scheme, Setup, States};
use crate::trips::{Purpose, Trip, schedule, trips};

#[test]
fn are_read_and_written_back_as_a_whole() {
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        let mut states = States::default();
        for setup in Setup::new(scheme, 1500).variants() {
            for workload in Workload::ALL {
                let run = setup.run(workload);
                states += run.states;
                assert_whole(&run);
            }
        }
        states.assert_rare_ones_occurred(30);
    }
}

/// Every read is of all storage levels of a path, whole buckets; and the write after it is of the
/// same buckets: of their headers in an AO access of RAW ORAM, of all of them otherwise.
#[track_caller]
fn assert_whole(run: &Run) {
    let trips = trips(run);
    let moves: Vec<_> = trips.iter().filter(|trip| trip.operation != Operation::Prefetch).collect();
    let schedule = schedule(run);
    assert_eq!(moves.len(), 2 * schedule.len(), "a read and a write for each, {:?}", run.setup);
    for (i, (moves, purpose)) in moves.chunks(2).zip(schedule).enumerate() {
        let leaf = Leaf(moves[0].leaf());
        let written = match (run.setup.scheme, purpose) {
            (Scheme::Raw(_), Purpose::Access) => Part::Header,
            _ => Part::Whole,
        };
        let expected = [(Operation::Read, Part::Whole), (Operation::Write, written)];
        for (trip, (operation, part)) in moves.iter().zip(expected) {
            let place = format!("access {i}, {}, {:?}", run.workload, run.setup);
            assert_eq!(**trip, whole_trip(run, operation, leaf, part), "{place}");
        }
    }
}

fn whole_trip(run: &Run, operation: Operation, leaf: Leaf, part: Part) -> Trip {
    let levels = run.setup.tree_top_levels..=LEAF_LEVEL;
    let pieces: Vec<_> = levels
        .map(|level| Piece { tree: TreeId(0), bucket: BucketId::on_path(leaf, level), part })
        .collect();
    let shape = run.setup.shape();
    let bytes = pieces.iter().map(|piece| {
        let level = shape.levels()[usize::from(piece.bucket.level())];
        if part == Part::Header { level.header_bytes } else { level.bucket_bytes }
    });
    Trip { operation, bytes: bytes.collect(), pieces }
}
