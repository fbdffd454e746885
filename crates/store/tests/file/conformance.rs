//! Checks that the file store keeps the contract of every store, in all its modes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use oblivio_conformance::{check_durable_store, check_store};
use oblivio_core::store::{BucketStore, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::{BucketId, LayoutKind, MemoryStore};
use oblivio_store::{FileOptions, FileStore};
use proptest::prelude::*;
use tempfile::TempDir;

const WRITE_BEHIND_BYTES: [usize; 4] = [0, 1, 4096, 4 << 20];

/// A folder in which each new store gets a new file.
struct Folder {
    folder: TempDir,
    files: RefCell<usize>,
}

impl Folder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), files: RefCell::new(0) }
    }

    fn next(&self) -> PathBuf {
        *self.files.borrow_mut() += 1;
        self.folder.path().join(self.files.borrow().to_string())
    }

    fn create(&self, shapes: &[TreeShape], options: &FileOptions) -> FileStore {
        FileStore::create(&self.next(), shapes, options).unwrap()
    }

    /// Runs the conformance suite on a file store with these options. If the options enable reading
    /// ahead, only the tests without reopening run, because reading ahead does not affect
    /// durability.
    fn check(&self, options: &FileOptions) {
        if options.looks_ahead {
            return check_store(|shapes| self.create(shapes, options));
        }
        check_durable_store(
            |shapes| self.create(shapes, options),
            |store| {
                drop(store);
                let last = self.folder.path().join(self.files.borrow().to_string());
                FileStore::open(&last, options).unwrap()
            },
        );
    }
}

#[test]
fn conforms_through_the_page_cache() {
    let folder = Folder::new();
    for write_behind_bytes_max in WRITE_BEHIND_BYTES {
        for looks_ahead in [false, true] {
            let options = FileOptions::default()
                .with_write_behind_bytes_max(write_behind_bytes_max)
                .with_looks_ahead(looks_ahead);
            folder.check(&options);
        }
    }
}

#[test]
fn conforms_past_the_page_cache() {
    let folder = Folder::new();
    for write_behind_bytes_max in WRITE_BEHIND_BYTES {
        for looks_ahead in [false, true] {
            let options = FileOptions::default()
                .with_direct(true)
                .with_write_behind_bytes_max(write_behind_bytes_max)
                .with_looks_ahead(looks_ahead);
            folder.check(&options);
        }
    }
}

/// Flushed writes survive reopening: one store writes and flushes, and the next one reads, each
/// with or without direct I/O.
#[test]
fn flushed_writes_survive_reopening() {
    let folder = Folder::new();
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let path = folder.next();
        let options = |direct| FileOptions::default().with_direct(direct);
        let mut written = Model::new();
        let mut store = FileStore::create(&path, &shapes(), &options(first)).unwrap();
        for (seed, trip) in trips().into_iter().enumerate() {
            written.write(&mut store, &trip, seed as u64);
        }
        store.flush().unwrap();
        // This write is not flushed.
        Model::new().write(&mut store, &trips()[0], 99);
        drop(store);
        let mut store = FileStore::open(&path, &options(second)).unwrap();
        assert_eq!(store.shapes(), shapes());
        assert_eq!(store.damaged_header_copies(), 0);
        written.check(&mut store, &all_pieces());
    }
}

#[test]
fn a_reader_reads_and_refuses_writes() {
    let folder = Folder::new();
    let path = folder.next();
    let mut written = Model::new();
    let mut store = FileStore::create(&path, &shapes(), &FileOptions::default()).unwrap();
    written.write(&mut store, &trips()[0], 1);
    store.flush().unwrap();
    drop(store);
    let options = FileOptions::default().with_read_only(true);
    let mut store = FileStore::open(&path, &options).unwrap();
    written.check(&mut store, &all_pieces());
    let answer = store.write(&trips()[0], &mut |_| panic!("a refused write must not be filled"));
    assert!(answer.unwrap_err().to_string().contains("read only"));
    store.flush().unwrap();
    written.check(&mut store, &all_pieces());
}

/// Later writes update trips that were read ahead: parts and whole buckets, with and without
/// write-behind.
#[test]
fn trips_read_ahead_are_updated_by_later_writes() {
    let folder = Folder::new();
    for (direct, write_behind_bytes_max) in
        [(false, 0), (false, 1 << 20), (true, 0), (true, 1 << 20)]
    {
        let options = FileOptions::default()
            .with_direct(direct)
            .with_write_behind_bytes_max(write_behind_bytes_max)
            .with_looks_ahead(true);
        let mut store = folder.create(&shapes(), &options);
        let mut model = Model::new();
        let whole = trips().swap_remove(0);
        model.write(&mut store, &whole, 1);
        for (seed, later) in (2..).zip(trips()) {
            // Flush, so that nothing is pending and everything is read ahead.
            store.flush().unwrap();
            store.prefetch(&whole);
            // Give the thread time to read everything.
            std::thread::sleep(std::time::Duration::from_millis(20));
            model.write(&mut store, &later, seed);
            model.check(&mut store, &whole);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For any write-behind, merging and reading ahead, reads return the same as a store in memory,
    /// before and after reopening. One trip may contain several parts of the same bucket.
    #[test]
    fn a_file_store_behaves_like_a_memory_store(
        direct: bool,
        looks_ahead: bool,
        write_behind_bytes_max in prop::sample::select(&[0usize, 700, 3000, 20_000, 1 << 20][..]),
        steps in prop::collection::vec(
            (0u8..10, prop::collection::vec(any::<prop::sample::Index>(), 1..6)), 1..60,
        ),
    ) {
        let folder = Folder::new();
        let path = folder.next();
        let options =
            FileOptions::default().with_direct(direct).with_looks_ahead(looks_ahead)
                .with_write_behind_bytes_max(write_behind_bytes_max);
        let mut store = FileStore::create(&path, &shapes(), &options).unwrap();
        let mut announced = Vec::new();
        let mut memory = MemoryStore::new(&shapes(), LayoutKind::Heap).unwrap();
        let pieces = all_pieces();
        for (seed, (step, indices)) in steps.into_iter().enumerate() {
            let some: Vec<_> = indices.iter().map(|index| *index.get(&pieces)).collect();
            match step {
                0 => store.flush().unwrap(),
                1 => {
                    store.prefetch(&some);
                    announced.push(some);
                }
                2 => {
                    store.flush().unwrap();
                    drop(store);
                    store = FileStore::open(&path, &options).unwrap();
                }
                3..6 => {
                    fill(&mut store, &some, seed as u64);
                    fill(&mut memory, &some, seed as u64);
                }
                6..8 => compare(&mut store, &mut memory, &some)?,
                _ => compare(&mut store, &mut memory, &announced.pop().unwrap_or(some))?,
            }
        }
        compare(&mut store, &mut memory, &pieces)?;
    }
}

fn compare(
    store: &mut FileStore,
    memory: &mut MemoryStore,
    pieces: &[Piece],
) -> Result<(), TestCaseError> {
    let expected = memory.read(pieces).unwrap();
    let frames = store.read(pieces).unwrap();
    for (i, piece) in pieces.iter().enumerate() {
        prop_assert!(frames.get(i) == expected.get(i), "frame {}: {:?}", i, piece);
    }
    Ok(())
}

/// Shapes with buckets shorter than a sector and of several sectors. Parts end within sectors and
/// on boundaries, or have no bytes, and some levels are incomplete.
fn shapes() -> Vec<TreeShape> {
    let level = |buckets, slots: u16, header_bytes, slots_offset, slot_bytes, tail| LevelShape {
        buckets,
        slots,
        header_bytes,
        slots_offset,
        slot_bytes,
        bucket_bytes: slots_offset + u64::from(slots) * slot_bytes + tail,
    };
    vec![
        TreeShape::new(vec![
            level(1, 2, 24, 40, 100, 0),
            level(2, 3, 24, 40, 700, 5),
            level(4, 1, 520, 600, 900, 0),
        ]),
        TreeShape::new(vec![
            level(0, 1, 8, 8, 8, 0),
            level(2, 2, 0, 512, 512, 0),
            level(3, 1, 512, 512, 0, 1),
        ]),
    ]
}

fn all_pieces() -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (tree, shape) in (0..).map(TreeId).zip(shapes()) {
        for bucket in (0..7).map(BucketId).filter(|bucket| shape.contains(*bucket)) {
            let slots = shape.levels()[usize::from(bucket.level())].slots;
            let parts = [Part::Whole, Part::Header].into_iter().chain((0..slots).map(Part::Slot));
            pieces.extend(parts.map(|part| Piece { tree, bucket, part }));
        }
    }
    pieces
}

/// A trip of whole buckets, followed by trips of parts.
fn trips() -> Vec<Vec<Piece>> {
    let of = |part| all_pieces().into_iter().filter(|piece| piece.part == part).collect();
    vec![of(Part::Whole), of(Part::Header), of(Part::Slot(0)), of(Part::Slot(2))]
}

fn bytes_of(piece: &Piece) -> usize {
    let level = shapes()[usize::from(piece.tree.0)].levels()[usize::from(piece.bucket.level())];
    let bytes = match piece.part {
        Part::Whole => level.bucket_bytes,
        Part::Header => level.header_bytes,
        Part::Slot(_) => level.slot_bytes,
    };
    bytes as usize
}

/// Writes bytes that depend on the seed and the piece's position in the trip.
fn fill(store: &mut impl BucketStore, pieces: &[Piece], seed: u64) -> Vec<Vec<u8>> {
    let frames: Vec<Vec<u8>> = (0..)
        .zip(pieces)
        .map(|(i, piece)| {
            let byte = |j: u64| ((seed * 7919 + i * 131 + j).wrapping_mul(0x9e37_79b9) >> 16) as u8;
            (0..bytes_of(piece) as u64).map(byte).collect()
        })
        .collect();
    let mut start = 0;
    let spans: Vec<_> = frames
        .iter()
        .map(|frame| {
            start += frame.len();
            Span { start: start - frame.len(), bytes: frame.len() }
        })
        .collect();
    let bytes = frames.concat();
    store.write(pieces, &mut |blanks| blanks.relay(Frames::new(&bytes, &spans))).unwrap();
    frames
}

/// The expected contents of the buckets.
struct Model(HashMap<(TreeId, BucketId), Vec<u8>>);

impl Model {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn bucket(&mut self, piece: &Piece) -> &mut Vec<u8> {
        let absent = vec![0; bytes_of(&Piece { part: Part::Whole, ..*piece })];
        self.0.entry((piece.tree, piece.bucket)).or_insert(absent)
    }

    fn start(piece: &Piece) -> usize {
        let level = shapes()[usize::from(piece.tree.0)].levels()[usize::from(piece.bucket.level())];
        match piece.part {
            Part::Whole | Part::Header => 0,
            Part::Slot(slot) => (level.slots_offset + u64::from(slot) * level.slot_bytes) as usize,
        }
    }

    fn write(&mut self, store: &mut FileStore, pieces: &[Piece], seed: u64) {
        for (piece, frame) in pieces.iter().zip(fill(store, pieces, seed)) {
            let start = Self::start(piece);
            self.bucket(piece)[start..start + frame.len()].copy_from_slice(&frame);
        }
    }

    fn check(&mut self, store: &mut FileStore, pieces: &[Piece]) {
        let frames = store.read(pieces).unwrap();
        for (i, piece) in pieces.iter().enumerate() {
            let start = Self::start(piece);
            let expected = &self.bucket(piece)[start..start + bytes_of(piece)];
            assert!(frames.get(i) == expected, "{piece:?}");
        }
    }
}
