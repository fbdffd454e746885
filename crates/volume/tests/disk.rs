//! A disk asks storage for no block twice, however small its cache is.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use oblivio_core::view::Operation;
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, EVICT_PERIOD, SmallVolume};
use oblivio_testkit::crash::{Seen, World};
use oblivio_volume::device::{DiskOp, call};
use oblivio_volume::{Disk, DiskOptions};
use rand::SeedableRng;
use rand::rngs::StdRng;

const DISK_BYTES: u32 = BLOCKS as u32 * BLOCK_BYTES;

#[test]
fn a_request_longer_than_the_cache_makes_an_access_a_block() {
    let (world, disk) = disk(1);
    let data: Vec<u8> = (0..DISK_BYTES).map(|i| (i * 7 + i / 251) as u8).collect();
    let write = DiskOp::Write { offset: 0, data: data.clone().into(), durable: true };
    assert_eq!(accesses(&world, || assert_eq!(call(&disk, write).unwrap(), [])), BLOCKS);
    let read = DiskOp::Read { offset: 0, bytes: DISK_BYTES };
    // One of them is the one that the cache holds.
    let read = accesses(&world, || assert_eq!(call(&disk, read).unwrap(), data));
    assert_eq!(read, BLOCKS - 1);
}

#[test]
fn what_is_in_the_cache_makes_no_access_and_zeros_make_none() {
    let (world, disk) = disk(BLOCKS);
    let write = |fill| DiskOp::Write { offset: 100, data: vec![fill; 1000].into(), durable: false };
    // The first and the last of three blocks are read, because only parts of them are written.
    assert_eq!(accesses(&world, || drop(call(&disk, write(1)).unwrap())), 2);
    assert_eq!(accesses(&world, || drop(call(&disk, write(2)).unwrap())), 0);
    let zero = DiskOp::Zero { offset: 0, bytes: DISK_BYTES.into(), durable: true };
    assert_eq!(accesses(&world, || drop(call(&disk, zero).unwrap())), 0);
    let read = DiskOp::Read { offset: 0, bytes: BLOCK_BYTES };
    assert_eq!(call(&disk, read).unwrap(), [0; BLOCK_BYTES as usize]);
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
            assert_eq!(call(&disk, read()).unwrap(), [n; BLOCK_BYTES as usize]);
        });
        assert_eq!(read, 1, "read {n}");
    }
}

fn disk(cache_blocks_max: u64) -> (World, Disk) {
    let setup = SmallVolume::default();
    let world = setup.world();
    let volume = setup.create(world.store(), world.dir(), StdRng::seed_from_u64(1)).unwrap();
    let cache_bytes_max = cache_blocks_max * u64::from(BLOCK_BYTES);
    (
        world,
        Disk::start(volume, &DiskOptions { cache_bytes_max, ..DiskOptions::default() }).unwrap(),
    )
}

/// How many accesses storage sees while `work` is done.
fn accesses(world: &World, work: impl FnOnce()) -> u64 {
    let paths = |operation| {
        let mut trips: Vec<_> = world
            .view()
            .iter()
            .filter_map(|seen| match seen {
                Seen::Event(event) => Some(*event),
                Seen::Crash => None,
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
    // An eviction reads its path before it writes it.
    let evictions = paths(Operation::Write) - written;
    let accesses = paths(Operation::Read) - read - evictions;
    assert!(accesses.abs_diff(evictions * u64::from(EVICT_PERIOD)) < u64::from(EVICT_PERIOD));
    accesses
}
