//! The bytes that storage gets.

use std::collections::HashSet;

use oblivio_testkit::statistics::{Verdicts, uniformity};
use oblivio_testkit::workload::Workload;

use crate::FALSE_ALARMS;
use crate::run::{Data, Run, Scheme, Setup};

const ACCESSES: usize = 3000;

/// The counter in clear at the start of each written piece.
const COUNTER_BYTES: usize = 8;

/// What AES seals at once: header table, leaf table and blocks are multiples of it here.
const CHUNK_BYTES: usize = 16;

/// Runs in which plaintext repeats all the time: few addresses, dummies, zeros.
fn runs() -> impl Iterator<Item = Run> {
    let setups = [Scheme::Path, Scheme::Raw(3)].into_iter().flat_map(|scheme| {
        let setup = Setup::new(scheme, ACCESSES);
        [Data::Zeros, Data::Random].map(|data| Setup { data, ..setup })
    });
    setups.flat_map(|setup| {
        let workloads = [Workload::NeverWritten, Workload::SameAddress, Workload::Uniform];
        workloads.map(|workload| setup.run(workload))
    })
}

#[test]
fn never_repeats() {
    for run in runs() {
        let mut seen = HashSet::new();
        for written in run.view.written() {
            let (chunks, rest) = written.bytes[COUNTER_BYTES..].as_chunks::<CHUNK_BYTES>();
            assert!(rest.is_empty() && !chunks.is_empty(), "{:?}", written.piece);
            for chunk in chunks {
                let place = (written.trip, written.piece, run.workload, run.setup);
                assert!(seen.insert(*chunk), "a chunk was seen before: {place:?}");
            }
        }
        assert!(seen.len() > 10 * ACCESSES, "{} chunks are too few to tell", seen.len());
    }
}

#[test]
fn has_fresh_counters() {
    for run in runs() {
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
    for run in runs() {
        let mut counts = [0; 256];
        for byte in run.view.written().flat_map(|written| &written.bytes[COUNTER_BYTES..]) {
            counts[usize::from(*byte)] += 1;
        }
        verdicts.add(format!("{}, {:?}", run.workload, run.setup), uniformity(&counts));
    }
    verdicts.conclude();
}
