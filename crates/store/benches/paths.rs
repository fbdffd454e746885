//! Measures how fast a file store reads and writes paths. For comparison, measures plain `pread`
//! and `pwrite` of the same bytes.
//!
//! `docs/adr/0006-file-store-io.md` has the measurements. The file has 1.3 GiB, in
//! `OBLIVIO_BENCH_FOLDER` or the folder for temporary files.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use divan::Bencher;
use oblivio_core::store::{BucketStore, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::{BucketId, Leaf};
use oblivio_store::{FileOptions, FileStore};
use tempfile::{Builder, TempDir};

const TOP_LEVEL: u8 = 6;
const LEAF_LEVEL: u8 = 15;
const PIECES: usize = (LEAF_LEVEL - TOP_LEVEL + 1) as usize;
const BUCKET_BYTES: u64 = 21_094;
/// Bytes from the start of a bucket to the start of the next.
const STRIDE_BYTES: u64 = 21_504;
const MIB: usize = 1 << 20;

fn main() {
    divan::main();
}

/// The shape of the tree. As in a volume, the levels near the root are not in storage.
fn shape() -> TreeShape {
    let level = |level: u8| LevelShape {
        buckets: if level < TOP_LEVEL { 0 } else { 1u64 << level },
        slots: 5,
        header_bytes: 24,
        slots_offset: 104,
        slot_bytes: 4198,
        bucket_bytes: BUCKET_BYTES,
    };
    TreeShape::new((0..=LEAF_LEVEL).map(level).collect())
}

fn folder() -> TempDir {
    let parent = std::env::var_os("OBLIVIO_BENCH_FOLDER").map_or(std::env::temp_dir(), Into::into);
    Builder::new().prefix("oblivio-paths").tempdir_in(parent).unwrap()
}

/// Creates a file without holes that is completely in the page cache. Returns its length in bytes.
fn full(path: &Path) -> u64 {
    let bytes = FileStore::create(path, &[shape()], &FileOptions::default()).unwrap().bytes();
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let (chunk, header_bytes) = (vec![7; 4 * MIB], 2 * 65_536);
    let end = bytes - 65_536;
    for offset in (header_bytes..end).step_by(chunk.len()) {
        let length = chunk.len().min((end - offset) as usize);
        file.write_all_at(&chunk[..length], offset).unwrap();
    }
    file.sync_all().unwrap();
    bytes
}

fn open(path: &Path, direct: bool, write_behind_bytes_max: usize) -> FileStore {
    let options = FileOptions::default()
        .with_direct(direct)
        .with_write_behind_bytes_max(write_behind_bytes_max);
    FileStore::open(path, &options).unwrap()
}

fn path_to(leaf: u64) -> [Piece; PIECES] {
    std::array::from_fn(|i| {
        let bucket = BucketId::on_path(Leaf(leaf), TOP_LEVEL + i as u8);
        Piece { tree: TreeId(0), bucket, part: Part::Whole }
    })
}

/// The file offsets of the pieces on the path to `leaf`, if the file stores one level after the
/// other.
fn offsets(leaf: u64) -> [u64; PIECES] {
    std::array::from_fn(|i| {
        let level = u32::from(TOP_LEVEL) + i as u32;
        let above = (1 << level) - (1 << TOP_LEVEL);
        2 * 65_536 + (above + leaf % (1 << level)) * STRIDE_BYTES
    })
}

fn random_leaves() -> impl FnMut() -> u64 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % (1 << LEAF_LEVEL)
    }
}

fn neighbouring_leaves() -> impl FnMut() -> u64 {
    let mut leaf = 0;
    move || {
        leaf = (leaf + 1) % (1 << LEAF_LEVEL);
        leaf
    }
}

/// Evicts all pages of the file from the page cache.
fn forget(file: &File) {
    file.sync_all().unwrap();
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

mod read {
    use super::*;

    #[divan::bench(sample_count = 100, sample_size = 20)]
    fn warm_floor(bencher: Bencher) {
        let folder = folder();
        let path = folder.path().join("volume");
        full(&path);
        floor(bencher, &File::open(&path).unwrap());
    }

    #[divan::bench(sample_count = 100, sample_size = 20)]
    fn warm_store(bencher: Bencher) {
        let folder = folder();
        let path = folder.path().join("volume");
        full(&path);
        store(bencher, open(&path, false, 4 * MIB));
    }

    #[divan::bench(sample_count = 100, sample_size = 10)]
    fn cold_floor(bencher: Bencher) {
        let folder = folder();
        let path = folder.path().join("volume");
        full(&path);
        let file = File::open(&path).unwrap();
        forget(&file);
        floor(bencher, &file);
    }

    #[divan::bench(sample_count = 100, sample_size = 10)]
    fn cold_store(bencher: Bencher) {
        let folder = folder();
        let path = folder.path().join("volume");
        full(&path);
        forget(&File::open(&path).unwrap());
        store(bencher, open(&path, false, 4 * MIB));
    }

    #[divan::bench(sample_count = 100, sample_size = 10)]
    fn direct_store(bencher: Bencher) {
        let folder = folder();
        let path = folder.path().join("volume");
        full(&path);
        store(bencher, open(&path, true, 4 * MIB));
    }

    fn floor(bencher: Bencher, file: &File) {
        let mut buffer = vec![0; PIECES * BUCKET_BYTES as usize];
        bencher.with_inputs(random_leaves()).bench_local_values(|leaf| {
            let frames = buffer.chunks_exact_mut(BUCKET_BYTES as usize);
            for (offset, frame) in offsets(leaf).into_iter().zip(frames) {
                file.read_exact_at(frame, offset).unwrap();
            }
        });
    }

    fn store(bencher: Bencher, mut store: FileStore) {
        bencher
            .with_inputs(random_leaves())
            .bench_local_values(|leaf| store.read(&path_to(leaf)).unwrap().get(0)[0]);
    }
}

mod write {
    use super::*;

    #[divan::bench(sample_count = 20, sample_size = 200)]
    fn floor(bencher: Bencher) {
        let folder = folder();
        let path = folder.path().join("volume");
        full(&path);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let source = vec![9; BUCKET_BYTES as usize];
        let mut buffer = vec![0; PIECES * BUCKET_BYTES as usize];
        bencher.with_inputs(neighbouring_leaves()).bench_local_values(|leaf| {
            let frames = buffer.chunks_exact_mut(BUCKET_BYTES as usize);
            for (offset, frame) in offsets(leaf).into_iter().zip(frames) {
                frame.copy_from_slice(&source);
                file.write_all_at(frame, offset).unwrap();
            }
        });
    }

    #[divan::bench(sample_count = 20, sample_size = 200, args = [0, 1, 4, 16])]
    fn store_keeping_back_mib(bencher: Bencher, mib: usize) {
        store(bencher, false, mib);
    }

    #[divan::bench(sample_count = 20, sample_size = 200, args = [0, 1, 4, 16])]
    fn direct_store_keeping_back_mib(bencher: Bencher, mib: usize) {
        store(bencher, true, mib);
    }

    fn store(bencher: Bencher, direct: bool, mib: usize) {
        let folder = folder();
        let path = folder.path().join("volume");
        full(&path);
        let mut store = open(&path, direct, mib * MIB);
        let source = vec![9; BUCKET_BYTES as usize];
        let spans = [Span { start: 0, bytes: BUCKET_BYTES as usize }; PIECES];
        bencher.with_inputs(neighbouring_leaves()).bench_local_values(|leaf| {
            store
                .write(&path_to(leaf), &mut |blanks| blanks.relay(Frames::new(&source, &spans)))
                .unwrap();
        });
    }
}
