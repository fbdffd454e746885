//! Small trees, and functions that compare a remote store with a store in memory.

use std::time::Duration;

use oblivio_core::store::{BucketStore, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::{BucketId, LayoutKind, MemoryStore, StoreError};
use oblivio_store::{RemoteOptions, RemoteStore};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::server::{NAME, Server};

/// The shapes of two trees, with three levels and one level.
pub(crate) fn shapes() -> Vec<TreeShape> {
    let level = |buckets, slots: u16, header_bytes, slot_bytes| LevelShape {
        buckets,
        slots,
        header_bytes,
        slots_offset: header_bytes + 3,
        slot_bytes,
        bucket_bytes: header_bytes + 3 + u64::from(slots) * slot_bytes + 1,
    };
    vec![
        TreeShape::new(vec![level(1, 2, 8, 20), level(2, 1, 16, 30), level(4, 3, 8, 11)]),
        TreeShape::new(vec![level(1, 0, 9, 0)]),
    ]
}

/// All parts of all buckets.
pub(crate) fn all_pieces() -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (tree, shape) in (0..).map(TreeId).zip(shapes()) {
        for (level, of_level) in (0..).zip(shape.levels()) {
            for index in 0..of_level.buckets {
                let bucket = BucketId::new(level, index);
                let slots = (0..of_level.slots).map(Part::Slot);
                let parts = [Part::Whole, Part::Header].into_iter().chain(slots);
                pieces.extend(parts.map(|part| Piece { tree, bucket, part }));
            }
        }
    }
    pieces
}

pub(crate) fn all_whole() -> Vec<Piece> {
    all_pieces().into_iter().filter(|piece| piece.part == Part::Whole).collect()
}

pub(crate) fn memory() -> MemoryStore {
    MemoryStore::new(&shapes(), LayoutKind::Heap).unwrap()
}

/// Options with short time limits.
pub(crate) fn options() -> RemoteOptions {
    RemoteOptions::new(NAME)
        .with_retry_for(Duration::from_secs(5))
        .with_answer_within(Duration::from_secs(5))
}

pub(crate) fn create(server: &Server) -> RemoteStore {
    create_with(server, options())
}

pub(crate) fn create_with(server: &Server, options: RemoteOptions) -> RemoteStore {
    RemoteStore::create(server.connector(), &shapes(), options).unwrap()
}

/// Fills the pieces of a trip with pseudorandom bytes from the seed.
pub(crate) fn try_fill(
    store: &mut impl BucketStore,
    pieces: &[Piece],
    seed: u64,
) -> Result<(), StoreError> {
    let mut coins = StdRng::seed_from_u64(seed);
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    let lengths = memory();
    for piece in pieces {
        let span = Span { start: bytes.len(), bytes: lengths.span(piece).unwrap().bytes };
        bytes.extend((0..span.bytes).map(|_| coins.random::<u8>()));
        spans.push(span);
    }
    store.write(pieces, &mut |blanks| blanks.relay(Frames::new(&bytes, &spans)))
}

pub(crate) fn fill(store: &mut impl BucketStore, pieces: &[Piece], seed: u64) {
    try_fill(store, pieces, seed).unwrap();
}

/// Reads pieces, and returns their bytes one after the other.
pub(crate) fn try_read(
    store: &mut impl BucketStore,
    pieces: &[Piece],
) -> Result<Vec<u8>, StoreError> {
    let frames = store.read(pieces)?;
    Ok((0..frames.len()).flat_map(|i| frames.get(i).to_vec()).collect())
}

pub(crate) fn read(store: &mut impl BucketStore, pieces: &[Piece]) -> Vec<u8> {
    try_read(store, pieces).unwrap()
}

/// A call that can be repeated on another store.
#[derive(Clone, Debug)]
pub(crate) enum StoreCall {
    Write(Vec<Piece>, u64),
    Read(Vec<Piece>),
    Prefetch(Vec<Piece>),
    Flush,
}

/// Generates `count` random calls of all kinds.
pub(crate) fn steps(count: usize, seed: u64) -> Vec<StoreCall> {
    let mut coins = StdRng::seed_from_u64(seed);
    let pieces = all_pieces();
    let mut announced: Vec<Vec<Piece>> = Vec::new();
    let mut step = |_| {
        let some =
            (0..coins.random_range(1..6)).map(|_| pieces[coins.random_range(0..pieces.len())]);
        let some: Vec<_> = some.collect();
        match coins.random_range(0..10) {
            0 => StoreCall::Flush,
            1..3 => {
                announced.push(some.clone());
                StoreCall::Prefetch(some)
            }
            3..7 => StoreCall::Write(some, coins.random()),
            7 => StoreCall::Read(some),
            _ => StoreCall::Read(announced.pop().unwrap_or(some)),
        }
    };
    (0..count).map(&mut step).collect()
}

/// Makes the calls on both stores, and checks that both read the same bytes.
pub(crate) fn take(steps: &[StoreCall], store: &mut RemoteStore, memory: &mut MemoryStore) {
    for (i, step) in steps.iter().enumerate() {
        match step {
            StoreCall::Write(pieces, seed) => {
                fill(store, pieces, *seed);
                fill(memory, pieces, *seed);
            }
            StoreCall::Read(pieces) => {
                assert!(read(store, pieces) == read(memory, pieces), "step {i}: {step:?}");
            }
            StoreCall::Prefetch(pieces) => store.prefetch(pieces),
            StoreCall::Flush => store.flush().unwrap(),
        }
    }
    assert!(read(store, &all_pieces()) == read(memory, &all_pieces()), "at the end");
    store.flush().unwrap();
}
