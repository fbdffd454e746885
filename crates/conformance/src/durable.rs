//! The checks on a store that is closed and opened again.

use oblivio_core::store::{BucketStore, Capabilities, Part};
use rand::RngExt;

use crate::bench::Bench;

/// Runs all checks, each on a fresh store. `reopen` loses a store and opens it again.
pub(crate) fn check<S: BucketStore>(
    mut bench: impl FnMut() -> Bench<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    what_was_flushed_is_there(bench(), reopen);
    each_of_several_flushes_counts(bench(), reopen);
    what_was_not_flushed_harms_nothing_else(bench(), reopen);
    a_new_store_is_there_once_it_was_flushed(bench(), reopen);
    any_sequence_of_flushes_agrees_with_a_table(bench(), reopen);
    if bench().can(Capabilities::PARTS) {
        parts_that_were_flushed_are_there(bench(), reopen);
    }
}

/// Flushed buckets survive; buckets that were never written still read as zeros.
fn what_was_flushed_is_there<S: BucketStore>(mut bench: Bench<S>, reopen: &mut impl FnMut(S) -> S) {
    let (pieces, whole) = (bench.all_pieces(), bench.all_of(Part::Whole));
    let can = bench.store.capabilities();
    bench.write(&whole[..whole.len() / 2]);
    bench.flush();
    bench = bench.reopened(&mut *reopen);
    bench.expect_shapes();
    assert_eq!(bench.store.capabilities(), can, "capabilities never change");
    bench.expect(&pieces, "half of the buckets flushed, then reopened");
    bench.write(&whole);
    bench.flush();
    bench = bench.reopened(&mut *reopen);
    bench.expect(&pieces, "all buckets flushed, then reopened");
    bench = bench.reopened(&mut *reopen);
    bench.expect(&pieces, "reopened without a write");
}

/// Catches a store whose record of dirty buckets is wrong after its first flush.
fn each_of_several_flushes_counts<S: BucketStore>(
    mut bench: Bench<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let pieces = bench.all_pieces();
    for piece in bench.all_of(Part::Whole) {
        bench.write(&[piece]);
        bench.flush();
    }
    bench.flush();
    bench.reopened(&mut *reopen).expect(&pieces, "a flush after each write, then reopened");
}

/// After a crash, buckets written since the last flush may hold anything, but stay readable and
/// writable. All others hold their flushed contents.
fn what_was_not_flushed_harms_nothing_else<S: BucketStore>(
    mut bench: Bench<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let (pieces, whole) = (bench.all_pieces(), bench.all_of(Part::Whole));
    bench.write(&whole);
    bench.flush();
    bench.write(&whole[..2]);
    bench = bench.reopened(&mut *reopen);
    bench.expect(&whole[2..], "flushed before others were written");
    bench.store.read(&whole[..2]).expect("a read of a bucket that was not flushed");
    bench.write(&whole[..2]);
    bench.flush();
    bench.reopened(&mut *reopen).expect(&pieces, "rewritten after the loss, then flushed");
}

fn a_new_store_is_there_once_it_was_flushed<S: BucketStore>(
    mut bench: Bench<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let pieces = bench.all_pieces();
    bench.flush();
    bench = bench.reopened(&mut *reopen);
    bench.expect_shapes();
    bench.expect(&pieces, "never written, then reopened");
}

fn parts_that_were_flushed_are_there<S: BucketStore>(
    mut bench: Bench<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let (pieces, whole) = (bench.all_pieces(), bench.all_of(Part::Whole));
    for part in [Part::Header, Part::Slot(0)] {
        let parts = bench.all_of(part);
        bench.write(&parts);
        bench.flush();
        bench = bench.reopened(&mut *reopen);
        bench.expect(&pieces, "parts flushed, then reopened");
        bench.write(&whole);
        bench.write(&parts);
        bench.flush();
        bench = bench.reopened(&mut *reopen);
        bench.expect(&pieces, "buckets, then parts flushed, then reopened");
    }
}

fn any_sequence_of_flushes_agrees_with_a_table<S: BucketStore>(
    mut bench: Bench<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let pieces = bench.all_pieces();
    for round in 0..20 {
        for _ in 0..bench.coins.random_range(0..30) {
            let piece = pieces[bench.coins.random_range(0..pieces.len())];
            match bench.coins.random_range(0..6) {
                0 => bench.store.prefetch(&[piece]),
                1 => bench.flush(),
                _ => bench.write(&[piece]),
            }
        }
        bench.flush();
        bench = bench.reopened(&mut *reopen);
        bench.expect(&pieces, &format!("opening {}", round + 2));
    }
}
