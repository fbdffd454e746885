//! The checks on a store that is closed and opened again.

use oblivio_core::store::{BucketStore, Capabilities, Part};
use rand::RngExt;

use crate::checked_store::CheckedStore;

/// Runs all checks, each on a fresh store. `reopen` loses a store as a crash would, and opens it
/// again.
pub(crate) fn check<S: BucketStore>(
    mut checked: impl FnMut() -> CheckedStore<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    what_was_flushed_is_there(checked(), reopen);
    each_of_several_flushes_counts(checked(), reopen);
    what_was_not_flushed_harms_nothing_else(checked(), reopen);
    a_new_store_is_there_once_it_was_flushed(checked(), reopen);
    any_sequence_of_flushes_agrees_with_a_table(checked(), reopen);
    if checked().can(Capabilities::PARTS) {
        parts_that_were_flushed_are_there(checked(), reopen);
    }
}

/// Flushed buckets survive. Buckets that were never written still read as zeros.
fn what_was_flushed_is_there<S: BucketStore>(
    mut checked: CheckedStore<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let (pieces, whole) = (checked.all_pieces(), checked.all_of(Part::Whole));
    let can = checked.store.capabilities();
    checked.write(&whole[..whole.len() / 2]);
    checked.flush();
    checked = checked.reopened(&mut *reopen);
    checked.expect_shapes();
    assert_eq!(checked.store.capabilities(), can, "capabilities never change");
    checked.expect(&pieces, "half of the buckets flushed, then reopened");
    checked.write(&whole);
    checked.flush();
    checked = checked.reopened(&mut *reopen);
    checked.expect(&pieces, "all buckets flushed, then reopened");
    checked = checked.reopened(&mut *reopen);
    checked.expect(&pieces, "reopened without a write");
}

/// Catches a store whose record of dirty buckets is wrong after its first flush.
fn each_of_several_flushes_counts<S: BucketStore>(
    mut checked: CheckedStore<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let pieces = checked.all_pieces();
    for piece in checked.all_of(Part::Whole) {
        checked.write(&[piece]);
        checked.flush();
    }
    checked.flush();
    checked.reopened(&mut *reopen).expect(&pieces, "a flush after each write, then reopened");
}

/// After a crash, buckets written since the last flush may have any contents, but stay readable and
/// writable. All others have their flushed contents.
fn what_was_not_flushed_harms_nothing_else<S: BucketStore>(
    mut checked: CheckedStore<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let (pieces, whole) = (checked.all_pieces(), checked.all_of(Part::Whole));
    checked.write(&whole);
    checked.flush();
    checked.write(&whole[..2]);
    checked = checked.reopened(&mut *reopen);
    checked.expect(&whole[2..], "flushed before others were written");
    checked.store.read(&whole[..2]).expect("a read of a bucket that was not flushed");
    checked.write(&whole[..2]);
    checked.flush();
    checked.reopened(&mut *reopen).expect(&pieces, "rewritten after the loss, then flushed");
}

fn a_new_store_is_there_once_it_was_flushed<S: BucketStore>(
    mut checked: CheckedStore<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let pieces = checked.all_pieces();
    checked.flush();
    checked = checked.reopened(&mut *reopen);
    checked.expect_shapes();
    checked.expect(&pieces, "never written, then reopened");
}

fn parts_that_were_flushed_are_there<S: BucketStore>(
    mut checked: CheckedStore<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let (pieces, whole) = (checked.all_pieces(), checked.all_of(Part::Whole));
    for part in [Part::Header, Part::Slot(0)] {
        let parts = checked.all_of(part);
        checked.write(&parts);
        checked.flush();
        checked = checked.reopened(&mut *reopen);
        checked.expect(&pieces, "parts flushed, then reopened");
        checked.write(&whole);
        checked.write(&parts);
        checked.flush();
        checked = checked.reopened(&mut *reopen);
        checked.expect(&pieces, "buckets, then parts flushed, then reopened");
    }
}

fn any_sequence_of_flushes_agrees_with_a_table<S: BucketStore>(
    mut checked: CheckedStore<S>,
    reopen: &mut impl FnMut(S) -> S,
) {
    let pieces = checked.all_pieces();
    for round in 0..20 {
        for _ in 0..checked.coins.random_range(0..30) {
            let piece = pieces[checked.coins.random_range(0..pieces.len())];
            match checked.coins.random_range(0..6) {
                0 => checked.store.prefetch(&[piece]),
                1 => checked.flush(),
                _ => checked.write(&[piece]),
            }
        }
        checked.flush();
        checked = checked.reopened(&mut *reopen);
        checked.expect(&pieces, &format!("opening {}", round + 2));
    }
}
