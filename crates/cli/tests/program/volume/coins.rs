//! Random values are fresh for every process and volume: the leaves of one opening do not predict
//! the leaves of another.

use std::fs::File;
use std::io::BufReader;

use oblivio_core::store::TreeId;
use oblivio_core::view::{Observed, Operation, read_view};

use super::test_dir::{Bytes, TestDir, VOLUME};

/// The tree of the store that holds the blocks.
const DATA_TREE: TreeId = TreeId(2);

/// Number of path reads that are compared.
const READS: usize = 60;

/// Offset of the salt in a state file: after magic, version, volume and generation.
const SALT_AT: u64 = 8 + 4 + 16 + 8;
const SALT_BYTES: u64 = 32;

/// Two openings draw different leaves and salts, although both begin from the same bytes of storage
/// and of the client's directory.
#[test]
fn two_openings_of_one_volume_draw_other_leaves_and_salts() {
    let test_dir = TestDir::with_volume(1);
    let sides = [("disk.obl", "kept.obl"), ("state-home", "kept-state-home")];
    sides.iter().for_each(|(side, saved)| test_dir.copy(side, saved));
    let drawn = ["one", "other"].map(|view| {
        sides.iter().for_each(|(side, saved)| test_dir.copy(saved, side));
        OpeningDraws::by_an_opening(&test_dir, view)
    });
    assert_drawn_apart(&drawn);
}

#[test]
fn openings_of_two_volumes_draw_other_leaves_and_salts() {
    let drawn = [0; 2].map(|_| OpeningDraws::by_an_opening(&TestDir::with_volume(1), "view"));
    assert_drawn_apart(&drawn);
}

/// The visible random values of one opening.
struct OpeningDraws {
    /// The buckets at the ends of the paths that the first accesses of the opening read.
    ends: Vec<u64>,
    /// The salt of the opening's state file.
    salt: Vec<u8>,
}

impl OpeningDraws {
    /// Records an opening without requests, whose accesses are all to fresh random leaves.
    fn by_an_opening(test_dir: &TestDir, view: &str) -> Self {
        test_dir.succeeds(&format!(
            "serve nbd {VOLUME} --period 10 --burst 8 --cache 256K --record-view {view} \
             --run 'sleep 1'"
        ));
        let file = BufReader::new(File::open(test_dir.path(view)).unwrap());
        let events = read_view(file).unwrap().filter_map(|observed| match observed.unwrap() {
            Observed::Event(event) => Some(event),
            Observed::PeerMessage(_) => None,
        });
        let reads = events.filter(|event| {
            let is_of_blocks = event.piece.is_some_and(|piece| piece.tree == DATA_TREE);
            event.operation == Operation::Read && is_of_blocks
        });
        let reads: Vec<_> = reads.collect();
        let trips = reads.chunk_by(|one, next| one.trip == next.trip);
        let ends = trips.map(|trip| trip.last().unwrap().piece.unwrap().bucket.index());
        let ends = ends.take(READS).collect();
        let salt = Bytes::of(&test_dir.state_file()).read(SALT_AT, SALT_BYTES);
        Self { ends, salt }
    }
}

fn assert_drawn_apart([one, other]: &[OpeningDraws; 2]) {
    assert_ne!(one.salt, other.salt);
    assert_eq!([one.ends.len(), other.ends.len()], [READS; 2]);
    // Every sixth path belongs to an eviction; their order is public.
    let equal = one.ends.iter().zip(&other.ends).filter(|(one, other)| one == other).count();
    assert!(equal < READS / 3, "{equal} of {READS}: {:?}, {:?}", one.ends, other.ends);
}
