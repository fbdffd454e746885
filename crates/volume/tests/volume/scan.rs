//! A volume on the trivial ORAM, in which every access reads everything. It serves as an oracle for
//! privacy: storage sees exactly the same pieces for all uses of equal length, so the tests need no
//! statistics.

use std::collections::HashSet;

use oblivio_core::geometry::BucketId;
use oblivio_core::store::Piece;
use oblivio_core::view::Operation;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, Device, SmallScheme, SmallVolume};
use oblivio_testkit::crash::{InjectedFault, Life, StoreEvent, Survival, World};
use oblivio_volume::volume::{FIRST_TREE, shapes};
use oblivio_volume::{SyncMoves, Volume, VolumeError, VolumeErrorKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::bench::{Bench, get, places, read, write};
use crate::support::rescued::rescue_of;

const SPARE: u64 = 10;

type Block = [u8; BLOCK_BYTES as usize];

fn volume() -> SmallVolume {
    SmallVolume { scheme: SmallScheme::Scan { spare: SPARE }, blocks: 24, ..SmallVolume::default() }
}

/// A volume whose accesses read in three trips, so that an access could end early if it finds its
/// block in the first trip.
fn large() -> SmallVolume {
    SmallVolume { blocks: 150, ..volume() }
}

fn contents(volume: &mut Volume, address: u64) -> Result<Block, VolumeError> {
    let mut block = [0; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Read(&mut block) }])?;
    Ok(block)
}

/// The events that storage saw, with pieces and numbers of bytes, but without ciphertext.
fn seen(world: &World) -> Vec<String> {
    world.view().iter().map(|seen| format!("{seen:?}")).collect()
}

// ───────────────────────────── what storage sees ─────────────────────────────

type Workload = fn(&mut Volume, u64) -> Result<(), VolumeError>;

const WORKLOADS: [(&str, Workload); 6] = [
    ("reads of one block", |volume, _| read(volume, 7)),
    ("reads of blocks never written", |volume, step| read(volume, step % 24)),
    ("writes to one block", |volume, step| write(volume, 3, step as u8)),
    // Long after the write, the block is carried along.
    ("a write long ago", |volume, step| match step {
        0 => write(volume, volume.blocks() - 10, 1),
        _ => read(volume, 7),
    }),
    ("writes to all", |volume, step| write(volume, step * 5 % 24, step as u8)),
    ("writes that are trimmed and flushed", |volume, step| {
        write(volume, step % 24, 1)?;
        volume.forget(step % 24..step % 24 + 1)?;
        volume.flush()
    }),
];

#[test]
fn what_storage_sees_follows_from_the_number_of_accesses_alone() {
    let small = [0, 1, SPARE - 1, SPARE, 3 * SPARE + 1, 80].map(|steps| (volume(), steps));
    for (setup, steps) in small.into_iter().chain([(large(), 170)]) {
        for sync_moves in [SyncMoves::BeforeReads, SyncMoves::AtFlush] {
            let views = WORKLOADS.map(|(name, workload)| {
                let mut bench = Bench::new(SmallVolume { sync_moves, ..setup }, 1);
                for survival in [Survival::All, Survival::None] {
                    let (mut volume, _) = bench.open().unwrap();
                    (0..steps).try_for_each(|step| workload(&mut volume, step)).unwrap();
                    // A crash then loses the same in each run.
                    volume.flush().unwrap();
                    bench.world.crash(&mut StdRng::seed_from_u64(1), survival);
                }
                bench.open().unwrap().0.close().unwrap();
                (name, seen(&bench.world))
            });
            assert!(views[0].1.len() > 30);
            for (name, view) in &views[1..] {
                assert!(*view == views[0].1, "{name}, {steps} steps, {sync_moves:?}");
            }
        }
    }
}

#[test]
fn no_ciphertext_comes_twice() {
    let mut bench = Bench::new(volume(), 1);
    let mut past = HashSet::new();
    let places: Vec<_> = places(&bench.setup).collect();
    for life in 0..4 {
        let (mut volume, _) = bench.open().unwrap();
        for _ in 0..100 {
            let before: Vec<_> = places.iter().map(|place| get(&bench.world, *place)).collect();
            read(&mut volume, 0).unwrap();
            let after = places.iter().map(|place| get(&bench.world, *place));
            let new: Vec<_> = after.zip(&before).filter(|(new, old)| new != *old).collect();
            assert_eq!(new.len(), 1, "an access writes one bucket");
            assert!(past.insert(new[0].0.clone()), "life {life}");
        }
        bench.world.crash(&mut bench.coins, Survival::All);
    }
}

/// Makes an access after a change of one bucket. Returns whether the access fails, and the calls
/// that storage saw.
fn answer_to_a_change(bench: &Bench, bucket: BucketId, ask: Workload) -> (bool, Vec<Call>) {
    let coins = StdRng::seed_from_u64(1);
    let (mut volume, _) = bench.setup.open(bench.world.store(), bench.world.dir(), coins).unwrap();
    bench.world.flip_bit(FIRST_TREE, bucket, 40, 1);
    bench.world.take_view();
    let outcome = ask(&mut volume, 1);
    if let Err(error) = &outcome {
        assert_eq!(error.kind(), VolumeErrorKind::Tampered, "{error}");
    }
    let seen = bench.world.take_view();
    let events = seen.iter().filter_map(|seen| match seen {
        StoreEvent::Event(event) => Some(event),
        StoreEvent::Crash => None,
    });
    // Trips are counted across openings.
    let first = events.clone().next().map_or(0, |event| event.trip);
    let calls = events.map(|event| (event.trip - first, event.operation, event.piece));
    (outcome.is_err(), calls.collect())
}

/// The trip, the operation, and the piece.
type Call = (u64, Operation, Option<Piece>);

/// Storage that changes a bucket must not learn from the answer whether the bucket held a block, or
/// whether any was requested.
#[test]
fn whether_and_when_an_access_fails_does_not_depend_on_what_it_is_for() {
    const REQUESTS: [(&str, Workload); 6] = [
        ("a block that was just written", |volume, _| read(volume, 5)),
        ("a block written long ago", |volume, _| read(volume, 1)),
        ("a block that was never written", |volume, _| read(volume, 9)),
        ("a block that was trimmed", |volume, _| read(volume, 3)),
        ("a write", |volume, _| write(volume, 2, 7)),
        ("the first write", |volume, _| write(volume, 9, 7)),
    ];
    for setup in [volume(), large()] {
        let mut bench = Bench::new(setup, 1);
        let (mut volume, _) = bench.open().unwrap();
        (1..=3).for_each(|address| write(&mut volume, address, 1).unwrap());
        (0..setup.blocks).for_each(|_| read(&mut volume, 0).unwrap());
        write(&mut volume, 5, 1).unwrap();
        volume.forget(3..4).unwrap();
        volume.close().unwrap();
        let good = bench.world.snapshot();
        let mut failed = 0;
        for place in places(&setup).step_by(setup.blocks as usize / 24) {
            let answers = REQUESTS.map(|(name, ask)| {
                bench.world.restore_store(&good);
                bench.world.restore_dir(&good);
                (name, answer_to_a_change(&bench, place.bucket, ask))
            });
            for (name, answer) in &answers[1..] {
                assert!(*answer == answers[0].1, "{name}, {place:?}");
            }
            failed += u64::from(answers[0].1.0);
        }
        assert!(failed >= 20, "{failed}");
    }
}

// ───────────────────────────── what the owner sees ─────────────────────────────

#[test]
fn it_is_an_array_whatever_happens_in_between() {
    // Including one block only, a checkpoint at each access, and more spare places than blocks.
    let sizes = [(24, SPARE), (24, SPARE), (1, 1), (1, 70), (7, 1), (70, 3)];
    for (seed, (blocks, spare)) in (0..).zip(sizes) {
        let scheme = SmallScheme::Scan { spare };
        let mut bench = Bench::new(SmallVolume { scheme, blocks, ..volume() }, seed);
        let mut model = vec![[0; BLOCK_BYTES as usize]; blocks as usize];
        for life in 0..6 {
            let (mut volume, _) = bench.open().unwrap();
            for step in 0..60u8 {
                let address = bench.coins.random_range(0..blocks);
                match bench.coins.random_range(0..5) {
                    0 | 1 => {
                        write(&mut volume, address, step).unwrap();
                        model[address as usize].fill(step);
                    }
                    2 => {
                        let end = bench.coins.random_range(address..=blocks);
                        volume.forget(address..end).unwrap();
                        model[address as usize..end as usize].fill([0; BLOCK_BYTES as usize]);
                    }
                    _ => {
                        let found = contents(&mut volume, address).unwrap();
                        assert!(found == model[address as usize], "seed {seed}, life {life}");
                    }
                }
            }
            let held = model.iter().filter(|block| block.iter().any(|byte| *byte != 0)).count();
            assert!(volume.check(&mut |_| ()).unwrap() >= held as u64);
            volume.flush().unwrap();
            match life % 3 {
                0 => drop(volume.close().unwrap()),
                1 => bench.world.crash(&mut bench.coins, Survival::None),
                _ => bench.world.crash(&mut bench.coins, Survival::Random { torn: true }),
            }
        }
    }
}

#[test]
fn every_operation_may_be_the_last_or_fail() {
    for (sync_moves, device) in [
        (SyncMoves::BeforeReads, Device::Raw),
        (SyncMoves::AtFlush, Device::Disk { cache_blocks_max: 0 }),
        (SyncMoves::BeforeReads, Device::Scheduled { cache_blocks_max: 4, accesses: 3 }),
    ] {
        let volume = SmallVolume { steps: 40, sync_moves, device, ..volume() };
        let survival = Survival::Random { torn: true };
        let operations = volume.run(&[Life::new(&[], survival)]).unwrap().operations[0].total();
        assert!(operations > 150, "{operations}");
        for n in (0..operations).step_by(13) {
            for fault in [InjectedFault::CrashAt(n), InjectedFault::FailAt(n)] {
                let lives = [Life::new(&[fault], survival), Life::new(&[], survival)];
                volume.run(&lives).unwrap_or_else(|loss| panic!("{volume:?}: {loss}"));
            }
        }
    }
}

// ───────────────────────────── storage that lies, and old directories ────────────────────────────

/// A volume that was used and killed, with all of its blocks written.
fn used() -> Bench {
    let mut bench = Bench::new(volume(), 1);
    let (mut volume, _) = bench.open().unwrap();
    (0..24).try_for_each(|address| write(&mut volume, address, address as u8 + 1)).unwrap();
    volume.flush().unwrap();
    bench.world.crash(&mut bench.coins, Survival::All);
    bench
}

#[test]
fn neither_side_can_be_rolled_back() {
    let mut bench = used();
    let old = bench.world.snapshot();
    let (mut volume, _) = bench.open().unwrap();
    (0..3).try_for_each(|address| write(&mut volume, address, 99)).unwrap();
    volume.flush().unwrap();
    bench.world.crash(&mut bench.coins, Survival::All);
    let new = bench.world.snapshot();

    bench.world.restore_dir(&old);
    let error = bench.open().err().unwrap();
    assert_eq!(error.kind(), VolumeErrorKind::StateRolledBack, "{error}");
    bench.world.restore_dir(&new);
    bench.world.restore_store(&old);
    let error = bench.open().err().unwrap();
    assert_eq!(error.kind(), VolumeErrorKind::StoreRolledBack, "{error}");
    bench.world.restore_store(&new);
    let (mut volume, _) = bench.open().unwrap();
    assert_eq!(contents(&mut volume, 0).unwrap(), [99; BLOCK_BYTES as usize]);
}

/// A directory that lacks only the latest access is refused, because the bucket that this access
/// wrote shows its age.
#[test]
fn a_directory_that_lost_its_last_access_is_refused() {
    let mut bench = used();
    let (mut volume, _) = bench.open().unwrap();
    // All places have been written, and are written again.
    (0..24 + SPARE).try_for_each(|_| read(&mut volume, 0)).unwrap();
    volume.flush().unwrap();
    let old = bench.world.snapshot();
    read(&mut volume, 0).unwrap();
    let telling = bench.world.view().iter().rev().find_map(|seen| match seen {
        StoreEvent::Event(event) if event.operation == Operation::Write => event.piece,
        _ => None,
    });
    bench.world.restore_dir(&old);
    let error = bench.open().err().unwrap();
    assert_eq!(error.kind(), VolumeErrorKind::StateRolledBack, "{error}");
    // If storage damages the bucket, the directory still does not pass for the latest.
    bench.world.flip_bit(FIRST_TREE, telling.unwrap().bucket, 40, 1);
    let error = bench.open().err().unwrap();
    assert_eq!(error.kind(), VolumeErrorKind::Tampered, "{error}");
}

#[test]
fn no_changed_bit_is_believed_wherever_it_is() {
    let bench = used();
    let buckets = shapes(&bench.setup.params()).unwrap()[2].levels().last().unwrap().buckets;
    let level = places(&bench.setup).next().unwrap().bucket.level();
    let (mut noticed, mut unseen) = (0, 0);
    for index in 0..buckets {
        let mut bench = used();
        let bucket = BucketId::new(level, index);
        let byte = bench.coins.random_range(0..2 * BLOCK_BYTES as usize);
        bench.world.flip_bit(FIRST_TREE, bucket, byte, 3);
        let opened = bench.open().and_then(|(mut volume, _)| {
            (0..24).try_for_each(|address| {
                let block = contents(&mut volume, address)?;
                assert_eq!(block, [address as u8 + 1; BLOCK_BYTES as usize]);
                Ok(())
            })
        });
        match opened {
            Err(error) => {
                assert_eq!(error.kind(), VolumeErrorKind::Tampered, "{error}");
                noticed += 1;
            }
            Ok(()) => unseen += 1,
        }
    }
    // Bits in unused places go unnoticed, because no access reads them.
    assert!((unseen..=SPARE).contains(&SPARE) && noticed >= 24, "{noticed} {unseen}");
}

#[test]
fn a_rescue_gives_back_what_authenticates_and_never_lies() {
    let mut bench = used();
    let (mut volume, _) = bench.open().unwrap();
    // The earlier copies are still in other places.
    (0..6).try_for_each(|address| write(&mut volume, address, address as u8 + 101)).unwrap();
    volume.forget(20..22).unwrap();
    volume.close().unwrap();
    let (target, rescued) = rescue_of(&bench.world, 24);
    assert_eq!((rescued.blocks, &rescued.lost[..], &rescued.doubtful[..]), (22, &[][..], &[][..]));
    assert!(target.0[20].is_none() && target.0[19] == Some(vec![20; BLOCK_BYTES as usize]));

    let level = places(&bench.setup).next().unwrap().bucket.level();
    let sound = bench.world.snapshot();
    let (mut lost, mut doubtful) = (0, 0);
    for index in 0..24 + SPARE {
        bench.world.restore_store(&sound);
        bench.world.flip_bit(FIRST_TREE, BucketId::new(level, index), 40, 1);
        let (target, rescued) = rescue_of(&bench.world, 24);
        let is_in = |ranges: &[std::ops::Range<u64>], block| {
            ranges.iter().any(|range| range.contains(&block))
        };
        for block in 0..24 {
            let found = target.0[block as usize].clone();
            if is_in(&rescued.lost, block) {
                lost += 1;
            } else if is_in(&rescued.doubtful, block) {
                doubtful += 1;
                assert!(found.is_some());
            } else {
                let fill = if block < 6 { block as u8 + 101 } else { block as u8 + 1 };
                let right = vec![fill; BLOCK_BYTES as usize];
                let right = (!(20..22).contains(&block)).then_some(right);
                assert!(found == right, "block {block}, bucket {index}");
            }
        }
    }
    assert!(lost > 0 && doubtful > 0, "{lost} lost, {doubtful} doubtful");
}
