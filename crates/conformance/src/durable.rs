//! What a store has to hold when it is opened again.

use oblivio_core::store::{BucketStore, Capabilities, Part};
use rand::RngExt;

use crate::bench::Bench;

/// Each check gets a store of its own. `reopen` loses one, and opens it again.
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

/// And what was never written is zeros.
fn what_was_flushed_is_there<S: BucketStore>(mut bench: Bench<S>, reopen: &mut impl FnMut(S) -> S) {
    let (pieces, whole) = (bench.all_pieces(), bench.all_of(Part::Whole));
    let can = bench.store.capabilities();
    bench.write(&whole[..whole.len() / 2]);
    bench.flush();
    bench = bench.reopened(&mut *reopen);
    bench.expect_shapes();
    assert_eq!(bench.store.capabilities(), can, "what a store can do never changes");
    bench.expect(&pieces, "half of the buckets flushed, and the store opened again");
    bench.write(&whole);
    bench.flush();
    bench = bench.reopened(&mut *reopen);
    bench.expect(&pieces, "all buckets flushed, and the store opened again");
    bench = bench.reopened(&mut *reopen);
    bench.expect(&pieces, "opened again without a write");
}

/// A store that remembers what it has to flush has to remember it anew.
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
    bench
        .reopened(&mut *reopen)
        .expect(&pieces, "one flush after another, and the store opened again");
}

/// Of what was written after the last flush, a store may have anything; of the rest, what was flushed. It can be written again.
fn what_was_not_flushed_harms_nothing_else<S: BucketStore>(
    mut bench: Bench<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let (pieces, whole) = (bench.all_pieces(), bench.all_of(Part::Whole));
    bench.write(&whole);
    bench.flush();
    bench.write(&whole[..2]);
    bench = bench.reopened(&mut *reopen);
    bench.expect(&whole[2..], "flushed, and others written after that");
    bench.store.read(&whole[..2]).expect("a read of what was not flushed");
    bench.write(&whole[..2]);
    bench.flush();
    bench.reopened(&mut *reopen).expect(&pieces, "written again after a loss, and flushed");
}

fn a_new_store_is_there_once_it_was_flushed<S: BucketStore>(
    mut bench: Bench<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let pieces = bench.all_pieces();
    bench.flush();
    bench = bench.reopened(&mut *reopen);
    bench.expect_shapes();
    bench.expect(&pieces, "never written, and the store opened again");
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
        bench.expect(&pieces, "parts flushed, and the store opened again");
        bench.write(&whole);
        bench.write(&parts);
        bench.flush();
        bench = bench.reopened(&mut *reopen);
        bench.expect(&pieces, "buckets and then parts flushed, and the store opened again");
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
        bench.expect(&pieces, &format!("opened for the {}. time", round + 2));
    }
}
