//! The checks on a store while it stays open.

use oblivio_core::StoreErrorKind;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Capabilities, Part, Piece, SealedByClient, TreeId};
use rand::RngExt;

use crate::bench::Bench;

/// Runs all checks, each on a fresh store.
pub(crate) fn check<S: BucketStore>(mut bench: impl FnMut() -> Bench<S>) {
    shapes_are_those_asked_for(bench());
    absent_buckets_read_as_zeros(bench());
    pieces_lie_where_the_shape_says(bench());
    frames_come_in_the_order_asked(bench());
    reads_change_nothing(bench());
    prefetches_change_nothing(bench());
    trees_and_buckets_do_not_overlap(bench());
    trips_without_pieces_are_trips(bench());
    absent_pieces_are_errors(bench());
    flushed_writes_stay(bench());
    any_sequence_of_calls_agrees_with_a_table(bench());
    if bench().can(Capabilities::PARTS) {
        a_part_leaves_the_rest_untouched(bench());
        a_part_written_after_a_prefetch_is_read(bench());
    } else {
        parts_are_refused(bench());
    }
}

fn shapes_are_those_asked_for<S: BucketStore>(bench: Bench<S>) {
    bench.expect_shapes();
}

fn absent_buckets_read_as_zeros<S: BucketStore>(mut bench: Bench<S>) {
    let pieces = bench.all_pieces();
    bench.expect(&pieces, "never written");
}

fn pieces_lie_where_the_shape_says<S: BucketStore>(mut bench: Bench<S>) {
    let whole = bench.all_of(Part::Whole);
    bench.write(&whole);
    let pieces = bench.all_pieces();
    bench.expect(&pieces, "pieces of buckets written as a whole");
    for piece in pieces {
        bench.write(&[piece]);
        bench.expect(&[piece, Piece { part: Part::Whole, ..piece }], "a piece written alone");
    }
}

fn frames_come_in_the_order_asked<S: BucketStore>(mut bench: Bench<S>) {
    let mut pieces = bench.all_pieces();
    let whole = bench.all_of(Part::Whole);
    bench.write(&whole);
    bench.expect(&pieces, "forwards");
    pieces.reverse();
    bench.expect(&pieces, "backwards");
    let mut reversed: Vec<_> = whole.into_iter().rev().collect();
    bench.write(&reversed);
    bench.expect(&pieces, "written backwards");
    reversed.rotate_left(3);
    bench.expect(&reversed, "rotated");
}

fn a_part_leaves_the_rest_untouched<S: BucketStore>(mut bench: Bench<S>) {
    for part in [Part::Header, Part::Slot(0)] {
        let parts = bench.all_of(part);
        bench.write(&parts);
        let pieces = bench.all_pieces();
        bench.expect(&pieces, "a part of a bucket that was absent");
        let whole = bench.all_of(Part::Whole);
        bench.write(&whole);
        bench.write(&parts);
        bench.expect(&pieces, "a part of a bucket that was written");
    }
}

fn a_part_written_after_a_prefetch_is_read<S: BucketStore>(mut bench: Bench<S>) {
    let pieces = bench.all_pieces();
    let (whole, headers) = (bench.all_of(Part::Whole), bench.all_of(Part::Header));
    bench.write(&whole);
    bench.store.prefetch(&whole[..2]);
    bench.write(&headers[..1]);
    bench.expect(&pieces, "a part written after a prefetch of the whole");
}

fn parts_are_refused<S: BucketStore>(mut bench: Bench<S>) {
    let whole = bench.all_of(Part::Whole);
    bench.write(&whole);
    for piece in [Part::Header, Part::Slot(0)].map(|part| Piece { part, ..whole[0] }) {
        for trip in [vec![piece], vec![whole[1], piece]] {
            bench.store.prefetch(&trip);
            let bytes = bench.draw(&trip).concat();
            let sealed = SealedByClient::new(&bytes);
            let read = bench.store.read(&trip).err();
            let written = bench.store.write(&trip, &mut |blanks| sealed.put(blanks)).err();
            let kinds = [read, written].map(|refusal| refusal.map(|error| error.kind()));
            assert_eq!(kinds, [Some(StoreErrorKind::Refused); 2], "read and write of {trip:?}");
        }
    }
    bench.expect(&whole, "after refused calls");
    bench.flush();
}

fn reads_change_nothing<S: BucketStore>(mut bench: Bench<S>) {
    let pieces = bench.all_pieces();
    let whole = bench.all_of(Part::Whole);
    bench.write(&whole);
    for _ in 0..3 {
        bench.expect(&pieces, "read again");
    }
}

fn prefetches_change_nothing<S: BucketStore>(mut bench: Bench<S>) {
    let pieces = bench.all_pieces();
    let whole = bench.all_of(Part::Whole);
    bench.store.prefetch(&pieces);
    bench.expect(&pieces, "prefetched");
    bench.store.prefetch(&whole);
    bench.write(&whole);
    bench.expect(&pieces, "written after the prefetch");
    bench.store.prefetch(&whole[..2]);
    bench.store.prefetch(&whole[2..4]);
    bench.expect(&whole[4..], "other buckets than the prefetched ones");
    bench.expect(&whole, "prefetched a few calls earlier");
    bench.store.prefetch(&[]);
}

fn trees_and_buckets_do_not_overlap<S: BucketStore>(mut bench: Bench<S>) {
    let pieces = bench.all_pieces();
    for piece in bench.all_of(Part::Whole) {
        bench.write(&[piece]);
        bench.expect(&pieces, "one bucket after another");
    }
}

fn trips_without_pieces_are_trips<S: BucketStore>(mut bench: Bench<S>) {
    bench.write(&[]);
    bench.expect(&[], "nothing");
}

fn absent_pieces_are_errors<S: BucketStore>(mut bench: Bench<S>) {
    let sound = Piece { tree: TreeId(0), bucket: BucketId::ROOT, part: Part::Whole };
    let slots = bench.shapes[0].levels()[0].slots;
    let absent = [
        Piece { tree: TreeId(3), ..sound },
        Piece { tree: TreeId(2), ..sound },
        Piece { tree: TreeId(2), bucket: BucketId::new(3, 5), ..sound },
        Piece { tree: TreeId(u16::MAX), ..sound },
        Piece { bucket: BucketId((1 << bench.shapes[0].level_count()) - 1), ..sound },
        Piece { bucket: BucketId((1 << 41) - 1), ..sound },
        Piece { bucket: BucketId(u64::MAX - 1), ..sound },
        Piece { bucket: BucketId(u64::MAX), ..sound },
        Piece { part: Part::Slot(slots), ..sound },
        Piece { part: Part::Slot(u16::MAX), ..sound },
    ];
    for piece in absent {
        bench.store.prefetch(&[piece]);
        assert!(bench.store.read(&[piece]).is_err(), "read of {piece:?}");
        assert!(bench.store.read(&[sound, piece]).is_err(), "read of {piece:?} and another");
        let nothing = SealedByClient::new(&[]);
        let answer = bench.store.write(&[piece], &mut |blanks| nothing.put(blanks));
        assert!(answer.is_err(), "write of {piece:?}");
    }
}

fn flushed_writes_stay<S: BucketStore>(mut bench: Bench<S>) {
    bench.flush();
    let whole = bench.all_of(Part::Whole);
    bench.write(&whole);
    bench.flush();
    bench.expect(&whole, "flushed");
    bench.write(&whole[..3]);
    bench.flush();
    bench.flush();
    bench.expect(&whole, "flushed again");
}

fn any_sequence_of_calls_agrees_with_a_table<S: BucketStore>(mut bench: Bench<S>) {
    let pieces = bench.all_pieces();
    for step in 0..2000 {
        let count = bench.coins.random_range(1..6);
        let mut some: Vec<_> =
            (0..count).map(|_| pieces[bench.coins.random_range(0..pieces.len())]).collect();
        match bench.coins.random_range(0..8) {
            0 => bench.store.prefetch(&some),
            1 => bench.flush(),
            2..5 => {
                some.sort_unstable_by_key(|piece| (piece.tree, piece.bucket));
                some.dedup_by_key(|piece| (piece.tree, piece.bucket));
                bench.write(&some);
            }
            _ => bench.expect(&some, &format!("step {step}")),
        }
    }
    bench.expect(&pieces, "at the end");
}
