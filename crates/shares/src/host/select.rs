//! Computes the private selection of a slot (Subroutine 1, steps 4 to 8) from all slots of the
//! path.

use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::files::{Bucket, Files};
use crate::field::{Field, Gf256};
use crate::message::TreePoint;
use oblivio_core::Leaf;

/// Bytes that are read at once, small enough to stay in the processor's cache until they are
/// multiplied.
const RUN_BYTES: usize = 256 << 10;

/// The number of slots of `slot_bytes` bytes that an access reads at once.
pub fn slots_at_once(slot_bytes: usize) -> usize {
    (RUN_BYTES / slot_bytes.max(1)).max(1)
}

/// The minimum number of bytes for which another thread is worthwhile.
const BYTES_PER_THREAD: usize = 4 << 20;

/// A run of slots of a bucket, which one thread reads at once, with the query's elements for these
/// slots.
struct Run<'q> {
    bucket: usize,
    first: usize,
    query: &'q [u8],
}

/// Computes the sum of all slots of a path, each multiplied by its element of the query.
pub(super) fn select(
    files: &Files,
    at: TreePoint,
    leaf: Leaf,
    query: &[u8],
) -> io::Result<Vec<u8>> {
    let (tree, block_bytes) = (files.setup.tree, files.setup.block_bytes);
    // Subroutine 1, steps 4 and 6: all buckets of the path.
    let buckets: Vec<(Bucket<'_>, &[u8])> = tree
        .path(leaf)
        .zip(query.chunks(tree.slots()))
        .filter_map(|(bucket, query)| Some((files.bucket(bucket, at)?, query)))
        .collect();
    let slots_at_once = slots_at_once(block_bytes);
    let runs: Vec<Run<'_>> = buckets
        .iter()
        .enumerate()
        .flat_map(|(i, (bucket, query))| {
            let runs = query[..bucket.slots].chunks(slots_at_once).enumerate();
            runs.map(move |(run, query)| Run { bucket: i, first: run * slots_at_once, query })
        })
        .collect();
    let slots: usize = buckets.iter().map(|(bucket, _)| bucket.slots).sum();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = (slots * block_bytes / BYTES_PER_THREAD).clamp(1, processors);
    let next = AtomicUsize::new(0);
    let answer = Mutex::new(Ok(vec![0; block_bytes]));
    let work = || {
        let sum = sum_of_runs(&buckets, &runs, &next, block_bytes);
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *answer, sum) {
            (Ok(answer), Ok(sum)) => Gf256::add_multiple(answer, Gf256::ONE, &sum),
            (answer, Err(error)) => *answer = Err(error),
            (Err(_), Ok(_)) => (),
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    answer.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Computes one thread's part of the sum: takes runs that no other thread has taken, until there
/// are no more.
fn sum_of_runs(
    buckets: &[(Bucket<'_>, &[u8])],
    runs: &[Run<'_>],
    next: &AtomicUsize,
    block_bytes: usize,
) -> io::Result<Vec<u8>> {
    let [mut sum, mut product] = [(); 2].map(|()| vec![0; block_bytes]);
    let mut read = Vec::new();
    while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
        read.resize(run.query.len() * block_bytes, 0);
        buckets[run.bucket].0.read(run.first, &mut read)?;
        let slots: Vec<_> = read.chunks_exact(block_bytes).collect();
        // Subroutine 1, steps 5 and 7: query × slots, for all chunks (Alg. 5, Retrieve).
        Gf256::combine(&mut product, run.query, 1, &slots);
        Gf256::add_multiple(&mut sum, Gf256::ONE, &product);
    }
    Ok(sum)
}
