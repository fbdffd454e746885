//! Volumes under injected crashes and failures. `make crash` runs these tests at length.

use oblivio_core::view::{Event, Operation};
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, Device, SmallScheme, SmallVolume};
use oblivio_testkit::crash::{InjectedFault, Life, OpKind, StoreEvent, Survival};
use oblivio_volume::{SyncMoves, Volume, VolumeError, VolumeErrorKind};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::support::bench::{Bench, get, places, read};

/// Runs the volume once for every `nth` operation and each of `faults`, with that fault at that
/// operation. Fails if the volume loses data.
fn fault_each_nth_operation(
    volume: &SmallVolume,
    survival: Survival,
    nth: usize,
    faults: &[fn(u64) -> InjectedFault],
) {
    let operations = volume.run(&[Life::new(&[], survival)]).unwrap().operations[0].total();
    assert!(operations > 150, "{operations}");
    for n in (0..operations).step_by(nth) {
        for fault in faults {
            let life = Life::new(&[fault(n)], survival);
            volume.run(&[life]).unwrap_or_else(|loss| panic!("{volume:?}: {loss}"));
        }
    }
}

#[test]
fn without_faults_it_is_a_disk() {
    for seed in 0..3 {
        let volume = SmallVolume { steps: 600, seed, ..SmallVolume::default() };
        volume.run(&[]).unwrap();
        volume.run(&[Life::new(&[], Survival::All), Life::new(&[], Survival::None)]).unwrap();
    }
}

#[test]
fn with_a_schedule_it_is_the_same_disk() {
    for (seed, cache_blocks_max, accesses) in [(0, 8, 5), (1, 1, 1), (2, 64, 16), (3, 0, 64)] {
        let device = Device::Scheduled { cache_blocks_max, accesses };
        let volume = SmallVolume { steps: 300, seed, device, ..SmallVolume::default() };
        volume.run(&[]).unwrap_or_else(|wrong| panic!("{volume:?}: {wrong}"));
        // Trims wait for the next checkpoint.
        let volume = SmallVolume { state_file_bytes_max: 0, ..volume };
        let lives = [Survival::All, Survival::None].map(|survival| Life::new(&[], survival));
        volume.run(&lives).unwrap_or_else(|wrong| panic!("{volume:?}: {wrong}"));
    }
}

#[test]
fn with_a_schedule_every_operation_may_be_the_last() {
    for (sync_moves, survival) in [
        (SyncMoves::BeforeReads, Survival::Random { torn: true }),
        (SyncMoves::AtFlush, Survival::None),
    ] {
        let device = Device::Scheduled { cache_blocks_max: 4, accesses: 2 };
        let volume = SmallVolume { steps: 40, sync_moves, device, ..SmallVolume::default() };
        fault_each_nth_operation(&volume, survival, 11, &[InjectedFault::CrashAt]);
    }
}

#[test]
fn every_tenth_operation_may_be_the_last() {
    for (sync_moves, survival) in [
        (SyncMoves::BeforeReads, Survival::None),
        (SyncMoves::BeforeReads, Survival::Random { torn: true }),
        (SyncMoves::AtFlush, Survival::Random { torn: true }),
        (SyncMoves::AtFlush, Survival::All),
    ] {
        let volume = SmallVolume { steps: 60, sync_moves, ..SmallVolume::default() };
        fault_each_nth_operation(&volume, survival, 10, &[InjectedFault::CrashAt]);
    }
}

#[test]
fn without_a_cache_every_tenth_operation_may_be_the_last_or_fail() {
    for (sync_moves, survival) in [
        (SyncMoves::BeforeReads, Survival::Random { torn: true }),
        (SyncMoves::AtFlush, Survival::None),
    ] {
        let device = Device::Disk { cache_blocks_max: 0 };
        let volume = SmallVolume { steps: 60, device, sync_moves, ..SmallVolume::default() };
        fault_each_nth_operation(
            &volume,
            survival,
            10,
            &[InjectedFault::CrashAt, InjectedFault::FailAt],
        );
    }
}

/// A crash or an error at every tenth operation on several disks. Each disk fails and loses data
/// independently, also during a flush of all disks.
#[test]
fn on_several_disks_every_tenth_operation_may_be_the_last_or_fail() {
    for (scheme, survival) in [
        (SmallScheme::Range { class: 3 }, Survival::Random { torn: true }),
        (SmallScheme::Raw, Survival::None),
    ] {
        let volume = SmallVolume { steps: 60, scheme, disks: 3, ..SmallVolume::default() };
        fault_each_nth_operation(
            &volume,
            survival,
            10,
            &[InjectedFault::CrashAt, InjectedFault::FailAt],
        );
    }
}

#[test]
fn an_opening_after_a_crash_may_end_in_a_crash() {
    let volume = SmallVolume { steps: 60, ..SmallVolume::default() };
    let torn = Survival::Random { torn: true };
    let operations =
        volume.run(&[Life::new(&[], torn), Life::new(&[], torn)]).unwrap().operations[0].total();
    for n in (0..operations).step_by(7) {
        let lives = [n, n % 61].map(|n| Life::new(&[InjectedFault::CrashAt(n)], torn));
        volume.run(&lives).unwrap_or_else(|loss| panic!("{volume:?}: {loss}"));
    }
}

/// A failed sync may have dropped an anchor that a cache still shows to the next opening. That
/// opening must make the anchor durable.
#[test]
fn what_a_failed_sync_left_in_a_cache_is_made_durable() {
    let setup = SmallVolume::default();
    for seed in 0..200 {
        let world = setup.world();
        let mut coins = StdRng::seed_from_u64(seed);
        let volume = setup.create(world.store(), world.dir(), StdRng::seed_from_u64(seed)).unwrap();
        world.plan(&[InjectedFault::FailAt(seed % 20)], &mut coins);
        let _ = volume.close();
        world.plan(&[], &mut coins);
        let open = |n| setup.open(world.store(), world.dir(), StdRng::seed_from_u64(n));
        let opened = open(1000 + seed).unwrap();
        world.crash(&mut coins, Survival::None);
        drop(opened);
        open(2000 + seed).unwrap();
    }
}

/// An operation fails, and its data may be only in a cache. The next opening on the same machine
/// reads the data from the cache and continues from it, and then the power fails. The opening must
/// make this data durable before any data that builds on it.
#[test]
fn a_failed_operation_and_a_power_loss_in_the_next_opening_do_not_lock_the_owner_out() {
    // Each forgotten range after the first leads to a checkpoint, in a new file.
    let setup = SmallVolume { state_file_bytes_max: 0, ..SmallVolume::default() };
    let world = setup.world();
    let create = StdRng::seed_from_u64(1);
    setup.create(world.store(), world.dir(), create).unwrap().close().unwrap();
    let closed = world.snapshot();
    let open = |n| setup.open(world.store(), world.dir(), StdRng::seed_from_u64(n));
    let mut failed_syncs = 0;
    for fail_at in 0.. {
        for crash_at in 0.. {
            world.restore_store(&closed);
            world.restore_dir(&closed);
            let mut coins = StdRng::seed_from_u64(fail_at << 32 | crash_at);
            world.plan(&[InjectedFault::FailAt(fail_at)], &mut coins);
            let mut flushed = 0;
            let _ = open(2).and_then(|(volume, _)| overwrite(volume, &mut flushed));
            let Some(failed) = world.first_failure() else {
                assert!(failed_syncs > 4, "{failed_syncs} syncs of names failed");
                return;
            };
            world.plan(&[InjectedFault::CrashAt(crash_at)], &mut coins);
            let has_died = open(3).is_err();
            world.crash(&mut coins, Survival::None);
            let history = format!("{failed:?}, and {crash_at} died");
            let (mut volume, _) = open(4).unwrap_or_else(|wrong| panic!("{history}: {wrong}"));
            let mut block = [0; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address: 0, op: Op::Read(&mut block) }]).unwrap();
            assert!(block[0] >= flushed, "{history}: {} after {flushed}", block[0]);
            if !has_died {
                failed_syncs += u64::from(failed.kind == OpKind::DirSyncNames);
                break;
            }
        }
    }
}

/// Writes ascending numbers to a block, with checkpoints between them, and closes the volume.
/// `flushed` is the latest number that survives a crash.
fn overwrite(mut volume: Volume, flushed: &mut u8) -> Result<(), VolumeError> {
    for number in 1..=3 {
        let data = [number; BLOCK_BYTES as usize];
        volume.access(&mut [Access { address: 0, op: Op::Write(&data) }])?;
        volume.flush()?;
        *flushed = number;
        volume.forget(1..2)?;
    }
    volume.close().map(drop)
}

/// The client crashes in two successive runs, at about the same operation: every pair of points up
/// to three operations apart is tried. Storage must not fall two checkpoints behind.
#[test]
fn two_openings_in_a_row_may_end_at_any_operation() {
    let setup = SmallVolume { steps: 20, ..SmallVolume::default() };
    let crash_at = |n| Life::new(&[InjectedFault::CrashAt(n)], Survival::None);
    for first in 0..60_u64 {
        for second in first.saturating_sub(3)..=first + 3 {
            let lives =
                [Life::new(&[], Survival::None), crash_at(first), crash_at(second), crash_at(0)];
            setup.run(&lives).unwrap_or_else(|wrong| panic!("{first}, {second}: {wrong}"));
        }
    }
}

/// Storage still shows accesses that a client lost in a power loss because it synced late. The next
/// opening must not report tampering. Once these traces are overwritten, an old directory is
/// detected again.
#[test]
fn who_lost_power_while_syncing_late_finds_no_tampering_when_syncing_early() {
    for scheme in SmallScheme::each() {
        for accesses in 0..12 {
            let early = SmallVolume { scheme, ..SmallVolume::default() };
            let mut bench = Bench::new(SmallVolume { sync_moves: SyncMoves::AtFlush, ..early }, 1);
            let (mut volume, _) = bench.open().unwrap();
            (0..9).for_each(|_| read(&mut volume, 0).unwrap());
            bench.world.crash_apart(&mut bench.coins, Survival::All, Survival::None);
            bench.setup = early;
            for opening in 0..4 {
                let (mut volume, _) = bench
                    .open()
                    .unwrap_or_else(|wrong| panic!("{scheme:?}, {accesses}, {opening}: {wrong}"));
                (0..accesses).for_each(|_| read(&mut volume, 0).unwrap());
                volume.close().unwrap();
            }
            let (mut volume, _) = bench.open().unwrap();
            (0..40).for_each(|_| read(&mut volume, 0).unwrap());
            volume.close().unwrap();
            let (mut volume, _) = bench.open().unwrap();
            read(&mut volume, 0).unwrap();
            let old = bench.world.snapshot();
            (0..3).for_each(|_| read(&mut volume, 0).unwrap());
            bench.world.restore_dir(&old);
            let error = bench.open().err().unwrap();
            assert_eq!(error.kind(), VolumeErrorKind::StateRolledBack, "{scheme:?}: {error}");
        }
    }
}

/// Evictions that recovery repeats have their old names, so their buckets must be sealed under
/// another key.
#[test]
fn what_recovery_writes_again_is_sealed_under_another_key() {
    let tree = SmallVolume { leaf_level: 10, ..SmallVolume::default() };
    for scheme in SmallScheme::each() {
        let setup = SmallVolume { scheme, ..tree };
        let written_again = check_what_recovery_writes_again(setup);
        assert!(written_again > 100, "{written_again} of {setup:?}");
    }
}

/// Checks that repeated evictions are sealed under another key. Returns the number of places
/// checked.
fn check_what_recovery_writes_again(setup: SmallVolume) -> u32 {
    let mut written_again = 0;
    for crash_at in (20..200).step_by(6) {
        let mut bench = Bench::new(setup, crash_at);
        bench.access_one_block_until_the_crash(InjectedFault::CrashAt(crash_at));
        bench.world.crash(&mut bench.coins, Survival::All);
        let old: Vec<_> = places(&bench.setup).map(|piece| get(&bench.world, piece)).collect();
        let seen = bench.world.view().len();
        let (volume, _) = bench.open().unwrap();
        drop(volume);
        let written: Vec<_> = bench.world.view()[seen..]
            .iter()
            .filter_map(|seen| match seen {
                StoreEvent::Event(Event { operation: Operation::Write, piece, .. }) => *piece,
                _ => None,
            })
            .collect();
        for (piece, old) in places(&bench.setup).zip(old) {
            // An empty place was not sealed before.
            if written.contains(&piece) && old.iter().any(|byte| *byte != 0) {
                let new = get(&bench.world, piece);
                let equal = old.chunks_exact(16).zip(new.chunks_exact(16)).any(|(a, b)| a == b);
                assert!(!equal, "crash at {crash_at}: a mask was used twice in {piece:?}");
                written_again += 1;
            }
        }
    }
    written_again
}
