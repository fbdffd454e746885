//! The checks on a store while it stays open.

use oblivio_core::StoreErrorKind;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Capabilities, Part, Piece, SealedByClient, TreeId};
use rand::RngExt;

use crate::checked_store::CheckedStore;

/// Runs all checks, each on a fresh store.
pub(crate) fn check<S: BucketStore>(mut checked: impl FnMut() -> CheckedStore<S>) {
    shapes_are_those_asked_for(checked());
    absent_buckets_read_as_zeros(checked());
    pieces_lie_where_the_shape_says(checked());
    frames_come_in_the_order_asked(checked());
    reads_change_nothing(checked());
    prefetches_change_nothing(checked());
    trees_and_buckets_do_not_overlap(checked());
    trips_without_pieces_are_trips(checked());
    absent_pieces_are_errors(checked());
    flushed_writes_stay(checked());
    any_sequence_of_calls_agrees_with_a_table(checked());
    if checked().can(Capabilities::PARTS) {
        a_part_leaves_the_rest_untouched(checked());
        a_part_written_after_a_prefetch_is_read(checked());
    } else {
        parts_are_refused(checked());
    }
}

fn shapes_are_those_asked_for<S: BucketStore>(checked: CheckedStore<S>) {
    checked.expect_shapes();
}

fn absent_buckets_read_as_zeros<S: BucketStore>(mut checked: CheckedStore<S>) {
    let pieces = checked.all_pieces();
    checked.expect(&pieces, "never written");
}

fn pieces_lie_where_the_shape_says<S: BucketStore>(mut checked: CheckedStore<S>) {
    let whole = checked.all_of(Part::Whole);
    checked.write(&whole);
    let pieces = checked.all_pieces();
    checked.expect(&pieces, "pieces of buckets written as a whole");
    for piece in pieces {
        checked.write(&[piece]);
        checked.expect(&[piece, Piece { part: Part::Whole, ..piece }], "a piece written alone");
    }
}

fn frames_come_in_the_order_asked<S: BucketStore>(mut checked: CheckedStore<S>) {
    let mut pieces = checked.all_pieces();
    let whole = checked.all_of(Part::Whole);
    checked.write(&whole);
    checked.expect(&pieces, "forwards");
    pieces.reverse();
    checked.expect(&pieces, "backwards");
    let mut reversed: Vec<_> = whole.into_iter().rev().collect();
    checked.write(&reversed);
    checked.expect(&pieces, "written backwards");
    reversed.rotate_left(3);
    checked.expect(&reversed, "rotated");
}

fn a_part_leaves_the_rest_untouched<S: BucketStore>(mut checked: CheckedStore<S>) {
    for part in [Part::Header, Part::Slot(0)] {
        let parts = checked.all_of(part);
        checked.write(&parts);
        let pieces = checked.all_pieces();
        checked.expect(&pieces, "a part of a bucket that was absent");
        let whole = checked.all_of(Part::Whole);
        checked.write(&whole);
        checked.write(&parts);
        checked.expect(&pieces, "a part of a bucket that was written");
    }
}

fn a_part_written_after_a_prefetch_is_read<S: BucketStore>(mut checked: CheckedStore<S>) {
    let pieces = checked.all_pieces();
    let (whole, headers) = (checked.all_of(Part::Whole), checked.all_of(Part::Header));
    checked.write(&whole);
    checked.store.prefetch(&whole[..2]);
    checked.write(&headers[..1]);
    checked.expect(&pieces, "a part written after a prefetch of the whole");
}

fn parts_are_refused<S: BucketStore>(mut checked: CheckedStore<S>) {
    let whole = checked.all_of(Part::Whole);
    checked.write(&whole);
    for piece in [Part::Header, Part::Slot(0)].map(|part| Piece { part, ..whole[0] }) {
        for trip in [vec![piece], vec![whole[1], piece]] {
            checked.store.prefetch(&trip);
            let bytes = checked.draw(&trip).concat();
            let sealed = SealedByClient::new(&bytes);
            let read = checked.store.read(&trip).err();
            let written = checked.store.write(&trip, &mut |blanks| sealed.put(blanks)).err();
            let kinds = [read, written].map(|refusal| refusal.map(|error| error.kind()));
            assert_eq!(kinds, [Some(StoreErrorKind::Refused); 2], "read and write of {trip:?}");
        }
    }
    checked.expect(&whole, "after refused calls");
    checked.flush();
}

fn reads_change_nothing<S: BucketStore>(mut checked: CheckedStore<S>) {
    let pieces = checked.all_pieces();
    let whole = checked.all_of(Part::Whole);
    checked.write(&whole);
    for _ in 0..3 {
        checked.expect(&pieces, "read again");
    }
}

fn prefetches_change_nothing<S: BucketStore>(mut checked: CheckedStore<S>) {
    let pieces = checked.all_pieces();
    let whole = checked.all_of(Part::Whole);
    checked.store.prefetch(&pieces);
    checked.expect(&pieces, "prefetched");
    checked.store.prefetch(&whole);
    checked.write(&whole);
    checked.expect(&pieces, "written after the prefetch");
    checked.store.prefetch(&whole[..2]);
    checked.store.prefetch(&whole[2..4]);
    checked.expect(&whole[4..], "other buckets than the prefetched ones");
    checked.expect(&whole, "prefetched a few calls earlier");
    checked.store.prefetch(&[]);
}

fn trees_and_buckets_do_not_overlap<S: BucketStore>(mut checked: CheckedStore<S>) {
    let pieces = checked.all_pieces();
    for piece in checked.all_of(Part::Whole) {
        checked.write(&[piece]);
        checked.expect(&pieces, "one bucket after another");
    }
}

fn trips_without_pieces_are_trips<S: BucketStore>(mut checked: CheckedStore<S>) {
    checked.write(&[]);
    checked.expect(&[], "nothing");
}

fn absent_pieces_are_errors<S: BucketStore>(mut checked: CheckedStore<S>) {
    let sound = Piece { tree: TreeId(0), bucket: BucketId::ROOT, part: Part::Whole };
    let slots = checked.shapes[0].levels()[0].slots;
    let absent = [
        Piece { tree: TreeId(3), ..sound },
        Piece { tree: TreeId(2), ..sound },
        Piece { tree: TreeId(2), bucket: BucketId::new(3, 5), ..sound },
        Piece { tree: TreeId(u16::MAX), ..sound },
        Piece { bucket: BucketId((1 << checked.shapes[0].level_count()) - 1), ..sound },
        Piece { bucket: BucketId((1 << 41) - 1), ..sound },
        Piece { bucket: BucketId(u64::MAX - 1), ..sound },
        Piece { bucket: BucketId(u64::MAX), ..sound },
        Piece { part: Part::Slot(slots), ..sound },
        Piece { part: Part::Slot(u16::MAX), ..sound },
    ];
    for piece in absent {
        checked.store.prefetch(&[piece]);
        assert!(checked.store.read(&[piece]).is_err(), "read of {piece:?}");
        assert!(checked.store.read(&[sound, piece]).is_err(), "read of {piece:?} and another");
        let nothing = SealedByClient::new(&[]);
        let answer = checked.store.write(&[piece], &mut |blanks| nothing.put(blanks));
        assert!(answer.is_err(), "write of {piece:?}");
    }
}

fn flushed_writes_stay<S: BucketStore>(mut checked: CheckedStore<S>) {
    checked.flush();
    let whole = checked.all_of(Part::Whole);
    checked.write(&whole);
    checked.flush();
    checked.expect(&whole, "flushed");
    checked.write(&whole[..3]);
    checked.flush();
    checked.flush();
    checked.expect(&whole, "flushed again");
}

fn any_sequence_of_calls_agrees_with_a_table<S: BucketStore>(mut checked: CheckedStore<S>) {
    let pieces = checked.all_pieces();
    for step in 0..2000 {
        let count = checked.coins.random_range(1..6);
        let mut some: Vec<_> =
            (0..count).map(|_| pieces[checked.coins.random_range(0..pieces.len())]).collect();
        match checked.coins.random_range(0..8) {
            0 => checked.store.prefetch(&some),
            1 => checked.flush(),
            2..5 => {
                some.sort_unstable_by_key(|piece| (piece.tree, piece.bucket));
                some.dedup_by_key(|piece| (piece.tree, piece.bucket));
                checked.write(&some);
            }
            _ => checked.expect(&some, &format!("step {step}")),
        }
    }
    checked.expect(&pieces, "at the end");
}
