//! A disk behaves like a disk, whatever requests wait together, and reads no block twice for a
//! request, however small its cache is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use oblivio_core::view::Operation;
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, EVICT_PERIOD, SmallVolume};
use oblivio_testkit::crash::{CrashStore, InjectedFault, ShadowDisk, StoreEvent, World};
use oblivio_testkit::{Call, Faulty};
use oblivio_volume::device::{BlockDevice, DiskErrorKind, DiskOp, Request, WipedBytes, call};
use oblivio_volume::disk::BLOCKS_UNDER_WAY_MAX;
use oblivio_volume::{Disk, DiskOptions, VolumeErrorKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::bench::places;
use crate::support::together::together;

const DISK_BYTES: u32 = BLOCKS as u32 * BLOCK_BYTES;

#[test]
fn a_request_longer_than_the_cache_makes_an_access_a_block() {
    let (world, disk) = disk(1);
    let data: Vec<u8> = (0..DISK_BYTES).map(|i| (i * 7 + i / 251) as u8).collect();
    let write = DiskOp::Write { offset: 0, data: data.clone().into(), durable: true };
    assert_eq!(accesses(&world, || assert!(call(&disk, write).unwrap().is_empty())), BLOCKS);
    let read = DiskOp::Read { offset: 0, bytes: DISK_BYTES };
    // The cache holds one of the blocks.
    let read = accesses(&world, || assert_eq!(call(&disk, read).unwrap()[..], data));
    assert_eq!(read, BLOCKS - 1);
}

/// A request longer than the cache reads each block once: its cached blocks stay until they are
/// used, and so do blocks that were read ahead.
#[test]
fn a_request_longer_than_the_cache_reads_no_block_twice() {
    let setup = SmallVolume {
        blocks: 2600,
        leaf_level: 10,
        state_file_bytes_max: 1 << 20,
        ..SmallVolume::default()
    };
    let read = |first: u64, blocks: u64| DiskOp::Read {
        offset: first * u64::from(BLOCK_BYTES),
        bytes: blocks as u32 * BLOCK_BYTES,
    };
    let (world, disk) = disk_of(&setup, 2);
    let among_the_next = BLOCKS_UNDER_WAY_MAX as u64 + 20;
    let two = accesses(&world, || drop(call(&disk, read(among_the_next, 2)).unwrap()));
    let all = accesses(&world, || drop(call(&disk, read(0, setup.blocks)).unwrap()));
    assert_eq!((two, all), (2, setup.blocks - 2));
}

/// A read that waits behind a long write takes at most one access per block: blocks that are read
/// ahead stay until they are used.
#[test]
fn reads_behind_a_long_write_make_an_access_a_block() {
    for (cache, written, read) in [(2, 40, 1200), (256, 1000, 1000)] {
        let setup = SmallVolume {
            blocks: 2600,
            leaf_level: 10,
            state_file_bytes_max: 1 << 20,
            ..SmallVolume::default()
        };
        let (world, disk) = disk_of(&setup, cache);
        let bytes = |blocks: u64| blocks * u64::from(BLOCK_BYTES);
        let data = vec![7; bytes(written) as usize].into();
        let write = DiskOp::Write { offset: 0, data, durable: false };
        let read_bytes = bytes(read) as u32;
        let read_op = DiskOp::Read { offset: bytes(1200), bytes: read_bytes };
        let all = accesses(&world, || {
            together(&disk, vec![write, read_op])
                .into_iter()
                .for_each(|answer| drop(answer.unwrap()));
        });
        assert!(all <= written + read, "cache {cache}: {all} accesses");
    }
}

/// A write that is longer than the cache is written back while it is served, so the cache stays
/// within its bound.
#[test]
fn a_long_write_is_written_back_while_it_is_served() {
    let (world, disk) = disk(4);
    let write =
        DiskOp::Write { offset: 0, data: vec![7; DISK_BYTES as usize].into(), durable: false };
    let written = accesses(&world, || drop(call(&disk, write).unwrap()));
    // Half of the cache may be dirty.
    assert!(written >= BLOCKS - 2, "{written} of {BLOCKS}");
}

#[test]
fn what_is_in_the_cache_makes_no_access_and_zeros_make_none() {
    let (world, disk) = disk(BLOCKS);
    let write = |fill| DiskOp::Write { offset: 100, data: vec![fill; 1000].into(), durable: false };
    // The first and the last of three blocks are read, because they are written in part.
    assert_eq!(accesses(&world, || drop(call(&disk, write(1)).unwrap())), 2);
    assert_eq!(accesses(&world, || drop(call(&disk, write(2)).unwrap())), 0);
    let zero = DiskOp::Zero { offset: 0, bytes: DISK_BYTES.into(), durable: true };
    assert_eq!(accesses(&world, || drop(call(&disk, zero).unwrap())), 0);
    let read = DiskOp::Read { offset: 0, bytes: BLOCK_BYTES };
    assert_eq!(call(&disk, read).unwrap()[..], [0; BLOCK_BYTES as usize]);
}

#[test]
fn without_a_cache_requests_for_one_block_make_an_access_each_whether_they_read_or_write() {
    let (world, disk) = disk(0);
    let write = |fill| DiskOp::Write {
        offset: 0,
        data: vec![fill; BLOCK_BYTES as usize].into(),
        durable: false,
    };
    let read = || DiskOp::Read { offset: 0, bytes: BLOCK_BYTES };
    for n in 0..20 {
        assert_eq!(accesses(&world, || drop(call(&disk, write(n)).unwrap())), 1, "write {n}");
        let read = accesses(&world, || {
            assert_eq!(call(&disk, read()).unwrap()[..], [n; BLOCK_BYTES as usize]);
        });
        assert_eq!(read, 1, "read {n}");
    }
}

#[test]
fn requests_that_wait_together_are_served_in_some_order() {
    for cache_blocks_max in [0, 1, 5, BLOCKS] {
        let (_, disk) = disk(cache_blocks_max);
        let mut shadow = ShadowDisk::new(DISK_BYTES.into(), BLOCK_BYTES);
        let mut coins = StdRng::seed_from_u64(cache_blocks_max);
        for round in 0..300 {
            let count = coins.random_range(1..8);
            let ops: Vec<_> = (0..count).map(|_| request(&mut coins)).collect();
            let tickets: Vec<_> = ops.iter().map(|op| (read_at(op), shadow.submit(op))).collect();
            for ((read_at, ticket), answer) in tickets.into_iter().zip(together(&disk, ops)) {
                let answer = answer.unwrap();
                let report = read_at.map(|offset| shadow.check_read(&ticket, offset, &answer));
                let is_right = report.as_ref().is_none_or(|report| report.is_clean());
                assert!(is_right, "cache {cache_blocks_max}, round {round}: {report:?}");
                shadow.answered(ticket);
            }
        }
    }
}

/// A request that arrives while another is served may begin before that one ends. Neither may lose
/// data that the other writes.
#[test]
fn requests_that_come_one_after_the_other_are_served_in_some_order() {
    const AT_ONCE: usize = 12;
    for cache_blocks_max in [1, 5, BLOCKS] {
        let (_, disk) = disk(cache_blocks_max);
        let mut shadow = ShadowDisk::new(DISK_BYTES.into(), BLOCK_BYTES);
        let mut coins = StdRng::seed_from_u64(cache_blocks_max);
        let mut under_way = VecDeque::new();
        for number in 0..4000 {
            let op = request(&mut coins);
            let (read_at, ticket) = (read_at(&op), shadow.submit(&op));
            let (sender, answer) = channel();
            // The last answers arrive after the test has ended.
            let done = Box::new(move |answer| drop(sender.send(answer)));
            disk.submit(Request { op, done });
            under_way.push_back((read_at, ticket, answer));
            if under_way.len() == AT_ONCE {
                let (read_at, ticket, answer) = under_way.pop_front().unwrap();
                let answer = answer.recv().unwrap().unwrap();
                let report = read_at.map(|offset| shadow.check_read(&ticket, offset, &answer));
                let is_right = report.as_ref().is_none_or(|report| report.is_clean());
                assert!(is_right, "cache {cache_blocks_max}, request {number}: {report:?}");
                shadow.answered(ticket);
            }
        }
    }
}

/// A random request for less than six blocks within the first 26: two thirds of the requests are
/// for whole blocks.
fn request(coins: &mut StdRng) -> DiskOp {
    let block_bytes = u64::from(BLOCK_BYTES);
    let granule = if coins.random_ratio(2, 3) { block_bytes } else { 100 };
    let offset = coins.random_range(0..20 * block_bytes / granule) * granule;
    let bytes = coins.random_range(0..6 * block_bytes / granule) * granule;
    let durable = coins.random_ratio(1, 5);
    match coins.random_range(0..10) {
        0..4 => DiskOp::Read { offset, bytes: bytes as u32 },
        4..8 => {
            let data = (0..bytes).map(|_| coins.random()).collect::<Vec<u8>>().into();
            DiskOp::Write { offset, data, durable }
        }
        8 => DiskOp::Zero { offset, bytes, durable },
        _ => DiskOp::Trim { offset, bytes, durable },
    }
}

#[test]
fn a_request_past_the_end_is_refused_alone() {
    for cache_blocks_max in [0, 5] {
        let (_, disk) = disk(cache_blocks_max);
        let last = u64::from(DISK_BYTES - BLOCK_BYTES);
        let write = |offset| DiskOp::Write {
            offset,
            data: vec![7; BLOCK_BYTES as usize].into(),
            durable: true,
        };
        let trim = |offset| DiskOp::Trim { offset, bytes: u64::MAX, durable: false };
        let read = |offset| DiskOp::Read { offset, bytes: BLOCK_BYTES };
        let ops = vec![write(last), write(last + 1), trim(5), read(u64::MAX), read(last + 1)];
        let mut answers = together(&disk, ops).into_iter();
        assert!(answers.next().unwrap().unwrap().is_empty());
        for answer in answers {
            assert_eq!(answer.unwrap_err().kind, DiskErrorKind::OutOfRange);
        }
        assert_eq!(call(&disk, read(last)).unwrap()[..], [7; BLOCK_BYTES as usize]);
    }
}

#[test]
fn a_request_that_could_not_be_made_durable_fails() {
    let zero = |durable| DiskOp::Zero { offset: 0, bytes: u64::from(BLOCK_BYTES), durable };
    // Longer than the cache: it is written back before the requests that wait with it become
    // durable.
    let data = || vec![7; 8 * BLOCK_BYTES as usize].into();
    let long = || DiskOp::Write { offset: 0, data: data(), durable: true };
    let durable: [&dyn Fn() -> Vec<DiskOp>; 4] = [
        &|| vec![DiskOp::Flush],
        &|| vec![zero(true)],
        &|| vec![zero(true), DiskOp::Flush],
        &|| vec![zero(true), long(), DiskOp::Flush],
    ];
    for (cache_blocks_max, ops) in
        [0, 5].into_iter().flat_map(|cache| durable.map(|ops| (cache, ops)))
    {
        let mut failures = 0;
        loop {
            let (world, disk) = disk(cache_blocks_max);
            call(&disk, zero(false)).unwrap();
            world.plan(&[InjectedFault::FailAt(failures)], &mut StdRng::seed_from_u64(1));
            let answers = together(&disk, ops());
            if world.faults_fired() == 0 {
                break;
            }
            assert!(answers.iter().all(Result::is_err), "operation {failures}: {answers:?}");
            failures += 1;
        }
        assert!(failures > 0, "a flush syncs the log");
    }
}

/// Requests after a failure of the volume get its error at once, not only when the disk is closed.
#[test]
fn later_requests_fail_with_the_error_of_the_volume() {
    for cache_blocks_max in [0, 5] {
        let setup = SmallVolume::default();
        let (world, disk) = disk_of(&setup, cache_blocks_max);
        let read = |block: u64| {
            let offset = block * u64::from(BLOCK_BYTES);
            call(&disk, DiskOp::Read { offset, bytes: BLOCK_BYTES })
        };
        (0..BLOCKS).for_each(|block| drop(read(block).unwrap()));
        places(&setup).for_each(|piece| world.flip_bit(piece.tree, piece.bucket, 0, 0));
        let failed = (0..BLOCKS).find_map(|block| read(block).err()).unwrap();
        let later = call(&disk, DiskOp::Flush).unwrap_err();
        for error in [failed, later] {
            assert_eq!(error.kind, DiskErrorKind::Failed);
            assert_eq!(error.volume_kind(), Some(VolumeErrorKind::Tampered), "{error}");
        }
        let past_the_end = DiskOp::Read { offset: u64::from(DISK_BYTES), bytes: 1 };
        assert_eq!(disk.close().unwrap_err().kind(), VolumeErrorKind::Tampered);
        let closed = call(&disk, past_the_end).unwrap_err();
        assert_eq!((closed.kind, closed.volume_kind()), (DiskErrorKind::Closed, None));
    }
}

#[test]
fn the_store_of_a_disk_that_was_closed_holds_what_was_written() {
    let setup = SmallVolume::default();
    let (world, disk) = disk_of(&setup, 5);
    let data = || WipedBytes::from(&[7; BLOCK_BYTES as usize][..]);
    call(&disk, DiskOp::Write { offset: 0, data: data(), durable: false }).unwrap();
    let store = disk.close_into_store().unwrap();
    assert!(disk.close_into_store().is_err(), "the disk was closed before");
    let volume = setup.open(store, world.dir(), StdRng::seed_from_u64(2)).unwrap().0;
    let disk = Disk::start(volume, &DiskOptions::default()).unwrap();
    let read = DiskOp::Read { offset: 0, bytes: BLOCK_BYTES };
    assert_eq!(call(&disk, read).unwrap()[..], data()[..]);
}

/// If the volume's thread panics, requests in flight, waiting and later ones are answered: with a
/// cache, without one and with a schedule.
#[test]
fn a_panic_of_the_volumes_thread_answers_all_requests_and_closing_says_so() {
    for (kind, closes_at_once) in [(0, false), (1, false), (2, false), (0, true), (1, true)] {
        let (setup, panics) = (SmallVolume::default(), Arc::<AtomicBool>::default());
        let world = setup.world();
        let is_panicking = panics.clone();
        let panic_on_read = move |store: &mut CrashStore, call: &mut Call<'_>| {
            let panics = call.operation == Operation::Read && is_panicking.load(Ordering::Relaxed);
            assert!(!panics, "a panic for this test");
            call.forward(store)
        };
        let store = Faulty::new(world.store(), panic_on_read);
        let volume = setup.create(store, world.dir(), StdRng::seed_from_u64(1)).unwrap();
        let (disk, ticks) = match kind {
            0 => (Disk::start(volume, &DiskOptions::default()).unwrap(), None),
            1 => {
                let options = DiskOptions::default().with_cache_bytes_max(0);
                (Disk::start(volume, &options).unwrap(), None)
            }
            _ => {
                let (disk, ticks) = Disk::start_without_clock(volume, 1 << 20, 1, true).unwrap();
                (disk, Some(ticks))
            }
        };
        assert!(!disk.has_panicked());
        panics.store(true, Ordering::Relaxed);
        let (sender, answers) = channel();
        for block in 0..4 {
            let (sender, offset) = (sender.clone(), block * u64::from(BLOCK_BYTES));
            let done = Box::new(move |answer: Result<_, _>| sender.send(answer.map(drop)).unwrap());
            disk.submit(Request { op: DiskOp::Read { offset, bytes: BLOCK_BYTES }, done });
        }
        if let Some(ticks) = ticks {
            ticks.tick();
        }
        if closes_at_once {
            assert_eq!(disk.close().unwrap_err().kind(), VolumeErrorKind::MustReopen);
        }
        for _ in 0..4 {
            let answer = answers.recv_timeout(Duration::from_secs(60)).expect("an answer");
            let error = answer.unwrap_err();
            assert_eq!(error.volume_kind(), Some(VolumeErrorKind::MustReopen), "{error}");
            assert!(error.to_string().contains("panicked"), "{error}");
        }
        if !closes_at_once {
            let late = call(&disk, DiskOp::Flush).unwrap_err();
            assert_eq!(late.kind, DiskErrorKind::Failed, "{late}");
            assert!(disk.failure().is_some_and(|it| it.contains("panicked")));
            assert_eq!(disk.close().unwrap_err().kind(), VolumeErrorKind::MustReopen);
        }
        assert!(disk.has_panicked());
    }
}

fn read_at(op: &DiskOp) -> Option<u64> {
    if let DiskOp::Read { offset, .. } = op { Some(*offset) } else { None }
}

fn disk(cache_blocks_max: u64) -> (World, Disk) {
    disk_of(&SmallVolume::default(), cache_blocks_max)
}

fn disk_of(setup: &SmallVolume, cache_blocks_max: u64) -> (World, Disk) {
    let world = setup.world();
    let volume = setup.create(world.store(), world.dir(), StdRng::seed_from_u64(1)).unwrap();
    let cache_bytes_max = cache_blocks_max * u64::from(BLOCK_BYTES);
    (
        world,
        Disk::start(volume, &DiskOptions::default().with_cache_bytes_max(cache_bytes_max)).unwrap(),
    )
}

/// The number of accesses that storage sees during `work`.
fn accesses(world: &World, work: impl FnOnce()) -> u64 {
    let paths = |operation| {
        let mut trips: Vec<_> = world
            .view()
            .iter()
            .filter_map(|seen| match seen {
                StoreEvent::Event(event) => Some(*event),
                StoreEvent::Crash => None,
            })
            .filter(|event| event.operation == operation)
            .filter(|event| event.piece.is_some_and(|piece| piece.tree.0 == 2))
            .map(|event| event.trip)
            .collect();
        trips.dedup();
        trips.len() as u64
    };
    let [read, written] = [Operation::Read, Operation::Write].map(paths);
    work();
    // An eviction reads its path before writing it.
    let evictions = paths(Operation::Write) - written;
    let accesses = paths(Operation::Read) - read - evictions;
    assert!(accesses.abs_diff(evictions * u64::from(EVICT_PERIOD)) < u64::from(EVICT_PERIOD));
    accesses
}
