//! Measures the cost of different forms of the store trait: see `docs/adr/0001-store-trait.md`.
//!
//! Each benchmark reads one random path of a tree like RAW ORAM's at 2^20 blocks of 64 bytes, and
//! adds up the first eight bytes of every bucket. The benchmarks differ in how they pass the bytes.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run has no result")]

use divan::{Bencher, black_box};
use oblivio_core::store::{BucketStore, Frames, Part, Piece, Span, TreeId};
use oblivio_core::{BucketId, Leaf, MemoryStore, RawConfig};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const LEAF_LEVEL: u8 = 19;

fn main() {
    divan::main();
}

fn store() -> MemoryStore {
    let config = RawConfig::new(1 << 20, 64).unwrap();
    let mut store =
        MemoryStore::new(&[config.tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
    // Untouched pages would all map to the same zero page.
    store.contents_mut().chunks_mut(4096).for_each(|page| page[0] = 1);
    store
}

fn paths() -> impl FnMut() -> Vec<Piece> {
    let mut coins = StdRng::seed_from_u64(1);
    move || {
        let leaf = Leaf(coins.random_range(0..1 << LEAF_LEVEL));
        let piece = |level| Piece {
            tree: TreeId(0),
            bucket: BucketId::on_path(leaf, level),
            part: Part::Whole,
        };
        (0..=LEAF_LEVEL).map(piece).collect()
    }
}

fn first_word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word))
}

fn add_up(frames: Frames<'_>) -> u64 {
    (0..frames.len()).map(|i| first_word(frames.get(i))).fold(0, u64::wrapping_add)
}

fn spans(store: &MemoryStore, pieces: &[Piece]) -> Vec<Span> {
    pieces.iter().map(|piece| store.span(piece).unwrap()).collect()
}

fn bytes(store: &MemoryStore, span: Span) -> &[u8] {
    &store.contents()[span.start..span.start + span.bytes]
}

/// The current trait: one call, whose frames borrow from the medium.
#[divan::bench(sample_count = 200, sample_size = 500)]
fn borrowed_frames(bencher: Bencher) {
    let mut store = store();
    bencher.with_inputs(paths()).bench_local_refs(|pieces| add_up(store.read(pieces).unwrap()));
}

/// The current trait behind `dyn BucketStore`.
#[divan::bench(sample_count = 200, sample_size = 500)]
fn borrowed_frames_of_a_trait_object(bencher: Bencher) {
    let mut store = store();
    let store: &mut dyn BucketStore = black_box(&mut store);
    bencher.with_inputs(paths()).bench_local_refs(|pieces| add_up(store.read(pieces).unwrap()));
}

/// The original design: a callback per piece, through a pointer.
#[divan::bench(sample_count = 200, sample_size = 500)]
fn callback_for_each_piece(bencher: Bencher) {
    fn read(store: &MemoryStore, pieces: &[Piece], each: &mut dyn FnMut(usize, &[u8])) {
        for (i, span) in spans(store, pieces).into_iter().enumerate() {
            each(i, bytes(store, span));
        }
    }
    let store = store();
    bencher.with_inputs(paths()).bench_local_refs(|pieces| {
        let mut sum = 0u64;
        read(&store, pieces, black_box(&mut |_, bytes| sum = sum.wrapping_add(first_word(bytes))));
        sum
    });
}

/// A design that copies every piece into a buffer of the caller.
#[divan::bench(sample_count = 200, sample_size = 500)]
fn owned_frames(bencher: Bencher) {
    let store = store();
    bencher.with_inputs(paths()).bench_local_refs(|pieces| {
        let spans = spans(&store, pieces);
        let mut buffer = Vec::with_capacity(spans.iter().map(|span| span.bytes).sum());
        let mut sum = 0u64;
        for span in spans {
            let start = buffer.len();
            buffer.extend_from_slice(bytes(&store, span));
            sum = sum.wrapping_add(first_word(&buffer[start..]));
        }
        sum
    });
}
