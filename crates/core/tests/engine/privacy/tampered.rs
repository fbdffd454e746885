//! Tests of the view of an active adversary against Freecursive ORAM with PMMAC. Until detection,
//! the adversary must see the paths of an honest run. The last access must be complete.

use oblivio_core::scheme::PathScheme;
use oblivio_core::store::{BucketStore, Part, Piece, TreeId};
use oblivio_core::view::{Contents, Operation};
use oblivio_core::{BucketId, ErrorKind, Integrity, Key, MemoryStore, Oram, Sealer};
use oblivio_testkit::workload::{Request, Workload};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::run::{BLOCK_BYTES, CAPACITY, Scheme, Setup, store};

/// Number of requests before the adversary acts.
const HONEST: usize = 100;

/// The view of a run, and the number of answered requests.
struct ObservedRun {
    calls: Vec<(Operation, Vec<u64>)>,
    answered: usize,
}

/// Reads blocks until the tampering is detected, or until all are read.
fn run(seed: u64, tampers: bool) -> ObservedRun {
    let setup = Setup { integrity: Integrity::Pmmac, ..Setup::freecursive(Scheme::Path, 0) };
    let mut coins = StdRng::seed_from_u64(seed);
    let tree = setup.tree();
    let sealer = Sealer::aes128(Key::draw(&mut coins), TreeId(0));
    let scheme = PathScheme::new(&tree, sealer, store(tree.shape().unwrap())).unwrap();
    let mut oram = setup.freecursive_oram(scheme, coins);
    let mut answered = 0;
    for (i, Request { address, .. }) in
        Workload::Zipf.requests(CAPACITY, seed).take(4 * HONEST).enumerate()
    {
        if tampers && i == HONEST {
            flip_a_bit_of_every_block(oram.scheme_mut().scheme_mut().store_mut().store_mut());
        }
        match oram.read(address, &mut [0; BLOCK_BYTES]) {
            Ok(()) => answered += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                break;
            }
        }
    }
    let view: Contents = std::mem::take(oram.scheme_mut().scheme_mut().store_mut().sink_mut());
    let calls = view.events().chunk_by(|a, b| a.trip == b.trip).map(|events| {
        let buckets = events.iter().filter_map(|event| event.piece).map(|piece| piece.bucket.0);
        (events[0].operation, buckets.collect())
    });
    ObservedRun { calls: calls.collect(), answered }
}

/// Tests that the paths do not depend on the bytes that storage returns, and that the last path is
/// read and written back like any other. Storage learns only the time of detection.
#[test]
fn paths_equal_an_honest_run_until_detection() {
    for seed in 0..20 {
        let (honest, tampered) = (run(seed, false), run(seed, true));
        assert_eq!(honest.answered, 4 * HONEST);
        assert!((HONEST..4 * HONEST).contains(&tampered.answered), "{}", tampered.answered);
        let calls = tampered.calls.len();
        assert!(tampered.calls == honest.calls[..calls], "another call, seed {seed}");
        assert_eq!(
            tampered.calls.last().unwrap().0,
            Operation::Write,
            "the last access must be complete"
        );
    }
}

/// Flips a bit in the contents of every block. Addresses and leaves stay unchanged.
fn flip_a_bit_of_every_block(memory: &mut MemoryStore) {
    let tree = TreeId(0);
    let levels = memory.shape(tree).unwrap().levels().to_vec();
    for bucket in (0..(1 << levels.len()) - 1).map(BucketId) {
        for slot in 0..levels[usize::from(bucket.level())].slots {
            let span = memory.span(&Piece { tree, bucket, part: Part::Slot(slot) }).unwrap();
            memory.contents_mut()[span.start] ^= 1;
        }
    }
}
