//! Volumes as programs use them: their contents and their errors.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use oblivio::creation::{self, Creation};
use oblivio::oblivio_core::durable::Contents;
use oblivio::oblivio_volume::keys::Cost;
use oblivio::oblivio_volume::keys::UnlockLimits;
use oblivio::oblivio_volume::superblock::VolumeParams;
use oblivio::oblivio_volume::unlock::NewerCopies;
use oblivio::oblivio_volume::{Coins, Schedule};
use oblivio::opening::{UnlockRequest, read_public};
use oblivio::{
    DiskOptions, Error, ErrorKind, Location, Secret, StoreOptions, Volume, VolumeLocation,
    VolumeOptions, requirements,
};
use tempfile::TempDir;

const BYTES: u64 = 4 << 20;

/// A folder for a volume and the client's directory.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn place(&self) -> VolumeLocation {
        VolumeLocation::new(self.path("disk")).unwrap().with_state(self.path("state"))
    }

    fn create(&self) -> Volume {
        self.place().create(&secret(1), BYTES).unwrap()
    }

    fn open(&self) -> Result<Volume, Error> {
        self.place().open(&secret(1))
    }

    /// The names of the files in the folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn secret(byte: u8) -> Secret {
    Secret::key_file(&[byte; 32])
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().map(|error| error.kind()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn it_holds_what_was_written_anywhere_and_in_any_length() {
    let world = World::new();
    let volume = world.create();
    assert_eq!((volume.bytes(), volume.block_bytes()), (BYTES, 4096));
    assert_eq!(volume.client_directory(), world.path("state"));
    let text: Vec<u8> = (0..100_001u32).map(|i| (i * 7 % 251) as u8).collect();
    volume.write_at(&text, 4097).unwrap();
    volume.write_at(b"end", BYTES - 3).unwrap();
    volume.write_at(b"", BYTES).unwrap();
    volume.trim(8192, 4096).unwrap();
    volume.close().unwrap();

    let volume = world.open().unwrap();
    assert!(!volume.recovery().was_needed);
    let mut read = vec![1; text.len() + 2];
    volume.read_at(&mut read, 4096).unwrap();
    let mut expected = [&[0], &text[..], &[0]].concat();
    expected[4096..8192].fill(0);
    assert!(read == expected);
    let mut end = [0; 3];
    volume.read_at(&mut end, BYTES - 3).unwrap();
    assert_eq!(&end, b"end");
}

#[test]
fn requests_longer_than_the_disk_allows_are_split() {
    let world = World::new();
    let volume = world.place().create(&secret(1), 40 << 20).unwrap();
    let text: Vec<u8> = (0..33u32 << 20).map(|i| (i / 4096 % 251) as u8).collect();
    volume.write_at(&text, 1).unwrap();
    let mut read = vec![0; text.len()];
    volume.read_at(&mut read, 1).unwrap();
    assert!(read == text);
}

#[test]
fn a_request_past_the_end_is_refused_whole_and_the_volume_stays_usable() {
    let world = World::new();
    let volume = world.create();
    let long = vec![7; 8192];
    for (bytes, offset) in [(8192, BYTES - 4096), (1, BYTES), (1, u64::MAX)] {
        assert_eq!(kind(volume.write_at(&long[..bytes], offset)), ErrorKind::Input);
        assert_eq!(kind(volume.read_at(&mut vec![0; bytes], offset)), ErrorKind::Input);
    }
    assert_eq!(kind(volume.trim(BYTES, 1)), ErrorKind::Input);
    let mut last = [1; 4096];
    volume.read_at(&mut last, BYTES - 4096).unwrap();
    assert_eq!(last, [0; 4096]);
}

/// Flushed data survives although the volume was not closed: the files are as a killed process
/// leaves them.
#[test]
fn what_was_flushed_survives_a_crash() {
    let world = World::new();
    let volume = world.create();
    volume.write_at(b"kept", 5).unwrap();
    volume.flush().unwrap();
    fs::copy(world.path("disk"), world.path("disk.crashed")).unwrap();
    copy(&world.path("state"), &world.path("state.crashed"));
    drop(volume);
    fs::rename(world.path("disk.crashed"), world.path("disk")).unwrap();
    fs::remove_dir_all(world.path("state")).unwrap();
    let permissions = fs::Permissions::from_mode(0o700);
    fs::set_permissions(world.path("state.crashed"), permissions).unwrap();
    fs::rename(world.path("state.crashed"), world.path("state")).unwrap();

    let volume = world.open().unwrap();
    assert!(volume.recovery().was_needed);
    let mut read = [0; 4];
    volume.read_at(&mut read, 5).unwrap();
    assert_eq!(&read, b"kept");
}

#[test]
fn a_creation_that_fails_leaves_nothing_and_touches_nothing() {
    let world = World::new();
    let place = world.place();
    for bytes in [0, u64::MAX] {
        assert_eq!(kind(place.create(&secret(1), bytes)), ErrorKind::Input, "{bytes}");
    }
    assert_eq!(kind(place.create(&Secret::key_file(&[1; 31]), BYTES)), ErrorKind::Input);
    assert_eq!(kind(place.create(&Secret::passphrase(""), BYTES)), ErrorKind::Input);
    assert_eq!(world.names(), [""; 0]);
    // A private directory cannot be created below a file.
    fs::write(world.path("file"), b"").unwrap();
    let below = place.clone().with_state(world.path("file/state"));
    assert_eq!(kind(below.create(&secret(1), BYTES)), ErrorKind::Failed);
    assert_eq!(world.names(), ["file"]);
    // Storage cannot be created: the directory is removed again.
    let nowhere =
        VolumeLocation::new(world.path("no/disk")).unwrap().with_state(world.path("state"));
    assert_eq!(kind(nowhere.create(&secret(1), BYTES)), ErrorKind::Input);
    assert_eq!(world.names(), ["file"]);
    fs::write(world.path("disk"), b"precious").unwrap();
    assert_eq!(kind(place.create(&secret(1), BYTES)), ErrorKind::Input);
    assert_eq!(fs::read(world.path("disk")).unwrap(), b"precious");
}

#[test]
fn each_error_of_an_opening_has_its_kind() {
    let world = World::new();
    let refused = || kind(world.open());
    assert_eq!(refused(), ErrorKind::Input);
    let volume = world.create();
    assert_eq!(refused(), ErrorKind::Locked);
    volume.close().unwrap();

    let wrong = world.place().open(&secret(2)).err().unwrap();
    assert_eq!((wrong.kind(), wrong.kind().exit_code()), (ErrorKind::WrongKey, 6));
    assert!(wrong.to_string().starts_with("the key file is wrong"), "{wrong}");
    let wrong = world.place().open(&Secret::passphrase("a guess")).err().unwrap();
    assert_eq!(wrong.kind(), ErrorKind::WrongKey);
    assert!(wrong.to_string().starts_with("the passphrase is wrong"), "{wrong}");

    let elsewhere = world.place().with_state(world.path("elsewhere"));
    assert_eq!(kind(elsewhere.open(&secret(1))), ErrorKind::State);

    // Old storage with the new directory, then new storage with the old directory.
    fs::copy(world.path("disk"), world.path("disk.old")).unwrap();
    copy(&world.path("state"), &world.path("state.old"));
    let volume = world.open().unwrap();
    volume.write_at(&[1; 100_000], 0).unwrap();
    volume.close().unwrap();
    fs::rename(world.path("disk"), world.path("disk.new")).unwrap();
    fs::rename(world.path("disk.old"), world.path("disk")).unwrap();
    assert_eq!(refused(), ErrorKind::StoreRolledBack);
    fs::rename(world.path("disk.new"), world.path("disk")).unwrap();
    let permissions = fs::Permissions::from_mode(0o700);
    fs::set_permissions(world.path("state.old"), permissions).unwrap();
    let old = world.place().with_state(world.path("state.old"));
    assert_eq!(kind(old.open(&secret(1))), ErrorKind::StateRolledBack);
    world.open().unwrap().close().unwrap();
}

/// The request that finds changed storage reports the kind of the error, and so does every later
/// request.
#[test]
fn changed_storage_is_reported_by_the_request_that_finds_it() {
    let world = World::new();
    let volume = world.place().with_cache(0).create(&secret(1), BYTES).unwrap();
    for block in 0..BYTES / 4096 {
        volume.write_at(&[1; 4096], 4096 * block).unwrap();
    }
    volume.close().unwrap();
    let volume = world.place().with_cache(0).open(&secret(1)).unwrap();
    let file = OpenOptions::new().write(true).open(world.path("disk")).unwrap();
    let bytes = file.metadata().unwrap().len();
    // Beyond the headers and the superblock.
    for at in (bytes / 8..bytes).step_by(512) {
        file.write_all_at(&[0xa5; 16], at).unwrap();
    }
    let mut block = [0; 4096];
    let found = (0..BYTES / 4096).find_map(|at| volume.read_at(&mut block, 4096 * at).err());
    let found = found.expect("no read detected the change");
    assert_eq!(found.kind(), ErrorKind::Tampered, "{found}");
    assert_eq!(kind(volume.write_at(b"more", 0)), ErrorKind::Tampered);
    assert_eq!(kind(volume.flush()), ErrorKind::Tampered);
    assert_eq!(kind(volume.close()), ErrorKind::Tampered);
}

#[test]
fn concurrent_requests_of_many_threads_are_answered() {
    let world = World::new();
    let volume = world.create();
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let volume = &volume;
            scope.spawn(move || {
                let at = u64::from(thread) * 100_000 + 3;
                volume.write_at(&[thread; 50_000], at).unwrap();
                let mut read = vec![0xff; 50_000];
                volume.read_at(&mut read, at).unwrap();
                assert!(read.iter().all(|byte| *byte == thread));
            });
        }
    });
}

#[test]
fn two_volumes_of_one_secret_have_nothing_in_common() {
    let (one, other) = (World::new(), World::new());
    let id = |world: &World| {
        world.create().close().unwrap();
        let location = Location::parse(world.path("disk").as_os_str()).unwrap();
        read_public(&location).unwrap().0.unauthenticated_volume_id()
    };
    assert_ne!(id(&one), id(&other));
    // The directory of one volume does not fit the other.
    let swapped = one.place().with_state(other.path("state"));
    assert_eq!(kind(swapped.open(&secret(1))), ErrorKind::State);
}

/// If two creations use one directory at once, at least one succeeds, and at least one volume opens
/// afterwards.
#[test]
fn two_creations_with_one_directory_at_once_do_not_destroy_each_other() {
    for _ in 0..20 {
        let world = World::new();
        let place =
            |name| VolumeLocation::new(world.path(name)).unwrap().with_state(world.path("state"));
        let names = ["one", "other"];
        let made = std::thread::scope(|scope| {
            let create = |name| {
                let place = place(name);
                scope.spawn(move || place.create(&secret(1), BYTES).and_then(Volume::close).is_ok())
            };
            names.map(create).map(|thread| thread.join().unwrap())
        });
        assert!(made.contains(&true), "{made:?}");
        // The directory belongs to one volume only.
        let opened = names.map(|name| place(name).open(&secret(1)).is_ok());
        assert!(opened.contains(&true), "made {made:?}, opened {opened:?}: {:?}", world.names());
    }
}

/// Contents that run a function and then fail.
struct Fails<F>(F);

impl<F: FnMut()> Contents for Fails<F> {
    fn block(&mut self, _: u64, _: &mut [u8]) -> Result<bool, oblivio::oblivio_core::Error> {
        (self.0)();
        let kind = oblivio::oblivio_core::ErrorKind::InvalidRequest;
        Err(oblivio::oblivio_core::Error::new(kind, "there is no more"))
    }
}

/// Begins a creation in `world` that calls `meanwhile` and then fails. Returns its error.
fn fails(world: &World, meanwhile: impl FnMut()) -> Error {
    let location = Location::parse(world.path("disk").as_os_str()).unwrap();
    let params = VolumeParams::plan(&requirements(BYTES, location.kind())).unwrap();
    let mut coins = Coins::from_system().unwrap();
    let owner = creation::owner(params, &secret(1), Cost::FLOOR, "", &mut coins).unwrap();
    let creation = Creation {
        location: &location,
        storage: &StoreOptions::default(),
        state: &world.path("state"),
        owner: &owner,
        options: VolumeOptions::default(),
        contents: Some(&mut Fails(meanwhile)),
    };
    creation.make(coins, |volume| Ok(volume.close().map(drop)?)).unwrap_err()
}

#[test]
fn a_failed_creation_leaves_nothing_behind_and_removes_nothing_else() {
    let world = World::new();
    let location = Location::parse(world.path("disk").as_os_str()).unwrap();
    // While it is being created, the volume is locked, and not reported as damaged.
    let looked = || assert_eq!(kind(read_public(&location)), ErrorKind::Locked);
    assert_eq!(fails(&world, looked).kind(), ErrorKind::Input);
    assert_eq!(world.names(), [""; 0]);
    // An existing directory stays, and can be used.
    fs::create_dir(world.path("state")).unwrap();
    fs::set_permissions(world.path("state"), fs::Permissions::from_mode(0o700)).unwrap();
    fails(&world, || ());
    assert_eq!(world.names(), ["state"]);
    // Another process has replaced the storage by something else of that name.
    let other = world.path("disk");
    let replace = || {
        fs::remove_file(&other).unwrap();
        fs::write(&other, b"another volume").unwrap();
    };
    fails(&world, replace);
    assert_eq!(fs::read(&other).unwrap(), b"another volume");
    fs::remove_file(&other).unwrap();
    world.create().close().unwrap();
    // A directory in use, or with the state of a volume, cannot be taken by another volume.
    let second = VolumeLocation::new(world.path("second")).unwrap().with_state(world.path("state"));
    assert_eq!(kind(second.create(&secret(1), BYTES)), ErrorKind::State);
    world.open().unwrap().close().unwrap();
}

#[test]
fn options_that_no_volume_in_use_can_have_are_refused_first() {
    let world = World::new();
    let period = std::time::Duration::from_millis(10);
    let slow = Schedule::new(period, 0).with_early_write_backs(true);
    let refused = [
        world.place().with_storage(StoreOptions::default().with_read_only(true)),
        world.place().with_storage(StoreOptions::default().with_allow_incomplete(true)),
        world.place().with_disk(DiskOptions::default().with_schedule(Some(slow))),
    ];
    for place in &refused {
        assert_eq!(kind(place.create(&secret(1), BYTES)), ErrorKind::Input);
    }
    assert_eq!(world.names(), [""; 0]);
    world.create().close().unwrap();
    let before = fs::read(world.path("disk")).unwrap();
    for place in &refused {
        assert_eq!(kind(place.open(&secret(1))), ErrorKind::Input);
    }
    assert!(fs::read(world.path("disk")).unwrap() == before, "storage must be unchanged");
}

/// An unlocked volume holds the lock of the client's directory, exclusively if it may write. So no
/// other client can use the directory before the volume is opened.
#[test]
fn an_unlocked_volume_holds_the_lock_of_its_directory() {
    let world = World::new();
    drop(world.create().close());
    let (location, state) =
        (world.path("disk").to_str().unwrap().parse().unwrap(), world.path("state"));
    let unlock = |newer, read_only| {
        let request = UnlockRequest {
            location: &location,
            state: Some(&state),
            limits: UnlockLimits::default(),
            newer,
        };
        let options = StoreOptions::default().with_read_only(read_only);
        request.unlock(&options, || Ok::<_, Error>(secret(1))).unwrap()
    };
    let owner = unlock(NewerCopies::Refuse, false);
    assert_eq!(kind(oblivio::home::open_to_read(&state)), ErrorKind::Locked);
    drop(owner);
    // Several callers may read at once, and no caller writes meanwhile.
    for newer in [NewerCopies::Refuse, NewerCopies::LeaveOut] {
        let readers = [(); 2].map(|()| unlock(newer, true));
        assert_eq!(kind(oblivio::home::open(&state)), ErrorKind::Locked);
        drop(readers);
    }
    assert!(oblivio::home::open(&state).is_ok());
}
