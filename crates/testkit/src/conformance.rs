//! The suite that every store passes: what [`BucketStore`] promises, checked from outside.

use std::collections::HashMap;
use std::ops::Range;

use oblivio_core::geometry::{BucketId, Geometry};
use oblivio_core::store::{
    BucketStore, Capabilities, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape,
};
use oblivio_core::{StoreErrorKind, TreeConfig};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Holds the stores that `make` returns to the contract. Each has to be empty, with trees of the
/// shapes it was made for, `TreeId(0)` first. What a store says that it cannot do has to be refused.
///
/// # Panics
/// With what a store does wrong.
pub fn check_store<S: BucketStore>(mut make: impl FnMut(&[TreeShape]) -> S) {
    let shapes = shapes();
    let mut bench = || Bench::new(make(&shapes), &shapes);
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

/// Small trees with different levels, slots and block sizes; the levels of the last are not full.
fn shapes() -> [TreeShape; 3] {
    let shape = |slots: &[u16], block_bytes| {
        let geometry = Geometry::profile(slots).expect("levels with slots");
        TreeConfig::new(7, block_bytes, geometry, 1).shape().expect("a small tree")
    };
    let mut levels = shape(&[1, 2, 1, 1], 32).levels().to_vec();
    for (level, buckets) in levels.iter_mut().zip([0, 2, 0, 5]) {
        level.buckets = buckets;
    }
    [shape(&[2, 1, 3, 2], 48), shape(&[1, 5, 2], 16), TreeShape::new(levels)]
}

fn shapes_are_those_asked_for<S: BucketStore>(bench: Bench<S>) {
    for (tree, shape) in (0..).zip(&bench.shapes) {
        assert_eq!(bench.store.shape(TreeId(tree)), Some(shape), "tree {tree}");
    }
    let past_the_end = TreeId(bench.shapes.len() as u16);
    assert_eq!(bench.store.shape(past_the_end), None, "a tree that was not asked for");
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
            let (bytes, spans) = bench.draw(&trip);
            let frames = Frames::new(&bytes, &spans);
            let read = bench.store.read(&trip).err();
            let written = bench.store.write(&trip, &mut |blanks| blanks.relay(frames)).err();
            let kinds = [read, written].map(|refusal| refusal.map(|error| error.kind()));
            assert_eq!(kinds, [Some(StoreErrorKind::Refused); 2], "read and write of {trip:?}");
        }
    }
    bench.expect(&whole, "after what was refused");
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
    bench.expect(&whole[4..], "not what was prefetched");
    bench.expect(&whole, "prefetched some calls ago");
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
        let empty = Frames::new(&[], &[]);
        let answer = bench.store.write(&[piece], &mut |blanks| blanks.relay(empty));
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

/// A store, and what it should hold.
struct Bench<S> {
    store: S,
    shapes: Vec<TreeShape>,
    buckets: HashMap<(TreeId, BucketId), Vec<u8>>,
    coins: StdRng,
}

impl<S: BucketStore> Bench<S> {
    fn new(store: S, shapes: &[TreeShape]) -> Self {
        let coins = StdRng::seed_from_u64(0);
        Self { store, shapes: shapes.to_vec(), buckets: HashMap::new(), coins }
    }

    fn can(&self, these: Capabilities) -> bool {
        self.store.capabilities().contains(these)
    }

    /// Every piece of every tree that the store can be asked for.
    fn all_pieces(&self) -> Vec<Piece> {
        let whole = self.all_of(Part::Whole);
        let parts_of = |piece: Piece| {
            let slots = (0..self.level_shape(&piece).slots).map(Part::Slot);
            let parts = [Part::Whole, Part::Header].into_iter().chain(slots);
            parts.map(move |part| Piece { part, ..piece })
        };
        let can = self.store.capabilities();
        whole.into_iter().flat_map(parts_of).filter(|piece| can.allow(piece)).collect()
    }

    /// This part of every bucket of every tree.
    fn all_of(&self, part: Part) -> Vec<Piece> {
        let trees = (0..).map(TreeId).zip(&self.shapes);
        let pieces = trees.flat_map(|(tree, shape)| {
            let buckets = (0..(1 << shape.level_count()) - 1).map(BucketId);
            let buckets = buckets.filter(|bucket| shape.contains(*bucket));
            buckets.map(move |bucket| Piece { tree, bucket, part })
        });
        pieces.collect()
    }

    fn level_shape(&self, piece: &Piece) -> &LevelShape {
        &self.shapes[usize::from(piece.tree.0)].levels()[usize::from(piece.bucket.level())]
    }

    /// The bytes of `piece` in its bucket.
    fn range(&self, piece: &Piece) -> Range<usize> {
        let shape = self.level_shape(piece);
        let (start, bytes) = match piece.part {
            Part::Whole => (0, shape.bucket_bytes),
            Part::Header => (0, shape.header_bytes),
            Part::Slot(slot) => {
                (shape.slots_offset + u64::from(slot) * shape.slot_bytes, shape.slot_bytes)
            }
        };
        start as usize..(start + bytes) as usize
    }

    fn bucket_mut(&mut self, piece: &Piece) -> &mut Vec<u8> {
        let absent = vec![0; self.level_shape(piece).bucket_bytes as usize];
        self.buckets.entry((piece.tree, piece.bucket)).or_insert(absent)
    }

    /// Random bytes for a trip.
    fn draw(&mut self, pieces: &[Piece]) -> (Vec<u8>, Vec<Span>) {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for piece in pieces {
            let (start, length) = (bytes.len(), self.range(piece).len());
            spans.push(Span { start, bytes: length });
            bytes.extend((0..length).map(|_| self.coins.random::<u8>()));
        }
        (bytes, spans)
    }

    /// Writes random bytes in one trip.
    fn write(&mut self, pieces: &[Piece]) {
        let (bytes, spans) = self.draw(pieces);
        for (piece, span) in pieces.iter().zip(&spans) {
            let range = self.range(piece);
            let drawn = &bytes[span.start..][..span.bytes];
            self.bucket_mut(piece)[range].copy_from_slice(drawn);
        }
        let mut fills = 0;
        self.store
            .write(pieces, &mut |blanks| {
                fills += 1;
                blanks.relay(Frames::new(&bytes, &spans))
            })
            .expect("a write of pieces that exist");
        assert_eq!(fills, 1, "blanks are filled exactly once");
    }

    /// Reads in one trip, and compares.
    fn expect(&mut self, pieces: &[Piece], case: &str) {
        let expected: Vec<Vec<u8>> = pieces
            .iter()
            .map(|piece| {
                let range = self.range(piece);
                self.bucket_mut(piece)[range].to_vec()
            })
            .collect();
        let frames = self.store.read(pieces).expect("a read of pieces that exist");
        assert_eq!(frames.len(), pieces.len(), "{case}: one frame for each piece");
        for (i, piece) in pieces.iter().enumerate() {
            assert!(frames.get(i) == expected[i], "{case}: frame {i}, {piece:?}, is wrong");
        }
    }

    fn flush(&mut self) {
        self.store.flush().expect("a flush of a sound store");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WholeBuckets;
    use oblivio_core::MemoryStore;
    use oblivio_core::StoreError;
    use oblivio_core::layout::LayoutKind;
    use oblivio_core::store::Fill;
    use oblivio_core::view::{Recorder, Tally};

    const LAYOUTS: [LayoutKind; 4] = [
        LayoutKind::Heap,
        LayoutKind::Striped,
        LayoutKind::Subtree { unit_bytes: 512 },
        LayoutKind::Subtree { unit_bytes: 4096 },
    ];

    fn memory(shapes: &[TreeShape], layout: LayoutKind) -> MemoryStore {
        MemoryStore::new(shapes, layout).unwrap()
    }

    #[test]
    fn memory_conforms_in_every_layout() {
        for layout in LAYOUTS {
            check_store(|shapes| memory(shapes, layout));
        }
    }

    #[test]
    fn a_recorder_conforms() {
        check_store(|shapes| Recorder::new(memory(shapes, LayoutKind::Heap), Tally::new()));
    }

    #[test]
    fn a_store_of_whole_buckets_conforms() {
        let whole = |shapes: &[TreeShape]| WholeBuckets(memory(shapes, LayoutKind::Heap));
        check_store(whole);
        check_store(|shapes| Recorder::new(whole(shapes), Tally::new()));
    }

    /// What a faulty store does with the pieces it is asked for.
    #[derive(Clone, Copy)]
    enum Fault {
        HeaderIsWhole,
        TreesAreOne,
        SlotsAreTheFirst,
        FramesAreSorted,
        WritesAreDropped,
        FlushFails,
        PartsAreRefused,
        PartsAreHidden,
        PartsAreWrittenAndRefused,
    }

    struct Faulty(MemoryStore, Fault);

    impl Faulty {
        fn refuse(&self, pieces: &[Piece]) -> Result<(), StoreError> {
            let refuses =
                matches!(self.1, Fault::PartsAreRefused | Fault::PartsAreWrittenAndRefused);
            match pieces.iter().any(|piece| piece.part != Part::Whole) {
                true if refuses => Err(StoreError::new(StoreErrorKind::Refused, "a part")),
                _ => Ok(()),
            }
        }

        fn distort(&self, pieces: &[Piece]) -> Vec<Piece> {
            let mut pieces = pieces.to_vec();
            for piece in &mut pieces {
                match (self.1, piece.part) {
                    (Fault::HeaderIsWhole, Part::Header) => piece.part = Part::Whole,
                    (Fault::TreesAreOne, _) if piece.bucket == BucketId::ROOT => {
                        piece.tree = TreeId(0);
                    }
                    (Fault::SlotsAreTheFirst, Part::Slot(_)) => piece.part = Part::Slot(0),
                    _ => {}
                }
            }
            if matches!(self.1, Fault::FramesAreSorted) {
                pieces.sort_unstable_by_key(|piece| (piece.tree, piece.bucket, piece.part));
            }
            pieces
        }
    }

    impl BucketStore for Faulty {
        fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
            self.0.shape(tree)
        }
        fn capabilities(&self) -> Capabilities {
            match self.1 {
                Fault::PartsAreHidden | Fault::PartsAreWrittenAndRefused => Capabilities::NONE,
                _ => self.0.capabilities(),
            }
        }
        fn prefetch(&mut self, pieces: &[Piece]) {
            self.0.prefetch(pieces);
        }
        fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
            self.refuse(pieces)?;
            let pieces = self.distort(pieces);
            self.0.read(&pieces)
        }
        fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
            if matches!(self.1, Fault::WritesAreDropped) {
                return Ok(());
            }
            self.0.write(pieces, fill)?;
            self.refuse(pieces)
        }
        fn flush(&mut self) -> Result<(), StoreError> {
            match self.1 {
                Fault::FlushFails => Err(StoreError::new(StoreErrorKind::Failed, "not durable")),
                _ => self.0.flush(),
            }
        }
    }

    #[test]
    fn faulty_stores_do_not_conform() {
        for fault in [
            Fault::HeaderIsWhole,
            Fault::TreesAreOne,
            Fault::SlotsAreTheFirst,
            Fault::FramesAreSorted,
            Fault::WritesAreDropped,
            Fault::FlushFails,
            Fault::PartsAreRefused,
            Fault::PartsAreHidden,
            Fault::PartsAreWrittenAndRefused,
        ] {
            let outcome = std::panic::catch_unwind(|| {
                check_store(|shapes| Faulty(memory(shapes, LayoutKind::Heap), fault));
            });
            assert!(outcome.is_err(), "fault {} passed", fault as u8);
        }
    }
}
