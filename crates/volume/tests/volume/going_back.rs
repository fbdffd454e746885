//! An old client's directory is refused before anything is written: the right one can still open
//! the volume.

use std::collections::HashMap;

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Part, Piece, TreeId};
use oblivio_core::view::Operation;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{
    BLOCK_BYTES, BLOCKS, EVICT_PERIOD, SlotChange, SmallVolume,
};
use oblivio_testkit::crash::{InjectedFault, Snapshot, StoreEvent, Survival, World};
use oblivio_testkit::statistics::longest_complement;
use oblivio_volume::volume::shapes;
use oblivio_volume::{Volume, VolumeErrorKind};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The tree that holds the heads of buckets, which differ after each eviction.
const HEADS: TreeId = TreeId(4);
const ANCHORS: TreeId = TreeId(1);

type Outcome = Result<(), VolumeErrorKind>;

fn contents(address: u64) -> [u8; BLOCK_BYTES as usize] {
    std::array::from_fn(|i| (address as usize * 7 + i + 1) as u8)
}

fn setup() -> SmallVolume {
    SmallVolume { state_file_bytes_max: 1 << 20, ..SmallVolume::default() }
}

fn open(setup: &SmallVolume, world: &World, seed: u64) -> Result<Volume, VolumeErrorKind> {
    let opened = setup.open(world.store(), world.dir(), StdRng::seed_from_u64(seed));
    opened.map(|(volume, _)| volume).map_err(|error| error.kind())
}

fn write(volume: &mut Volume, address: u64) {
    let data = contents(address);
    volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
}

/// A closed volume with [`contents`] in every block.
fn filled(setup: &SmallVolume) -> World {
    let world = setup.world();
    let coins = StdRng::seed_from_u64(1);
    let mut volume = setup.create(world.store(), world.dir(), coins).unwrap();
    (0..setup.blocks).for_each(|address| write(&mut volume, address));
    volume.close().unwrap();
    world
}

/// Opens, checks everything and reads all blocks.
fn outcome(setup: &SmallVolume, world: &World) -> Outcome {
    let mut volume = open(setup, world, 77)?;
    volume.check(&mut |_| ()).map_err(|error| error.kind())?;
    for address in 0..setup.blocks {
        let mut block = [0; BLOCK_BYTES as usize];
        let read = volume.access(&mut [Access { address, op: Op::Read(&mut block) }]);
        read.map_err(|error| error.kind())?;
        assert!(block == contents(address), "another block was read");
    }
    Ok(())
}

/// A copy of the directory is made after `before` accesses of a session, and the power fails after
/// `after` more. If the copy is refused, the right directory still opens.
#[test]
fn a_directory_that_is_refused_leaves_the_right_one_what_it_needs() {
    for setup in setup().on_each_scheme() {
        let pairs = (0..12).flat_map(|before| (1..24).map(move |after| (before, after)));
        let histories = pairs.flat_map(|(before, after)| {
            // Unsynced data of storage is lost, or survives completely.
            [Survival::None, Survival::All].map(|survival| (before, after, survival))
        });
        let filled = filled(&setup).snapshot();
        let refused = histories.filter(|history| is_refused(&setup, &filled, *history)).count();
        // All except the runs in which storage holds nothing that the copy does not know.
        assert!(refused > 440, "{refused} of 552: {setup:?}");
    }
}

/// Returns whether the copy is refused. Also checks that the right directory still opens
/// afterwards.
fn is_refused(
    setup: &SmallVolume,
    filled: &Snapshot,
    (before, after, survival): (u64, u64, Survival),
) -> bool {
    let world = setup.world();
    world.restore_store(filled);
    world.restore_dir(filled);
    let mut volume = open(setup, &world, 5).unwrap();
    (0..before).for_each(|n| write(&mut volume, n % setup.blocks));
    let copy = world.snapshot();
    (before..before + after).for_each(|n| write(&mut volume, n % setup.blocks));
    world.crash_apart(&mut StdRng::seed_from_u64(3), survival, Survival::None);
    drop(volume);
    let latest = world.snapshot();
    let history = format!("{before} accesses, a copy, {after} more, {survival:?}");
    assert_eq!(outcome(setup, &world), Ok(()), "{history}: the right one alone");

    world.restore_store(&latest);
    world.restore_dir(&copy);
    let seen_before = writes(&world);
    let wrong = open(setup, &world, 6).map(drop);
    if wrong == Ok(()) {
        return false;
    }
    assert_eq!(wrong, Err(VolumeErrorKind::StateRolledBack), "{history}");
    assert_eq!(writes(&world), seen_before, "{history}: something was written");
    world.restore_dir(&latest);
    assert_eq!(outcome(setup, &world), Ok(()), "{history}: the right one after the wrong one");
    true
}

/// Recovery seals repeated work under keys that only its process knows. If it is interrupted, an
/// older copy of the directory must still be detected.
#[test]
fn a_recovery_that_is_interrupted_hides_nothing_from_an_old_copy() {
    let on_each = setup().on_each_scheme().map(|setup| (setup, 1, 3));
    for (setup, before, after) in on_each.into_iter().chain([(setup(), 2, 6), (setup(), 4, 4)]) {
        let world = filled(&setup);
        let mut volume = open(&setup, &world, 5).unwrap();
        (0..before).for_each(|n| write(&mut volume, n));
        let copy = world.snapshot();
        (before..before + after).for_each(|n| write(&mut volume, n));
        world.crash(&mut StdRng::seed_from_u64(3), Survival::All);
        drop(volume);
        let latest = world.snapshot();
        for (point, survival) in interruptions(&setup, &world, &latest) {
            let interrupted = world.snapshot();
            let history = format!("{before} accesses, a copy, {after} more, {point}, {survival:?}");
            world.restore_dir(&copy);
            let wrong = open(&setup, &world, 6).map(drop);
            assert_eq!(wrong, Err(VolumeErrorKind::StateRolledBack), "{history}");
            world.restore_dir(&interrupted);
            assert_eq!(outcome(&setup, &world), Ok(()), "{history}: the right one");
        }
    }
}

/// A copy of the client's directory that was made during a recovery knows the checkpoint that the
/// recovery announced, so it is as good as the right directory at first. Once a recovery of the
/// right directory is complete, the copy is refused.
#[test]
fn a_copy_from_within_a_recovery_is_refused_after_it() {
    let setup = setup();
    let world = filled(&setup);
    let mut volume = open(&setup, &world, 5).unwrap();
    (0..5).for_each(|n| write(&mut volume, n));
    world.crash(&mut StdRng::seed_from_u64(3), Survival::All);
    drop(volume);
    let latest = world.snapshot();
    for (point, survival) in interruptions(&setup, &world, &latest) {
        let copy = world.snapshot();
        let mut volume = open(&setup, &world, 8).unwrap();
        // Evictions, and no checkpoint after the one of the opening.
        (5..9).for_each(|n| write(&mut volume, n));
        drop(volume);
        let after = world.snapshot();
        world.restore_dir(&copy);
        let wrong = open(&setup, &world, 6).map(drop);
        assert_eq!(wrong, Err(VolumeErrorKind::StateRolledBack), "{point}, {survival:?}");
        world.restore_dir(&after);
        assert_eq!(outcome(&setup, &world), Ok(()), "{point}, {survival:?}: the right one");
    }
}

/// Interrupts an opening at each of its operations in turn, with each way in which unflushed writes
/// can survive. Leaves the world as the interruption left it.
fn interruptions(
    setup: &SmallVolume,
    world: &World,
    latest: &Snapshot,
) -> impl Iterator<Item = (u64, Survival)> {
    let interrupt = |seed: u64, point: u64, survival: Survival| {
        world.restore_store(latest);
        world.restore_dir(latest);
        let mut coins = StdRng::seed_from_u64(seed << 32 | point);
        // Faults are counted from this opening on.
        world.crash(&mut coins, Survival::All);
        world.plan(&[InjectedFault::CrashAt(point)], &mut coins);
        let is_through = open(setup, world, 7).is_ok();
        world.crash(&mut coins, survival);
        (!is_through).then_some((point, survival))
    };
    // Which writes survive is random, so it is tried several times, except if none survives.
    let tries = (0..3).flat_map(|seed| Survival::MODES.map(|survival| (seed, survival)));
    let tries = tries.filter(|(seed, survival)| *seed == 0 || *survival != Survival::None);
    tries.flat_map(move |(seed, survival)| {
        (0..).map(move |point| interrupt(seed, point, survival)).map_while(|it| it)
    })
}

/// A client that made evictions ahead of schedule is not refused as rolled back: they are in the
/// log and count.
#[test]
fn an_honest_client_is_not_refused_after_evictions_ahead_of_their_time() {
    let setup = SmallVolume { stash_blocks_max: 1, leaf_level: 4, slots: 3, ..setup() };
    let mut ahead = 0;
    for accesses in 1..60 {
        let world = filled(&setup);
        let mut volume = open(&setup, &world, 5).unwrap();
        world.take_view();
        (0..accesses).for_each(|n| write(&mut volume, n * 7 % BLOCKS));
        let due = (BLOCKS % u64::from(EVICT_PERIOD) + accesses) / u64::from(EVICT_PERIOD);
        ahead += u64::from(evictions(&world) > due);
        world.crash(&mut StdRng::seed_from_u64(3), Survival::All);
        drop(volume);
        assert_eq!(open(&setup, &world, 6).map(drop), Ok(()), "after {accesses} accesses");
    }
    assert!(ahead > 8, "{ahead} runs had evictions ahead of their time");
}

/// The number of evictions since the view was last taken: each writes the head of one leaf's
/// bucket. Takes the view.
fn evictions(world: &World) -> u64 {
    let is_of_a_leaf = |seen: &&StoreEvent| match seen {
        StoreEvent::Event(event) => {
            let level = event.piece.filter(|piece| piece.tree == HEADS).map(|it| it.bucket.level());
            event.operation == Operation::Write && level == Some(5)
        }
        StoreEvent::Crash => false,
    };
    world.take_view().iter().filter(is_of_a_leaf).count() as u64
}

/// An old directory must not bring back keys that the owner has removed.
#[test]
fn keys_are_not_changed_with_a_directory_that_storage_is_ahead_of() {
    let setup = setup();
    let world = filled(&setup);
    let mut volume = open(&setup, &world, 5).unwrap();
    write(&mut volume, 1);
    let copy = world.snapshot();
    (0..6).for_each(|n| write(&mut volume, n));
    drop(volume);
    let latest = world.snapshot();
    let add = SlotChange::Add { key_file: 9 };
    let change = || setup.change_slots(world.store(), world.dir(), add).map_err(|it| it.kind());
    world.restore_dir(&copy);
    assert_eq!(change(), Err(VolumeErrorKind::StateRolledBack));
    world.restore_dir(&latest);
    assert_eq!(change(), Ok(()));
}

/// The number of pieces that were written.
fn writes(world: &World) -> usize {
    let is_write = |seen: &StoreEvent| {
        matches!(
            seen,
            StoreEvent::Event(event) if event.operation == Operation::Write
        )
    };
    world.view().iter().filter(|seen| is_write(seen)).count()
}

/// An opening refuses a copy of the directory that was made before the latest session, whichever of
/// that session's unflushed writes are left in storage. The session ends with a power loss of
/// storage, in which any of them may survive.
#[test]
fn a_session_that_left_anything_in_storage_is_missed() {
    let setup = setup();
    let mut tally: HashMap<(bool, Outcome), u64> = HashMap::new();
    for seed in 0..400 {
        let world = filled(&setup);
        let copy = world.snapshot();
        let mut volume = open(&setup, &world, 5).unwrap();
        for address in 0..9 {
            let data = [0xEE; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
        volume.flush().unwrap();
        let mut coins = StdRng::seed_from_u64(seed);
        world.crash_apart(&mut coins, Survival::Random { torn: false }, Survival::All);
        drop(volume);
        let after = world.snapshot();
        let has_survived = heads(&setup, &world, &copy) != heads(&setup, &world, &after);
        world.restore_store(&after);
        world.restore_dir(&copy);
        let opened = open(&setup, &world, 6).map(drop);
        *tally.entry((has_survived, opened)).or_default() += 1;
    }
    assert!(tally[&(true, Err(VolumeErrorKind::StateRolledBack))] > 300, "{tally:?}");
    assert_eq!(tally.get(&(true, Ok(()))), None, "{tally:?}");
    // The anchor of an opening is durable before its first access.
    assert_eq!(tally.get(&(false, Ok(()))), None, "{tally:?}");
}

/// The heads of all buckets.
fn heads(setup: &SmallVolume, world: &World, snapshot: &Snapshot) -> Vec<Vec<u8>> {
    world.restore_store(snapshot);
    let shape = shapes(&setup.params()).unwrap().swap_remove(usize::from(HEADS.0));
    let levels = (0..).zip(shape.levels().iter().map(|level| level.buckets));
    let buckets = levels
        .flat_map(|(level, buckets)| (0..buckets).map(move |index| BucketId::new(level, index)));
    let mut store = world.store();
    let mut read = |bucket| {
        let piece = Piece { tree: HEADS, bucket, part: Part::Whole };
        store.read(&[piece]).unwrap().get(0).to_vec()
    };
    buckets.map(&mut read).collect()
}

/// Two clients continue from one state with the same coins and different data, as when a machine is
/// copied while it runs. Storage must not learn the XOR of their data.
#[test]
fn a_client_that_was_cloned_gives_away_no_plaintext() {
    let setup = setup();
    let run = |fill: u8| {
        let world = filled(&setup);
        let mut volume = open(&setup, &world, 5).unwrap();
        for address in 0..12 {
            let data = [fill; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
        world.snapshot().store().to_vec()
    };
    let (one, other) = (run(0x00), run(0xFF));
    let longest = longest_complement(&one, &other);
    assert!(one != other && longest < 8, "the XOR of {longest} bytes of plaintext");
}

/// Before its first access after an opening or a checkpoint, the client checks that storage shows
/// that checkpoint. If not, it reports a second client.
#[test]
fn a_second_client_is_noticed_before_a_bucket_is_overwritten() {
    // Each forgotten range after the first leads to a checkpoint without an access.
    let setup = SmallVolume { state_file_bytes_max: 0, ..setup() };
    for checkpoints in 0..3 {
        let world = filled(&setup);
        let mut volume = open(&setup, &world, 5).unwrap();
        if checkpoints > 0 {
            // The client has made this check once, and must make it again.
            write(&mut volume, 1);
        }
        (0..=checkpoints).for_each(|_| volume.forget(0..1).unwrap());
        // Another client takes over: storage shows another checkpoint.
        let other = filled(&setup);
        let mut overtaking = open(&setup, &other, 6).unwrap();
        (0..=checkpoints).for_each(|_| overtaking.forget(0..1).unwrap());
        replace_anchors(&world, &other.snapshot());
        assert_eq!(first_failure(&mut volume, &world), VolumeErrorKind::Locked, "{checkpoints}");
    }
}

/// The client also notices a second client if its first action after an opening or a checkpoint is
/// an eviction, because the stash is too full for an access.
#[test]
fn a_second_client_is_noticed_before_an_eviction_ahead_of_its_time() {
    // Hardly room for all blocks, and a checkpoint with each forgotten range after the first.
    let tight = SmallVolume {
        stash_blocks_max: 1,
        leaf_level: 4,
        slots: 2,
        leaf_slots: Some(3),
        ..setup()
    };
    let setup = SmallVolume { state_file_bytes_max: 0, ..tight };
    let used = |accesses: u64, is_opened_again: bool, seed: u64| {
        let world = filled(&setup);
        let mut volume = open(&setup, &world, seed).unwrap();
        (0..accesses).for_each(|n| write(&mut volume, n * 7 % BLOCKS));
        if is_opened_again {
            volume.close().unwrap();
            volume = open(&setup, &world, seed + 1).unwrap();
        } else {
            (0..2).for_each(|_| volume.forget(0..1).unwrap());
        }
        (world, volume)
    };
    let mut ahead = [0, 0];
    for (accesses, is_opened_again) in (1..40).flat_map(|n| [(n, false), (n, true)]) {
        // Without a second client, evictions ahead of schedule come.
        let (world, mut volume) = used(accesses, is_opened_again, 5);
        world.take_view();
        write(&mut volume, 0);
        let since_eviction = (BLOCKS + accesses) % u64::from(EVICT_PERIOD);
        let is_due = since_eviction + 1 == u64::from(EVICT_PERIOD);
        ahead[usize::from(is_opened_again)] += u64::from(evictions(&world) > u64::from(is_due));

        let (world, mut volume) = used(accesses, is_opened_again, 5);
        let (other, mut overtaking) = used(accesses, is_opened_again, 7);
        (0..20).for_each(|_| overtaking.forget(0..1).unwrap());
        replace_anchors(&world, &other.snapshot());
        let failure = first_failure(&mut volume, &world);
        assert_eq!(failure, VolumeErrorKind::Locked, "{accesses}, {is_opened_again}");
    }
    assert!(ahead.iter().all(|runs| *runs > 5), "{ahead:?} runs began with such an eviction");
}

/// If storage rolls back while a client uses it, the client reports a rollback, not another client,
/// before it overwrites a bucket.
#[test]
fn a_rollback_during_a_session_is_named_before_a_bucket_is_overwritten() {
    let setup = setup();
    let world = filled(&setup);
    let old = world.snapshot();
    let mut volume = open(&setup, &world, 5).unwrap();
    replace_anchors(&world, &old);
    assert_eq!(first_failure(&mut volume, &world), VolumeErrorKind::StoreRolledBack);

    // Storage rolls back by one checkpoint only.
    let checkpoints = SmallVolume { state_file_bytes_max: 0, ..setup };
    let world = filled(&checkpoints);
    let mut volume = open(&checkpoints, &world, 5).unwrap();
    let old = world.snapshot();
    (0..2).for_each(|_| volume.forget(0..1).unwrap());
    replace_anchors(&world, &old);
    assert_eq!(first_failure(&mut volume, &world), VolumeErrorKind::StoreRolledBack);

    let world = filled(&setup);
    let mut volume = open(&setup, &world, 5).unwrap();
    replace_anchors(&world, &setup.world().snapshot());
    assert_eq!(first_failure(&mut volume, &world), VolumeErrorKind::Tampered);
}

fn replace_anchors(world: &World, other: &Snapshot) {
    for place in 0..2 {
        world.replace_bucket(other, ANCHORS, BucketId::new(1, place));
    }
}

/// Writes until an error. Nothing may be written to storage before it.
fn first_failure(volume: &mut Volume, world: &World) -> VolumeErrorKind {
    world.take_view();
    let kind = loop {
        let data = contents(0);
        match volume.access(&mut [Access { address: 0, op: Op::Write(&data) }]) {
            Ok(()) => assert_eq!(writes(world), 0, "a bucket was written"),
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(writes(world), 0, "a bucket was written");
    kind
}
