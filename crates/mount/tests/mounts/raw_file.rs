//! A disk as a file, accessed by ordinary programs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use oblivio_mount::fuse::{FuseMount, FuseOptions, MountError, mount_raw};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use tempfile::TempDir;

use oblivio_testkit::machine::can_mount;
use oblivio_testkit::memory_disk::{BLOCK_BYTES, MIB, MemoryDisk, PATIENCE, Shared};

/// A mounted disk. The fields are dropped in order: the mount first, then its directory.
struct Raw {
    mount: FuseMount,
    directory: TempDir,
    shared: &'static Shared,
}

impl Raw {
    fn new(bytes: u64, options: &FuseOptions) -> Self {
        let disk = MemoryDisk::new(bytes);
        let (directory, shared) = (tempfile::tempdir().unwrap(), disk.shared());
        let mount = mount_raw(Arc::new(disk), directory.path(), options).unwrap();
        Self { mount, directory, shared }
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.mount.disk()).unwrap()
    }
}

fn errno(result: io::Result<impl Sized>) -> Option<Errno> {
    result.err().and_then(|error| Errno::from_io_error(&error))
}

#[test]
fn the_directory_contains_only_the_disk() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(8 * MIB, &FuseOptions::default());
    let names: Vec<_> = fs::read_dir(raw.directory.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(names.iter().map(|entry| entry.file_name()).collect::<Vec<_>>(), ["disk"]);
    let metadata = raw.open().metadata().unwrap();
    assert_eq!((metadata.len(), metadata.mode() & 0o777), (8 * MIB, 0o600));
    let other = raw.directory.path().join("other");
    assert_eq!(errno(File::open(&other)), Some(Errno::NOENT));
    assert!(File::create(&other).is_err());
    assert!(fs::remove_file(raw.mount.disk()).is_err());
    assert_eq!(errno(raw.open().set_len(MIB)), Some(Errno::INVAL));
}

#[test]
fn random_reads_and_writes_agree_with_a_plain_file() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(4 * MIB, &FuseOptions::default());
    let (disk, plain) = (raw.open(), tempfile::tempfile().unwrap());
    plain.set_len(4 * MIB).unwrap();
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..300 {
        let bytes = match random.random_range(0..3) {
            0 => random.random_range(1..700_000),
            1 => random.random_range(1..9000),
            _ => BLOCK_BYTES as usize,
        };
        let offset = random.random_range(0..=4 * MIB - bytes as u64);
        let mut data = vec![0; bytes];
        if random.random() {
            random.fill_bytes(&mut data);
            disk.write_all_at(&data, offset).unwrap();
            plain.write_all_at(&data, offset).unwrap();
        } else {
            let mut expected = vec![0; bytes];
            disk.read_exact_at(&mut data, offset).unwrap();
            plain.read_exact_at(&mut expected, offset).unwrap();
            assert!(data == expected, "{bytes} bytes at {offset}");
        }
    }
    let mut expected = vec![0; 4 * MIB as usize];
    plain.read_exact_at(&mut expected, 0).unwrap();
    assert!(raw.shared.image() == expected);
}

#[test]
fn accesses_past_the_end_are_cut_or_refused() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(MIB, &FuseOptions::default());
    let disk = raw.open();
    let mut data = [1; 100];
    assert_eq!(disk.read_at(&mut data, MIB - 30).unwrap(), 30);
    assert_eq!(disk.read_at(&mut data, MIB).unwrap(), 0);
    assert_eq!(disk.write_at(&data, MIB - 30).unwrap(), 30);
    assert_eq!(errno(disk.write_at(&data, MIB)), Some(Errno::FBIG));
    assert_eq!(errno(disk.write_at(&data, 1 << 40)), Some(Errno::FBIG));
}

/// Opening the file with truncation succeeds without effect, as on a block device.
#[test]
fn opening_with_truncation_keeps_size_and_contents() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(MIB, &FuseOptions::default());
    raw.open().write_all_at(&[7; 4096], 8192).unwrap();
    let truncating = || OpenOptions::new().write(true).truncate(true).open(raw.mount.disk());
    let disk = truncating().unwrap();
    assert_eq!(disk.metadata().unwrap().len(), MIB);
    assert_eq!((&disk).seek(SeekFrom::End(0)).unwrap(), MIB);
    disk.write_all_at(&[8], MIB - 1).unwrap();
    assert_eq!(fs::metadata(raw.mount.disk()).unwrap().len(), MIB);
    let mut expected = vec![0; MIB as usize];
    expected[8192..][..4096].fill(7);
    expected[MIB as usize - 1] = 8;
    assert!(fs::read(raw.mount.disk()).unwrap() == expected);
    // A process that already has the file open sees no truncation either.
    let other = raw.open();
    truncating().unwrap();
    let mut byte = [0];
    other.read_exact_at(&mut byte, MIB - 1).unwrap();
    assert_eq!(byte, [8]);
    // Explicit truncation is refused.
    assert_eq!(errno(other.set_len(0)), Some(Errno::INVAL));
    assert!(raw.shared.image() == expected);
}

#[test]
fn ordinary_programs_copy_images_to_a_disk() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(MIB, &FuseOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let (image, disk) = (folder.path().join("image"), raw.mount.disk());
    let (from, to) = (image.to_str().unwrap(), disk.to_str().unwrap());
    let mut expected = vec![0; MIB as usize];
    // The last image is shorter than the disk. The end of the disk stays as it was.
    for (seed, bytes) in [(1, MIB), (2, MIB), (3, MIB), (4, MIB / 2)] {
        let data = &mut expected[..bytes as usize];
        StdRng::seed_from_u64(seed).fill_bytes(data);
        fs::write(&image, data).unwrap();
        match seed {
            1 => run("cp", &[from, to]),
            2 => run("dd", &[&format!("if={from}"), &format!("of={to}"), "bs=64K", "status=none"]),
            _ => run("sh", &["-c", &format!("cat {from} > {to}")]),
        }
        assert!(raw.shared.image() == expected, "{seed}");
        assert!(fs::read(&disk).unwrap() == expected, "{seed}");
    }
}

#[test]
fn syncs_of_programs_reach_the_disk() {
    if !can_mount() {
        return;
    }
    let mut raw = Raw::new(MIB, &FuseOptions::default());
    let disk = raw.open();
    let flushes = || raw.shared.flushes.load(Ordering::SeqCst);
    disk.write_all_at(&[1; 512], 0).unwrap();
    assert_eq!(flushes(), 0, "a write alone is not durable");
    disk.sync_all().unwrap();
    assert_eq!(flushes(), 1);
    disk.sync_data().unwrap();
    assert_eq!(flushes(), 2);
    drop(disk);

    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::DSYNC.bits().cast_signed());
    let synchronous = options.open(raw.mount.disk()).unwrap();
    synchronous.write_all_at(&[2; 512], 0).unwrap();
    let durable = raw.shared.durable_writes.load(Ordering::SeqCst);
    assert_eq!(durable, 1, "a synchronous write is durable when it returns");
    drop(synchronous);
    let before = flushes();
    raw.mount.unmount().unwrap();
    assert!(raw.shared.flushes.load(Ordering::SeqCst) > before, "unmounting makes all durable");
}

#[test]
fn holes_read_as_zeros_and_whole_blocks_are_trimmed() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(MIB, &FuseOptions::default());
    let disk = raw.open();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let counts = || {
        let Shared { trimmed_bytes, zeroed_bytes, .. } = raw.shared;
        (trimmed_bytes.swap(0, Ordering::SeqCst), zeroed_bytes.swap(0, Ordering::SeqCst))
    };
    let punched = |mode, start: u64, bytes: u64| {
        disk.write_all_at(&vec![7; MIB as usize], 0).unwrap();
        fallocate(&disk, mode, start, bytes).unwrap();
        let mut expected = vec![7; MIB as usize];
        let end = (start + bytes).min(MIB);
        expected[start as usize..end as usize].fill(0);
        assert!(raw.shared.image() == expected, "{mode:?}: {bytes} bytes at {start}");
        counts()
    };
    assert_eq!(punched(punch, 4096, 8192), (8192, 0));
    assert_eq!(punched(punch, 1024, 1024), (0, 1024), "inside a block");
    assert_eq!(punched(punch, 4000, 200), (0, 200), "parts of two blocks");
    assert_eq!(punched(punch, 4000, 4296), (4096, 200), "a block and parts of its neighbours");
    assert_eq!(punched(punch, MIB - 4096, 1 << 30), (4096, 0), "past the end");
    assert_eq!(punched(FallocateFlags::ZERO_RANGE, 5000, 100_000), (0, 100_000));
    let grow = fallocate(&disk, FallocateFlags::ZERO_RANGE, MIB - 1, 2);
    assert_eq!(grow, Err(Errno::OPNOTSUPP));
}

#[test]
fn failures_of_the_disk_are_errors_of_the_file() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(MIB, &FuseOptions::default());
    let disk = raw.open();
    raw.shared.is_full.store(true, Ordering::SeqCst);
    assert_eq!(errno(disk.write_at(&[1; 4096], 0)), Some(Errno::NOSPC));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&disk, hole, 100, 10_000), Err(Errno::NOSPC));
    raw.shared.is_broken.store(true, Ordering::SeqCst);
    assert_eq!(errno(disk.read_at(&mut [0; 4096], 0)), Some(Errno::IO));
}

#[test]
fn many_requests_are_in_flight() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(MIB, &FuseOptions::default());
    let (disk, shared) = (raw.open(), raw.shared);
    shared.gather.store(8, Ordering::SeqCst);
    thread::scope(|scope| {
        for place in 0..8 {
            let disk = &disk;
            scope.spawn(move || {
                if place % 2 == 0 {
                    disk.write_all_at(&[1; 4096], place * 4096).unwrap();
                } else {
                    disk.read_exact_at(&mut [0; 4096], place * 4096).unwrap();
                }
            });
        }
    });
    assert_eq!(shared.in_flight_max.load(Ordering::SeqCst), 8);
}

#[test]
fn a_read_only_file_is_not_written() {
    if !can_mount() {
        return;
    }
    let raw = Raw::new(MIB, &FuseOptions { read_only: true });
    let denied = OpenOptions::new().write(true).open(raw.mount.disk());
    assert_eq!(errno(denied), Some(Errno::ROFS));
    let mut data = [1; 4096];
    File::open(raw.mount.disk()).unwrap().read_exact_at(&mut data, 0).unwrap();
    assert_eq!(data, [0; 4096]);
}

#[test]
fn a_mount_in_use_stays_mounted() {
    if !can_mount() {
        return;
    }
    let mut raw = Raw::new(MIB, &FuseOptions::default());
    let disk = raw.open();
    let error = raw.mount.unmount().unwrap_err();
    assert!(matches!(error, MountError::Busy(_)), "{error}");
    disk.write_all_at(&[1], 0).unwrap();
    drop(disk);
    raw.mount.unmount().unwrap();
    raw.mount.unmount().unwrap();
    assert!(!raw.mount.disk().exists());
}

#[test]
fn unmounting_retries_while_the_mount_is_briefly_in_use() {
    if !can_mount() {
        return;
    }
    let mut raw = Raw::new(MIB, &FuseOptions::default());
    let disk = raw.open();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(disk);
        });
        raw.mount.unmount().unwrap();
    });
}

#[test]
fn a_dropped_mount_disappears_and_serves_its_last_user() {
    if !can_mount() {
        return;
    }
    let Raw { mount, directory, shared } = Raw::new(MIB, &FuseOptions::default());
    let disk = OpenOptions::new().write(true).open(mount.disk()).unwrap();
    let place = directory.path().to_path_buf();
    run("mount", &["-t", "tmpfs", "tmpfs", place.to_str().unwrap()]);
    drop(mount);
    // A foreign mount on top is not unmounted.
    run("umount", &[place.to_str().unwrap()]);
    disk.write_all_at(&[5], 0).unwrap();
    assert_eq!(shared.image()[0], 5);
    run("umount", &["--lazy", place.to_str().unwrap()]);

    let Raw { mount, directory, shared } = Raw::new(MIB, &FuseOptions::default());
    let disk = OpenOptions::new().write(true).open(mount.disk()).unwrap();
    drop(mount);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "the mount is still visible");
    disk.write_all_at(&[5], 0).unwrap();
    assert_eq!(shared.image()[0], 5);
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

#[test]
fn an_unmount_by_another_program_is_noticed() {
    if !can_mount() {
        return;
    }
    let mut raw = Raw::new(MIB, &FuseOptions::default());
    raw.open().write_all_at(&[1], 0).unwrap();
    assert!(!raw.mount.wait_until_unmounted(Duration::from_millis(50)));
    run("umount", &[raw.directory.path().to_str().unwrap()]);
    assert!(raw.mount.wait_until_unmounted(PATIENCE));
    raw.mount.unmount().unwrap();
    assert_eq!(raw.shared.flushes.load(Ordering::SeqCst), 1);
}

#[test]
fn mounting_on_a_file_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let disk = Arc::new(MemoryDisk::new(MIB));
    let error = mount_raw(disk, file.path(), &FuseOptions::default()).err().unwrap();
    assert!(matches!(error, MountError::NotADirectory(_)), "{error}");
}
