//! Storage that changes bytes does not learn from a failed access whether there was a request or
//! where its block was. A change is detected once: openings do not repeat the access that detected
//! it.

use std::sync::mpsc::{Receiver, sync_channel};

use oblivio_core::geometry::BucketId;
use oblivio_core::store::TreeId;
use oblivio_core::view::Operation;
use oblivio_core::{Access, HitPolicy, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume, owner_of};
use oblivio_testkit::crash::{InjectedFault, OpKind, Snapshot, StoreEvent, Survival, World};
use oblivio_testkit::statistics::{Verdicts, homogeneity};
use oblivio_volume::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, Request, WipedBytes};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Disk, Volume, VolumeError, VolumeErrorKind, VolumeOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The tree that holds the slots of buckets.
const SLOTS: TreeId = TreeId(2);

/// The tree that holds the table of taken slots, if the position map is in the tree.
const NOTES: TreeId = TreeId(5);

/// The number of probes for each kind of access.
const PROBES: u64 = 400;

/// Probability with which a test may fail by chance.
const FALSE_ALARMS: f64 = 1e-6;

fn contents(address: u64) -> [u8; BLOCK_BYTES as usize] {
    std::array::from_fn(|i| (address as usize * 7 + i + 1) as u8)
}

/// A closed volume, half of whose blocks were written.
struct Bench {
    setup: SmallVolume,
    world: World,
    good: Snapshot,
}

impl Bench {
    fn new() -> Self {
        let setup = SmallVolume {
            blocks: 600,
            leaf_level: 8,
            state_file_bytes_max: 1 << 20,
            ..SmallVolume::default()
        };
        let world = setup.world();
        let coins = StdRng::seed_from_u64(1);
        let mut volume = setup.create(world.store(), world.dir(), coins).unwrap();
        for address in 0..setup.blocks / 2 {
            write(&mut volume, address, &contents(address)).unwrap();
        }
        // The next access is the first after an eviction.
        assert_eq!((setup.blocks / 2) % 3, 0);
        volume.close().unwrap();
        let good = world.snapshot();
        Self { setup, world, good }
    }

    fn restore(&self) {
        self.world.restore_store(&self.good);
        self.world.restore_dir(&self.good);
    }

    fn open(&self, seed: u64) -> Result<Volume, VolumeError> {
        let coins = StdRng::seed_from_u64(seed);
        let opened = self.setup.open(self.world.store(), self.world.dir(), coins);
        opened.map(|(volume, _)| volume)
    }

    /// Whether storage has seen a path since its view was last taken. Takes the view.
    fn has_shown_a_path(&self) -> bool {
        let first_level = self.setup.tree_top_levels + 1;
        let is_of_a_path = |seen: &StoreEvent| match seen {
            StoreEvent::Event(event) => event
                .piece
                .is_some_and(|piece| piece.tree == SLOTS && piece.bucket.level() == first_level),
            StoreEvent::Crash => false,
        };
        self.world.take_view().iter().any(is_of_a_path)
    }

    /// Changes one slot in about half of the places of the first level in storage. A second call
    /// with the same `seed` restores them.
    fn change(&self, seed: u64) {
        let mut coins = StdRng::seed_from_u64(seed);
        let level = usize::from(self.setup.tree_top_levels) + 1;
        let shape = shapes(&self.setup.params()).unwrap()[usize::from(SLOTS.0)].levels()[level];
        for index in (0..shape.buckets).filter(|_| coins.random()) {
            let bucket = BucketId::new(level as u8, index);
            self.world.flip_bit(SLOTS, bucket, 5, 3);
        }
    }
}

fn read(volume: &mut Volume, address: u64) -> Result<(), VolumeError> {
    volume.access(&mut [Access { address, op: Op::Read(&mut [0; BLOCK_BYTES as usize]) }])
}

fn write(volume: &mut Volume, address: u64, data: &[u8]) -> Result<(), VolumeError> {
    volume.access(&mut [Access { address, op: Op::Write(data) }])
}

/// The purpose of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// The block that the previous access has read, and that is still on the client.
    Again,
    Another,
    NeverWritten,
    Written,
}

/// Two blocks that were written.
fn one_and_another(bench: &Bench, seed: u64) -> (u64, u64) {
    let mut coins = StdRng::seed_from_u64(seed);
    let written = bench.setup.blocks / 2;
    (coins.random_range(0..written / 2), coins.random_range(written / 2..written))
}

/// Number of [`PROBES`] in which the client holds the requested block. For such a block, the client
/// makes no access if the owner allows that.
fn stash_hits(bench: &Bench, wanted: Wanted) -> u64 {
    let is_hit = |seed: &u64| {
        bench.restore();
        let owner = owner_of(&mut bench.world.store()).unwrap();
        let options = VolumeOptions::default().with_hits(HitPolicy::Serve);
        let (store, dir) = (bench.world.store(), Box::new(bench.world.dir()));
        let coins = StdRng::seed_from_u64(*seed);
        let (mut volume, _) = Volume::open(store, dir, &owner, options, coins).unwrap();
        let (one, other) = one_and_another(bench, *seed);
        read(&mut volume, one).unwrap();
        bench.world.take_view();
        read(&mut volume, if wanted == Wanted::Again { one } else { other }).unwrap();
        !bench.has_shown_a_path()
    };
    (0..PROBES).filter(is_hit).count() as u64
}

/// Number of [`PROBES`] accesses that fail, and number that succeed.
fn failures(bench: &Bench, wanted: Wanted) -> [u64; 2] {
    let failed = (0..PROBES).filter(|seed| {
        bench.restore();
        let mut volume = bench.open(*seed).unwrap();
        let (one, other) = one_and_another(bench, *seed);
        read(&mut volume, one).unwrap();
        bench.change(*seed);
        let written = bench.setup.blocks / 2;
        let outcome = match wanted {
            Wanted::Again => read(&mut volume, one),
            Wanted::Another => read(&mut volume, other),
            Wanted::NeverWritten => read(&mut volume, written + one),
            Wanted::Written => write(&mut volume, other, &contents(1)),
        };
        assert!(outcome.is_ok() || kind(&outcome) == VolumeErrorKind::Tampered);
        outcome.is_err()
    });
    let failed = failed.count() as u64;
    [failed, PROBES - failed]
}

fn kind(outcome: &Result<(), VolumeError>) -> VolumeErrorKind {
    outcome.as_ref().unwrap_err().kind()
}

#[test]
fn whether_an_access_fails_does_not_depend_on_what_it_is_for() {
    let bench = Bench::new();
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    let hits = [Wanted::Again, Wanted::Another].map(|wanted| stash_hits(&bench, wanted));
    assert!(hits[0] == PROBES && hits[1] < PROBES / 10, "blocks on the client: {hits:?}");
    let another = failures(&bench, Wanted::Another);
    assert!(another.iter().all(|count| *count > PROBES / 3), "about half: {another:?}");
    for wanted in [Wanted::Again, Wanted::NeverWritten, Wanted::Written] {
        let found = failures(&bench, wanted);
        verdicts.add(format!("{wanted:?} {found:?} {another:?}"), homogeneity(&found, &another));
    }
    verdicts.conclude();
}

fn submit(disk: &Disk, op: DiskOp) -> Receiver<Result<WipedBytes, DiskError>> {
    let (sender, answer) = sync_channel(1);
    let done = Box::new(move |it| drop(sender.send(it)));
    disk.submit(Request { op, done });
    answer
}

/// Number of [`PROBES`] ticks that fail, and number that succeed.
fn failed_ticks(bench: &Bench, is_busy: bool) -> [u64; 2] {
    let failed = (0..PROBES).filter(|seed| {
        bench.restore();
        let volume = bench.open(*seed).unwrap();
        let (disk, ticks) = Disk::start_without_clock(volume, 0, 1, false).unwrap();
        let mut coins = StdRng::seed_from_u64(*seed);
        let wanted = coins.random_range(0..bench.setup.blocks / 2) * u64::from(BLOCK_BYTES);
        let answer =
            is_busy.then(|| submit(&disk, DiskOp::Read { offset: wanted, bytes: BLOCK_BYTES }));
        bench.change(*seed);
        ticks.tick();
        bench.change(*seed);
        drop(answer);
        let past_the_end = bench.setup.blocks * u64::from(BLOCK_BYTES);
        let after = submit(&disk, DiskOp::Read { offset: past_the_end, bytes: 1 });
        after.recv().unwrap().unwrap_err().kind != DiskErrorKind::OutOfRange
    });
    let failed = failed.count() as u64;
    [failed, PROBES - failed]
}

#[test]
fn whether_a_tick_fails_does_not_depend_on_whether_there_are_requests() {
    let bench = Bench::new();
    let (idle, busy) = (failed_ticks(&bench, false), failed_ticks(&bench, true));
    assert!(idle.iter().all(|count| *count > PROBES / 3), "about half: {idle:?}");
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    verdicts.add(format!("idle {idle:?}, busy {busy:?}"), homogeneity(&idle, &busy));
    verdicts.conclude();
}

/// Changes storage so that an access detects it. Returns the seed of [`Bench::change`] that did so.
fn find_tampering(bench: &Bench) -> u64 {
    let is_found = |seed: &u64| {
        bench.restore();
        bench.change(*seed);
        read(&mut bench.open(1).unwrap(), 7).is_err()
    };
    (0..).find(is_found).unwrap()
}

/// If the access were repeated, storage could change other bytes before each opening and learn from
/// each outcome.
#[test]
fn a_failed_access_is_not_repeated_until_the_owner_allows_it() {
    let bench = Bench::new();
    let seed = find_tampering(&bench);
    for _ in 0..3 {
        bench.world.take_view();
        let error = bench.open(2).map(drop).unwrap_err();
        assert_eq!(error.kind(), VolumeErrorKind::Tampered);
        assert!(error.to_string().contains("after_tampering"), "{error}");
        assert!(!bench.has_shown_a_path(), "a path was read again");
    }
    let setup = SmallVolume { after_tampering: true, ..bench.setup };
    let bench = Bench { setup, ..bench };
    assert_eq!(
        kind(&bench.open(2).map(drop)),
        VolumeErrorKind::Tampered,
        "storage is still changed"
    );
    bench.change(seed);
    let mut volume = bench.open(2).unwrap();
    for address in 0..setup.blocks / 2 {
        let mut block = [0; BLOCK_BYTES as usize];
        volume.access(&mut [Access { address, op: Op::Read(&mut block) }]).unwrap();
        assert!(block == contents(address));
    }
    drop(volume);
    let setup = SmallVolume { after_tampering: false, ..setup };
    Bench { setup, ..bench }.open(3).map(drop).unwrap();
}

/// If the access were repeated after a power loss, storage could change other bytes each time and
/// learn from each outcome.
#[test]
fn what_failed_is_not_repeated_after_a_power_loss() {
    let bench = Bench::new();
    find_tampering(&bench);
    bench.world.crash(&mut StdRng::seed_from_u64(1), Survival::None);
    bench.world.take_view();
    assert_eq!(kind(&bench.open(2).map(drop)), VolumeErrorKind::Tampered);
    assert!(!bench.has_shown_a_path(), "a path was read again");
}

/// The owner stated once that storage was restored, but it was not, and the opening is interrupted
/// at any operation. The next opening must not repeat the access.
#[test]
fn what_failed_is_not_repeated_after_an_opening_that_did_not_come_to_its_end() {
    let bench = Bench::new();
    let seed = find_tampering(&bench);
    let found = bench.world.snapshot();
    let insisting = SmallVolume { after_tampering: true, ..bench.setup };
    for point in 0.. {
        bench.world.restore_store(&found);
        bench.world.restore_dir(&found);
        let mut coins = StdRng::seed_from_u64(seed);
        bench.world.crash(&mut coins, Survival::All);
        bench.world.plan(&[InjectedFault::CrashAt(point)], &mut coins);
        let coins_of_client = StdRng::seed_from_u64(2);
        let opened = insisting.open(bench.world.store(), bench.world.dir(), coins_of_client);
        assert!(opened.is_err(), "storage is as it was");
        let is_through = !bench.world.is_off();
        bench.world.crash(&mut coins, Survival::All);
        bench.world.take_view();
        assert_eq!(kind(&bench.open(3).map(drop)), VolumeErrorKind::Tampered);
        assert!(!bench.has_shown_a_path(), "interrupted at {point}");
        if is_through {
            assert!(point > 10, "an opening has more operations than {point}");
            break;
        }
    }
}

/// A changed table of taken slots is detected. If it were read as empty, outdated copies of blocks
/// would count as current.
#[test]
fn changed_notes_on_taken_slots_are_found() {
    let setup = SmallVolume { state_file_bytes_max: 1 << 20, ..SmallVolume::default() };
    let setup = setup.with_map_in_tree();
    let world = setup.world();
    let coins = StdRng::seed_from_u64(1);
    let mut volume = setup.create(world.store(), world.dir(), coins).unwrap();
    (0..300).for_each(|address| write(&mut volume, address, &contents(address)).unwrap());
    volume.close().unwrap();
    let notes = shapes(&setup.params()).unwrap().swap_remove(usize::from(NOTES.0));
    for (level, buckets) in (0..).zip(notes.levels().iter().map(|level| level.buckets)) {
        (0..buckets).for_each(|page| world.flip_bit(NOTES, BucketId::new(level, page), 3, 1));
    }
    let coins = StdRng::seed_from_u64(2);
    let (mut volume, _) = setup.open(world.store(), world.dir(), coins).unwrap();
    let outcome = (0..30).try_for_each(|address| read(&mut volume, address));
    assert_eq!(kind(&outcome), VolumeErrorKind::Tampered);
}

/// A disk with one read error has not lied: the owner need not state that it was restored.
#[test]
fn what_could_not_be_read_is_read_again_by_the_next_opening() {
    let bench = Bench::new();
    let mut volume = bench.open(2).unwrap();
    let mut coins = StdRng::seed_from_u64(1);
    bench.world.plan(&[InjectedFault::FailAt(3)], &mut coins);
    let failed = read(&mut volume, 7);
    assert_eq!(kind(&failed), VolumeErrorKind::Io);
    let failure = bench.world.first_failure().unwrap();
    assert_eq!(failure.kind, OpKind::StoreRead, "{failure:?}");
    drop(volume);
    bench.world.crash(&mut coins, Survival::All);
    read(&mut bench.open(3).unwrap(), 7).unwrap();
}

/// If a recovery has detected a change of storage, the next opening repeats nothing until the owner
/// states that storage was restored.
#[test]
fn what_failed_in_a_recovery_is_not_repeated_either() {
    let bench = Bench::new();
    let mut volume = bench.open(1).unwrap();
    for address in 0..7 {
        write(&mut volume, address, &contents(address)).unwrap();
    }
    volume.flush().unwrap();
    drop(volume);
    let seed = (0..)
        .find(|seed| {
            bench.change(*seed);
            let before = bench.world.snapshot();
            let is_noticed = bench.open(2).is_err();
            if !is_noticed {
                bench.world.restore_store(&before);
                bench.change(*seed);
            }
            is_noticed
        })
        .unwrap();
    bench.world.take_view();
    let error = bench.open(3).map(drop).unwrap_err();
    assert!(error.to_string().contains("after_tampering"), "{error}");
    let has_written = |seen: &StoreEvent| {
        matches!(
            seen,
            StoreEvent::Event(event) if event.operation == Operation::Write
        )
    };
    assert!(!bench.world.take_view().iter().any(has_written));
    bench.change(seed);
    let setup = SmallVolume { after_tampering: true, ..bench.setup };
    let mut volume = Bench { setup, ..bench }.open(4).unwrap();
    assert_eq!(volume.check(&mut |_| ()).unwrap(), setup.blocks / 2);
}
