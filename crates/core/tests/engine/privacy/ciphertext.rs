//! Tests that the sealed bytes that storage receives never repeat.

use std::collections::HashSet;

use oblivio_core::store::TreeId;
use oblivio_core::view::Contents;
use oblivio_testkit::statistics::{Verdicts, uniformity};
use oblivio_testkit::workload::Workload;

use super::FALSE_ALARMS;
use super::crash::{Lost, lose_and_repeat};
use super::run::{Data, Run, Scheme, Setup};

const ACCESSES: usize = 3000;

/// Bytes of the unencrypted counter at the start of each written piece of Path and RAW ORAM.
const COUNTER_BYTES: usize = 8;

/// Bytes of the unit that AES seals. The sizes of address tables, leaf tables, blocks and tags are
/// multiples of it here.
const CHUNK_BYTES: usize = 16;

/// The schemes whose pieces begin with a counter.
const COUNTED: [Scheme; 2] = [Scheme::Path, Scheme::Raw(3)];
const ROTATING: Scheme = Scheme::Rotating(3);

/// The tree of heads of rotating RAW ORAM.
const HEADS: TreeId = TreeId(1);

/// Runs whose plaintext repeats often: few addresses, dummies, zeros.
fn runs(schemes: &[Scheme]) -> impl Iterator<Item = Run> {
    let setups = schemes.iter().flat_map(|&scheme| {
        let setup = Setup::new(scheme, ACCESSES);
        [Data::Zeros, Data::Random].map(|data| Setup { data, ..setup })
    });
    setups.flat_map(|setup| {
        let workloads = [Workload::NeverWritten, Workload::SameAddress, Workload::Uniform];
        workloads.map(|workload| setup.run(workload))
    })
}

/// Inserts every chunk written in `view` into `seen`, and checks that it is new.
#[track_caller]
fn assert_new(view: &Contents, scheme: Scheme, seen: &mut HashSet<[u8; CHUNK_BYTES]>) {
    for written in view.written() {
        let (chunks, rest) = match scheme {
            Scheme::Path | Scheme::Raw(_) => written.bytes[COUNTER_BYTES..].as_chunks(),
            // The end of a tag, two addresses and two leaves are too short to be unique.
            Scheme::Rotating(_) if written.piece.tree == HEADS => {
                (written.bytes.as_chunks().0, &[][..])
            }
            Scheme::Rotating(_) => written.bytes.as_chunks::<CHUNK_BYTES>(),
        };
        assert!(rest.is_empty() && !chunks.is_empty(), "{:?}", written.piece);
        for chunk in chunks {
            let place = (written.trip, written.piece, scheme);
            assert!(seen.insert(*chunk), "a chunk was seen before: {place:?}");
        }
    }
}

#[test]
fn never_repeats() {
    for run in runs(&COUNTED).chain(runs(&[ROTATING])) {
        let mut seen = HashSet::new();
        assert_new(&run.view, run.setup.scheme, &mut seen);
        assert!(seen.len() > 10 * ACCESSES, "{} chunks are too few to tell", seen.len());
    }
}

/// Tests that no ciphertext repeats if evictions lost in a crash are repeated from the same state
/// with the same data. Their plaintext and their places are then the same as before.
#[test]
fn of_lost_evictions_never_comes_again() {
    for data in [Data::Zeros, Data::Random] {
        let setup = Setup { tree_top_levels: 2, data, ..Setup::new(ROTATING, 0) };
        let Lost { first, again } = lose_and_repeat(&setup);
        let mut seen = HashSet::new();
        for view in again.iter().chain([&first]) {
            assert_new(view, setup.scheme, &mut seen);
            assert_eq!(view.events(), first.events(), "the same happened");
        }
        assert!(seen.len() > 300, "{} chunks are too few to tell", seen.len());
    }
}

#[test]
fn has_fresh_counters() {
    for run in runs(&COUNTED) {
        let mut seen = HashSet::new();
        for written in run.view.written() {
            let counter = *written.bytes.first_chunk::<COUNTER_BYTES>().expect("a counter");
            let place = (written.trip, written.piece, run.workload, run.setup);
            assert_ne!(counter, [0; COUNTER_BYTES], "absent buckets have counter 0: {place:?}");
            let bucket = (written.piece.tree, written.piece.bucket);
            assert!(seen.insert((bucket, counter)), "a counter was seen before: {place:?}");
        }
        assert!(seen.len() > 6 * ACCESSES, "{} counters are too few to tell", seen.len());
    }
}

#[test]
fn looks_random() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    for run in runs(&COUNTED).chain(runs(&[ROTATING])) {
        let clear_bytes = if run.setup.scheme == ROTATING { 0 } else { COUNTER_BYTES };
        let mut counts = [0; 256];
        for byte in run.view.written().flat_map(|written| &written.bytes[clear_bytes..]) {
            counts[usize::from(*byte)] += 1;
        }
        verdicts.add(format!("{}, {:?}", run.workload, run.setup), uniformity(&counts));
    }
    verdicts.conclude();
}
