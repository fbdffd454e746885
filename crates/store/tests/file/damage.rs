//! Damaged files are refused with the right kind of error, and never cause a panic.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use oblivio_core::store::{BucketStore, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::{BucketId, RawConfig};
use oblivio_store::container::{self, HEADER_BYTES, LEVELS_MAX, TREES_MAX};
use oblivio_store::{FileOptions, FileStore, OpenErrorKind};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

fn shape() -> TreeShape {
    RawConfig::new(1000, 64).unwrap().tree.shape().unwrap()
}

struct Made {
    _folder: TempDir,
    path: PathBuf,
    bytes: u64,
}

fn made() -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let shapes = [shape(), shape()];
    let store = FileStore::create(&path, &shapes, &FileOptions::default()).unwrap();
    Made { bytes: store.bytes(), _folder: folder, path }
}

fn open(path: &Path) -> Result<FileStore, OpenErrorKind> {
    FileStore::open(path, &FileOptions::default()).map_err(|error| error.kind())
}

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], offset).unwrap();
}

fn header_offsets(bytes: u64) -> [u64; 3] {
    [0, HEADER_BYTES as u64, bytes - HEADER_BYTES as u64]
}

#[test]
fn two_damaged_copies_are_repaired() {
    let Made { path, bytes, _folder } = made();
    let sound = fs::read(&path).unwrap();
    let copies = header_offsets(bytes);
    for spared in 0..3 {
        // The magic, the version, a number, a padding byte, the checksum.
        for byte in [0, 16, 50, 40_000, HEADER_BYTES as u64 - 1] {
            let hit: Vec<_> = (0..3).filter(|copy| *copy != spared).collect();
            hit.iter().for_each(|copy| flip(&path, copies[*copy] + byte));
            let reader = FileOptions::default().with_read_only(true);
            let store = FileStore::open(&path, &reader).unwrap();
            assert_eq!((store.damaged_header_copies(), store.shapes().len()), (2, 2));
            drop(store);
            assert!(fs::read(&path).unwrap() != sound, "a reader changed the file");
            assert_eq!(open(&path).unwrap().damaged_header_copies(), 2);
            assert!(fs::read(&path).unwrap() == sound, "the header was not repaired");
            assert_eq!(open(&path).unwrap().damaged_header_copies(), 0);
        }
    }
}

#[test]
fn each_kind_of_damage_has_its_error_kind() {
    let Made { path, bytes, _folder } = made();
    let copies = header_offsets(bytes);
    for (byte, kind) in [
        (50, OpenErrorKind::Damaged),
        (16, OpenErrorKind::UnknownVersion),
        (3, OpenErrorKind::NotAStore),
    ] {
        copies.iter().for_each(|copy| flip(&path, copy + byte));
        assert_eq!(open(&path).err(), Some(kind));
        copies.iter().for_each(|copy| flip(&path, copy + byte));
    }
    copies.iter().for_each(|copy| flip(&path, copy + 50 + copy % 7));
    assert_eq!(open(&path).err(), Some(OpenErrorKind::Damaged), "different offsets");
    copies.iter().for_each(|copy| flip(&path, copy + 50 + copy % 7));
    assert!(open(&path).is_ok());

    let file = OpenOptions::new().write(true).open(&path).unwrap();
    for left in [bytes - 1, bytes / 2, HEADER_BYTES as u64, 5000, 100, 16] {
        file.set_len(left).unwrap();
        assert_eq!(open(&path).err(), Some(OpenErrorKind::Truncated), "{left} bytes");
    }
    file.set_len(0).unwrap();
    assert_eq!(open(&path).err(), Some(OpenErrorKind::NotAStore));
    fs::remove_file(&path).unwrap();
    assert_eq!(open(&path).err(), Some(OpenErrorKind::Missing));
}

/// The rest of a cut-off file can be read, but not written, and only if the options allow it.
#[test]
fn the_rest_of_a_file_that_was_cut_off_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("volume");
    let shapes = [shape(), shape()];
    let mut store = FileStore::create(path, &shapes, &FileOptions::default()).unwrap();
    let (whole, levels) = (store.bytes(), shape().levels().len() as u8);
    let pieces = [0, 1].map(|tree| Piece {
        tree: TreeId(tree),
        bucket: BucketId::new(levels - 1, 0),
        part: Part::Whole,
    });
    let bucket = vec![7; shape().levels()[usize::from(levels - 1)].bucket_bytes as usize];
    let spans = [Span { start: 0, bytes: bucket.len() }; 2];
    store.write(&pieces, &mut |blanks| blanks.relay(Frames::new(&bucket, &spans))).unwrap();
    store.flush().unwrap();
    drop(store);

    let reader = FileOptions::default()
        .with_read_only(true)
        .with_allow_incomplete(true)
        .with_looks_ahead(true);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let is_there = |store: &mut FileStore| {
        pieces.map(|piece| match store.read(&[piece]) {
            Ok(frames) => {
                assert!(frames.get(0).iter().all(|byte| *byte == 7));
                true
            }
            Err(error) => {
                assert!(error.to_string().contains("was cut off"), "{error}");
                false
            }
        })
    };
    let second_tree = 2 * HEADER_BYTES as u64 + (whole - 3 * HEADER_BYTES as u64) / 2;
    for (cut, expected) in [
        (0, [true, true]),
        (1, [true, true]),
        (HEADER_BYTES as u64, [true, true]),
        (whole - second_tree, [true, false]),
        (whole - 2 * HEADER_BYTES as u64, [false, false]),
    ] {
        file.set_len(whole - cut).unwrap();
        let mut store = FileStore::open(path, &reader).unwrap();
        assert_eq!((store.missing_bytes(), store.bytes()), (cut, whole));
        assert_eq!(store.damaged_header_copies(), usize::from(cut > 0));
        assert_eq!(is_there(&mut store), expected, "{cut} bytes are missing");
        // The result is the same with reading ahead. The pause gives the thread time to read.
        pieces.iter().for_each(|piece| store.prefetch(&[*piece]));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(is_there(&mut store), expected, "{cut} bytes are missing, and were announced");
        drop(store);
        let to_write = FileOptions::default().with_allow_incomplete(true);
        let to_read = FileOptions::default().with_read_only(true);
        for options in [to_write, to_read] {
            let refused = FileStore::open(path, &options).err().map(|error| error.kind());
            assert_eq!(refused, (cut > 0).then_some(OpenErrorKind::Truncated));
        }
    }
}

#[test]
fn an_existing_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    fs::write(&path, "mine").unwrap();
    let error = FileStore::create(&path, &[shape()], &FileOptions::default()).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::Exists);
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_second_opener_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("volume");
    let reader = FileOptions::default().with_read_only(true);
    let kind = |options| FileStore::open(path, options).err().map(|error| error.kind());
    let shapes = [shape()];
    let writer = FileStore::create(path, &shapes, &FileOptions::default()).unwrap();
    assert_eq!(open(path).err(), Some(OpenErrorKind::Locked));
    assert_eq!(kind(&reader), Some(OpenErrorKind::Locked));
    drop(writer);
    let first = FileStore::open(path, &reader).unwrap();
    let second = FileStore::open(path, &reader).unwrap();
    assert_eq!(open(path).err(), Some(OpenErrorKind::Locked));
    drop((first, second));
    assert!(open(path).is_ok());
}

#[test]
fn a_file_of_terabytes_is_created_quickly_and_sparse() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let shapes = [RawConfig::new(1 << 28, 4096).unwrap().tree.shape().unwrap()];
    let store = FileStore::create(&path, &shapes, &FileOptions::default()).unwrap();
    assert!(store.bytes() > 1 << 40, "{}", store.bytes());
    assert_eq!(store.bytes(), FileStore::bytes_needed(&shapes).unwrap());
    assert_eq!(store.bytes(), File::open(&path).unwrap().metadata().unwrap().len());
    assert!(store.allocated_bytes().unwrap() < 1 << 20);
}

#[test]
fn shapes_that_no_file_can_hold_are_refused() {
    let level = LevelShape {
        buckets: 1,
        slots: 2,
        header_bytes: 8,
        slots_offset: 16,
        slot_bytes: 100,
        bucket_bytes: 216,
    };
    let tree = |level| TreeShape::new(vec![level]);
    let absent = LevelShape { buckets: 0, bucket_bytes: 0, slots: 0, header_bytes: 0, ..level };
    let absent = LevelShape { slots_offset: 0, ..absent };
    let without_root = TreeShape::new(vec![absent, level]);
    assert!(container::encode(&[tree(level), without_root]).is_ok());
    for wrong in [
        LevelShape { buckets: 2, ..level },
        LevelShape { buckets: u64::MAX, ..level },
        LevelShape { slots: 3, ..level },
        LevelShape { header_bytes: 17, ..level },
        LevelShape { slots_offset: 17, ..level },
        LevelShape { slots_offset: u64::MAX, ..level },
        LevelShape { slot_bytes: u64::MAX, ..level },
        LevelShape { bucket_bytes: u64::MAX, ..level },
        LevelShape { bucket_bytes: (1 << 30) + 1, ..level },
        LevelShape { buckets: 1, ..absent },
    ] {
        refused(&[tree(wrong)]);
    }
    refused(&[]);
    refused(&vec![tree(level); TREES_MAX + 1]);
    refused(&[TreeShape::new(vec![level; LEVELS_MAX + 1])]);
    refused(&[TreeShape::new(vec![level; 300])]);
    let wide = LevelShape { bucket_bytes: 1 << 30, ..level };
    let levels: Vec<_> = (0..41).map(|j| LevelShape { buckets: 1 << j, ..wide }).collect();
    refused(&[TreeShape::new(levels.clone())]);
    refused(&vec![TreeShape::new(levels[..33].to_vec()); 2]);
}

fn refused(shapes: &[TreeShape]) {
    let error = container::encode(shapes).unwrap_err();
    assert_eq!(error.kind(), OpenErrorKind::InvalidShapes, "{shapes:?}");
}

/// The longest possible header, with the maximum number of levels, fits into a copy of the header.
#[test]
fn headers_have_room_for_all_levels() {
    let level = LevelShape {
        buckets: 1,
        slots: 1,
        header_bytes: 1,
        slots_offset: 1,
        slot_bytes: 1,
        bucket_bytes: 2,
    };
    let trees = vec![TreeShape::new(vec![level; LEVELS_MAX / TREES_MAX]); TREES_MAX];
    let header = container::encode(&trees).unwrap();
    assert_eq!(header.len(), HEADER_BYTES);
    assert_eq!(container::decode(&header).unwrap(), trees);
}

/// Replaces the checksum of a header copy with the right one, so that only the other checks can
/// refuse the copy.
fn with_checksum(mut copy: Vec<u8>) -> Vec<u8> {
    let (covered, sum) = copy.split_at_mut(HEADER_BYTES - 32);
    sum.copy_from_slice(&Sha256::digest(covered));
    copy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_flipped_bit_is_noticed(bit in 0..HEADER_BYTES * 8) {
        let mut copy = container::encode(&[shape()]).unwrap();
        copy[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            0..16 => OpenErrorKind::NotAStore,
            16..20 => OpenErrorKind::UnknownVersion,
            _ => OpenErrorKind::Damaged,
        };
        prop_assert_eq!(container::decode(&copy).unwrap_err().kind(), expected);
        // Even with a matching checksum: each list of shapes has one header, and sizes can change
        // only to valid ones.
        match container::decode(&with_checksum(copy.clone())) {
            Ok(shapes) => prop_assert_eq!(container::encode(&shapes).unwrap(), with_checksum(copy)),
            Err(error) if bit / 8 < HEADER_BYTES - 32 => prop_assert_eq!(error.kind(), expected),
            Err(error) => prop_assert!(false, "only the checksum differed: {error}"),
        }
    }

    #[test]
    fn a_cut_header_is_noticed(bytes in 0..HEADER_BYTES) {
        let copy = &container::encode(&[shape()]).unwrap()[..bytes];
        let expected =
            if bytes < 16 { OpenErrorKind::NotAStore } else { OpenErrorKind::Damaged };
        prop_assert_eq!(container::decode(copy).unwrap_err().kind(), expected);
    }

    /// Arbitrary numbers between a valid beginning and a valid checksum are refused, unless they
    /// form a valid header.
    #[test]
    fn garbage_numbers_are_refused(
        numbers in prop::collection::vec(prop_oneof![0..4u64, any::<u64>()], 1..60),
        from in 0..4usize,
    ) {
        let mut copy = container::encode(&[shape()]).unwrap();
        for (field, number) in copy[32 + from * 8..].chunks_exact_mut(8).zip(numbers) {
            field.copy_from_slice(&number.to_le_bytes());
        }
        let copy = with_checksum(copy);
        match container::decode(&copy) {
            Ok(shapes) => prop_assert_eq!(container::encode(&shapes).unwrap(), copy),
            Err(error) => prop_assert_eq!(error.kind(), OpenErrorKind::Damaged),
        }
    }

    #[test]
    fn any_file_is_opened_or_refused(
        garbage in prop::collection::vec(any::<u8>(), 0..3000),
        ours: bool,
        length in 0u64..300_000,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let mut bytes = garbage;
        if ours {
            bytes.splice(..0, container::encode(&[shape()]).unwrap()[..20].to_vec());
        }
        fs::write(&path, &bytes).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        let kind = open(&path).err().unwrap();
        prop_assert!(
            matches!(
                kind,
                OpenErrorKind::NotAStore | OpenErrorKind::Damaged | OpenErrorKind::Truncated
                    | OpenErrorKind::UnknownVersion
            ),
            "{:?}", kind
        );
    }
}
