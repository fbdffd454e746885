//! Keys of a volume: removed keys stay removed, whatever storage shows, and no crash locks the
//! owner out.

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Frames, Part, Piece, Span, TreeId};
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, SlotChange, SmallVolume};
use oblivio_testkit::crash::{InjectedFault, OpKind, Snapshot, Survival, World};
use oblivio_volume::keys::Secret;
use oblivio_volume::superblock::copies::read_copies;
use oblivio_volume::{Volume, VolumeError, VolumeErrorKind};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The byte that fills the owner's key file, which opens slot 0 of every volume here.
const OWNERS: u8 = 5;

const ADD: SlotChange = SlotChange::Add { key_file: 6 };
const ADD_ANOTHER: SlotChange = SlotChange::Add { key_file: 7 };
/// The removal of the slot that [`ADD`] fills.
const REMOVE: SlotChange = SlotChange::Remove { slot: 1 };

// ───────────────────────────── removed keys ─────────────────────────────

#[test]
fn a_removed_key_stays_removed_from_the_moment_that_the_removal_returns() {
    let bench = Bench::with_two_keys();
    let old = bench.superblocks();
    bench.change(REMOVE).unwrap();
    bench.show(&old);
    assert_eq!(bench.open().map(drop).unwrap_err(), VolumeErrorKind::StoreRolledBack);
    // A change of the old superblock would bring the key back under a new number.
    for change in [ADD_ANOTHER, REMOVE] {
        assert_eq!(bench.change(change), Err(VolumeErrorKind::StoreRolledBack));
        assert_eq!(bench.superblocks(), old, "a refused change changed something");
    }
}

#[test]
fn an_opening_with_a_newer_superblock_is_the_last_with_an_older_one() {
    let bench = Bench::with_two_keys();
    let (old, before) = (bench.superblocks(), bench.world.snapshot());
    bench.change(REMOVE).unwrap();
    let new = bench.superblocks();
    // The removal was lost on the client's side.
    bench.world.restore_dir(&before);
    bench.open().unwrap().close().unwrap();
    bench.show(&old);
    assert_eq!(bench.open().map(drop).unwrap_err(), VolumeErrorKind::StoreRolledBack);
    bench.show(&new);
    bench.open().unwrap().close().unwrap();
    assert!(bench.opens(OWNERS) && !bench.opens(6));
}

/// A change that was never acknowledged left a superblock with the same number as the acknowledged
/// one. It must be refused.
#[test]
fn another_superblock_with_the_number_of_the_newest_is_refused() {
    let bench = Bench::with_two_keys();
    let before = bench.world.snapshot();
    bench.change(ADD_ANOTHER).unwrap();
    let twin = bench.superblocks();
    bench.restore(&before);
    bench.change(REMOVE).unwrap();
    let newest = bench.superblocks();
    bench.show(&twin);
    assert_eq!(bench.open().map(drop).unwrap_err(), VolumeErrorKind::StoreRolledBack);
    assert_eq!(bench.change(ADD_ANOTHER), Err(VolumeErrorKind::StoreRolledBack));
    bench.show(&newest);
    bench.open().unwrap().close().unwrap();
}

#[test]
fn an_older_directory_changes_no_keys() {
    let bench = Bench::with_two_keys();
    let backup = bench.world.snapshot();
    bench.write_all();
    let superblocks = bench.superblocks();
    bench.world.restore_dir(&backup);
    assert_eq!(bench.change(REMOVE), Err(VolumeErrorKind::StateRolledBack));
    assert_eq!(bench.superblocks(), superblocks);
}

#[test]
fn copies_are_mended_once_storage_and_directory_were_looked_at() {
    let bench = Bench::with_two_keys();
    let damaged = |mut superblocks: Superblocks| {
        superblocks[3][300] ^= 1;
        superblocks
    };
    let (old, good) = (bench.superblocks(), bench.world.snapshot());
    bench.change(REMOVE).unwrap();
    let new = bench.superblocks();
    bench.show(&damaged(old));
    let shown = bench.superblocks();
    assert_eq!(bench.open().map(drop).unwrap_err(), VolumeErrorKind::StoreRolledBack);
    assert_eq!(bench.change(ADD_ANOTHER), Err(VolumeErrorKind::StoreRolledBack));
    assert_eq!(bench.superblocks(), shown);

    bench.show(&damaged(new.clone()));
    let shown = bench.superblocks();
    bench.world.remove_file("superblock");
    assert_eq!(bench.open().map(drop).unwrap_err(), VolumeErrorKind::StateDamaged);
    assert_eq!(bench.superblocks(), shown);

    bench.world.restore_dir(&good);
    bench.open().unwrap().close().unwrap();
    assert_eq!(bench.superblocks(), new);
}

#[test]
fn a_directory_that_does_not_know_the_newest_superblock_is_damaged() {
    let bench = Bench::with_two_keys();
    let good = bench.world.snapshot();
    let file = good.files()["superblock"].clone();
    let kinds = || [bench.open().map(drop).unwrap_err(), bench.change(REMOVE).unwrap_err()];
    bench.world.remove_file("superblock");
    assert_eq!(kinds(), [VolumeErrorKind::StateDamaged; 2]);
    for byte in 0..file.len() {
        let mut changed = file.clone();
        changed[byte] ^= 1 << (byte % 8);
        bench.restore(&good);
        bench.world.replace_file("superblock", &changed);
        let expected = match byte {
            8..12 => VolumeErrorKind::UnknownVersion,
            _ => VolumeErrorKind::StateDamaged,
        };
        assert_eq!(kinds(), [expected; 2], "byte {byte}");
        bench.restore(&good);
        bench.world.replace_file("superblock", &file[..byte]);
        assert_eq!(kinds(), [VolumeErrorKind::StateDamaged; 2], "{byte} bytes");
    }
    bench.restore(&good);
    bench.world.replace_file("superblock", &[&file[..], &[0]].concat());
    assert_eq!(kinds(), [VolumeErrorKind::StateDamaged; 2]);
    bench.restore(&good);
    bench.open().unwrap().close().unwrap();
}

// ───────────────────────────── crashes ─────────────────────────────

/// Whenever the machine dies, and whatever survives on either side: the owner can open the volume,
/// the removal has happened or not, and a superblock that the next opening has seen is not undone.
#[test]
fn a_crash_in_a_key_change_does_not_lock_the_owner_out_and_undoes_nothing() {
    let bench = Bench::with_two_keys();
    let (old, good) = (bench.superblocks(), bench.world.snapshot());
    let (mut happened, mut undone) = (0, 0);
    for (store, dir) in pairs_of_survivals() {
        for operation in 0.. {
            bench.restore(&good);
            let mut coins = StdRng::seed_from_u64(operation);
            bench.world.plan(&[InjectedFault::CrashAt(operation)], &mut coins);
            let outcome = bench.change(REMOVE);
            bench.world.crash_apart(&mut coins, store, dir);
            bench.open().unwrap().close().unwrap();
            assert!(bench.opens(OWNERS));
            let is_removed = !bench.opens(6);
            if is_removed {
                happened += 1;
                bench.show(&old);
                let again = bench.open().map(drop).unwrap_err();
                assert_eq!(again, VolumeErrorKind::StoreRolledBack, "operation {operation}");
            } else {
                undone += 1;
                assert!(outcome.is_err(), "an acknowledged removal was undone");
            }
            if outcome.is_ok() {
                break;
            }
        }
    }
    assert!(happened > 20 && undone > 20, "{happened} {undone}");
}

/// A superblock that a key change finds may be in a cache only. It must be durable before it is
/// noted as the newest: otherwise a power loss would remove it, and the older one would be refused.
/// It must also not overwrite the older one while only the older one is durable.
#[test]
fn a_superblock_that_a_failed_sync_left_in_a_cache_does_not_lock_the_owner_out() {
    let bench = Bench::with_two_keys();
    let good = bench.world.snapshot();
    let operations = bench.operations_of(REMOVE);
    let survivals = [Survival::None, Survival::Random { torn: true }];
    let faults = (0..operations).flat_map(|fail| (0..operations + 10).map(move |die| (fail, die)));
    for (fail_at, crash_at) in faults {
        for survival in survivals {
            bench.restore(&good);
            let mut coins = StdRng::seed_from_u64(fail_at * 100 + crash_at);
            bench.world.plan(&[InjectedFault::FailAt(fail_at)], &mut coins);
            let _ = bench.change(REMOVE);
            bench.world.plan(&[InjectedFault::CrashAt(crash_at)], &mut coins);
            let again = bench.change(SlotChange::Add { key_file: 8 });
            bench.world.crash(&mut coins, survival);
            bench.open().unwrap().close().unwrap();
            assert!(bench.opens(OWNERS));
            assert!(again.is_err() || bench.opens(8), "an acknowledged key is lost");
        }
    }
}

/// A removal fails in its first sync: its superblock is in a cache, and the disk may hold parts of
/// it. The next change must not begin with the copies of the old superblock, which are the only
/// complete ones on the disk.
#[test]
fn a_crash_in_a_key_change_on_a_superblock_in_a_cache_does_not_lock_the_owner_out() {
    let bench = Bench::with_two_keys();
    let good = bench.world.snapshot();
    let first = |kind: OpKind, change: SlotChange| {
        let is_first = |number: &u64| {
            let before = bench.world.snapshot();
            bench.world.plan(&[InjectedFault::FailAt(*number)], &mut StdRng::seed_from_u64(0));
            let _ = bench.change(change);
            bench.restore(&before);
            bench.world.first_failure().unwrap().kind == kind
        };
        (0..).find(is_first).unwrap()
    };
    let fail_at = first(OpKind::StoreFlush, REMOVE);
    let first_write = first(OpKind::StoreWrite, ADD_ANOTHER);
    for (seed, crash_at) in (0..250).flat_map(|seed| (0..8).map(move |n| (seed, first_write + n))) {
        bench.restore(&good);
        let mut coins = StdRng::seed_from_u64(seed << 32 | crash_at);
        bench.world.plan(&[InjectedFault::FailAt(fail_at)], &mut coins);
        bench.change(REMOVE).unwrap_err();
        bench.world.plan(&[InjectedFault::CrashAt(crash_at)], &mut coins);
        bench.change(ADD_ANOTHER).unwrap_err();
        bench.world.crash(&mut coins, Survival::Random { torn: true });
        let opened = bench.open().map(drop);
        assert_eq!(opened, Ok(()), "seed {seed}, the second change died at {crash_at}");
    }
}

/// A superblock that an opening has seen is not undone, even if the note of it was in a cache only.
#[test]
fn what_an_opening_has_seen_is_not_undone_by_a_power_loss_after_a_failed_sync() {
    let bench = Bench::with_two_keys();
    let (old, good) = (bench.superblocks(), bench.world.snapshot());
    let operations = bench.operations_of(REMOVE);
    let mut of_names = 0;
    for seed in 0..8 {
        for fail_at in 0..operations {
            bench.restore(&good);
            let mut coins = StdRng::seed_from_u64(seed << 32 | fail_at);
            bench.world.plan(&[InjectedFault::FailAt(fail_at)], &mut coins);
            let _ = bench.change(REMOVE);
            let failure = bench.world.first_failure().unwrap();
            bench.open().unwrap().close().unwrap();
            let has_seen_it = !bench.opens(6);
            bench.world.crash(&mut coins, Survival::None);
            if has_seen_it {
                bench.show(&old);
                let again = bench.open().map(drop);
                let expected = Err(VolumeErrorKind::StoreRolledBack);
                assert_eq!(again, expected, "{failure:?}, seed {seed}");
                of_names += u64::from(failure.kind == OpKind::DirSyncNames);
            }
        }
    }
    assert!(of_names > 0, "the sync of the note never failed");
}

/// The machine dies during an opening that adopts an unacknowledged superblock.
#[test]
fn a_crash_in_the_opening_after_a_key_change_does_not_lock_the_owner_out() {
    let bench = Bench::with_two_keys();
    let before = bench.world.snapshot();
    bench.change(REMOVE).unwrap();
    let changed = bench.world.snapshot();
    for survival in Survival::MODES {
        for operation in 0..60 {
            bench.world.restore_store(&changed);
            bench.world.restore_dir(&before);
            let mut coins = StdRng::seed_from_u64(operation);
            bench.world.plan(&[InjectedFault::CrashAt(operation)], &mut coins);
            let _ = bench.open().map(drop);
            bench.world.crash(&mut coins, survival);
            bench.open().unwrap().close().unwrap();
            assert!(bench.opens(OWNERS) && !bench.opens(6));
        }
    }
}

fn pairs_of_survivals() -> impl Iterator<Item = (Survival, Survival)> {
    Survival::MODES.into_iter().flat_map(|one| Survival::MODES.map(|other| (one, other)))
}

// ───────────────────────────── a volume with keys ─────────────────────────────

type Superblocks = [Vec<u8>; 4];

struct Bench {
    setup: SmallVolume,
    world: World,
}

impl Bench {
    /// A closed volume: slot 0 belongs to the owner, slot 1 to another person.
    fn with_two_keys() -> Self {
        let setup = SmallVolume::default();
        let world = setup.world();
        let coins = StdRng::seed_from_u64(1);
        setup.create(world.store(), world.dir(), coins).unwrap().close().unwrap();
        let bench = Self { setup, world };
        bench.change(ADD).unwrap();
        assert!(bench.opens(OWNERS) && bench.opens(6));
        // Restoring a snapshot makes everything durable.
        let snapshot = bench.world.snapshot();
        bench.restore(&snapshot);
        bench
    }

    fn change(&self, change: SlotChange) -> Result<(), VolumeErrorKind> {
        let changed = self.setup.change_slots(self.world.store(), self.world.dir(), change);
        changed.map_err(|error: VolumeError| error.kind())
    }

    /// The number of operations of the change, without a fault.
    fn operations_of(&self, change: SlotChange) -> u64 {
        let before = self.world.snapshot();
        self.world.plan(&[], &mut StdRng::seed_from_u64(0));
        self.change(change).unwrap();
        let operations = self.world.operations();
        self.restore(&before);
        operations
    }

    fn open(&self) -> Result<Volume, VolumeErrorKind> {
        let coins = StdRng::seed_from_u64(99);
        let opened = self.setup.open(self.world.store(), self.world.dir(), coins);
        opened.map(|(volume, _)| volume).map_err(|error| error.kind())
    }

    /// Writes all blocks, which makes more than one checkpoint. An older directory is then more
    /// than one checkpoint behind.
    fn write_all(&self) {
        let mut volume = self.open().unwrap();
        let data = [1; BLOCK_BYTES as usize];
        for address in 0..BLOCKS {
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
        volume.close().unwrap();
    }

    /// Whether a key file filled with this byte unlocks the superblocks in storage.
    fn opens(&self, key_file: u8) -> bool {
        let secret = Secret::KeyFile(vec![key_file; 32].into());
        let copies = read_copies(&mut self.world.store());
        copies.newest().unwrap().unlock(&secret).is_ok()
    }

    fn superblocks(&self) -> Superblocks {
        places().map(|piece| self.world.store().read(&[piece]).unwrap().get(0).to_vec())
    }

    /// Makes storage show other superblocks.
    fn show(&self, superblocks: &Superblocks) {
        for (piece, bytes) in places().into_iter().zip(superblocks) {
            let spans = [Span { start: 0, bytes: bytes.len() }];
            let mut store = self.world.store();
            store.write(&[piece], &mut |blanks| blanks.relay(Frames::new(bytes, &spans))).unwrap();
            store.flush().unwrap();
        }
    }

    fn restore(&self, snapshot: &Snapshot) {
        self.world.restore_store(snapshot);
        self.world.restore_dir(snapshot);
    }
}

fn places() -> [Piece; 4] {
    [(0, 0), (0, 1), (3, 0), (3, 1)].map(|(tree, copy)| Piece {
        tree: TreeId(tree),
        bucket: BucketId::new(1, copy),
        part: Part::Whole,
    })
}
