//! The tests that run in a separate process, on a temporary file system.

use crate::own_file_system::{folder, on_a_file_system};
use oblivio_core::store::{BucketStore, Frames, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::{BucketId, RawConfig, StoreError, StoreErrorKind};
use oblivio_store::{FileOptions, FileStore, OpenErrorKind};

#[test]
fn a_full_disk_is_reported_and_final() {
    on_a_file_system("-t tmpfs -o size=1024k", concat!(module_path!(), "::fills_up"));
}

#[test]
fn a_file_that_cannot_be_created_leaves_nothing() {
    on_a_file_system("-t tmpfs -o size=64k", concat!(module_path!(), "::has_no_room_for_a_header"));
}

#[test]
fn missing_direct_io_is_an_error() {
    on_a_file_system("-t ramfs", concat!(module_path!(), "::does_not_go_direct"));
}

fn shape() -> TreeShape {
    RawConfig::new(4096, 4096).unwrap().tree.shape().unwrap()
}

fn is_full(error: &StoreError) -> bool {
    error.kind() == StoreErrorKind::Full
}

#[test]
#[ignore = "run by a test above, on a temporary file system"]
fn fills_up() {
    for write_behind_bytes_max in [0, 100_000] {
        let path = folder().join("volume");
        let options = FileOptions::default().with_write_behind_bytes_max(write_behind_bytes_max);
        let shapes = [shape()];
        let mut store = FileStore::create(&path, &shapes, &options).unwrap();
        let piece = |bucket| Piece { tree: TreeId(0), bucket, part: Part::Whole };
        let write = |store: &mut FileStore, bucket| {
            let bytes = vec![7; shapes[0].path_bytes() as usize];
            let level = shapes[0].levels()[usize::from(BucketId(bucket).level())];
            let span = Span { start: 0, bytes: level.bucket_bytes as usize };
            store.write(&[piece(BucketId(bucket))], &mut |blanks| {
                blanks.relay(Frames::new(&bytes, &[span]))
            })
        };
        write(&mut store, 0).unwrap();
        store.flush().unwrap();
        let full = (1..500).find_map(|bucket| write(&mut store, bucket).err()).unwrap();
        assert!(is_full(&full), "{full}");
        let again = [
            store.read(&[piece(BucketId(0))]).err(),
            write(&mut store, 0).err(),
            store.flush().err(),
            store.flush().err(),
        ];
        for error in again {
            assert!(is_full(&error.expect("calls after the failure must fail")));
        }
        drop(store);
        let mut store = FileStore::open(&path, &options).unwrap();
        let frames = store.read(&[piece(BucketId(0))]).unwrap();
        assert!(frames.get(0).iter().all(|byte| *byte == 7), "flushed bytes were lost");
        drop(store);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
#[ignore = "run by a test above, on a temporary file system"]
fn has_no_room_for_a_header() {
    let path = folder().join("volume");
    let error = FileStore::create(&path, &[shape()], &FileOptions::default()).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::NoSpace, "{error}");
    assert_eq!(std::fs::read_dir(folder()).unwrap().count(), 0);
}

#[test]
#[ignore = "run by a test above, on a temporary file system"]
fn does_not_go_direct() {
    let path = folder().join("volume");
    let direct = FileOptions::default().with_direct(true);
    let error = FileStore::create(&path, &[shape()], &direct).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::DirectRefused, "{error}");
    assert_eq!(std::fs::read_dir(folder()).unwrap().count(), 0);
    FileStore::create(&path, &[shape()], &FileOptions::default()).unwrap();
    let error = FileStore::open(&path, &direct).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::DirectRefused, "{error}");
}
