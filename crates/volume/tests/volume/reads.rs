//! Reads that begin before earlier ones have finished.

use std::collections::BTreeMap;

use oblivio_core::view::Operation;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, SmallScheme, SmallVolume};
use oblivio_testkit::crash::{StoreEvent, Survival};
use oblivio_volume::{Volume, VolumeError, VolumeErrorKind};

use crate::support::bench::{Bench, write};
use crate::support::seen::{DATA_TREE, assert_alike, looks};

/// Reads the oldest begun window. Returns the first byte of each of its blocks.
fn finish(volume: &mut Volume, blocks: usize) -> Result<Vec<u8>, VolumeError> {
    let mut data: Vec<_> = (0..blocks).map(|_| WipedBytes::zeros(BLOCK_BYTES as usize)).collect();
    volume.finish_reads(&mut data)?;
    Ok(data.iter().map(|block| block[0]).collect())
}

#[test]
fn windows_are_read_in_the_order_in_which_they_were_begun() {
    for scheme in SmallScheme::each() {
        let mut bench = Bench::new(SmallVolume { scheme, ..SmallVolume::default() }, 1);
        let (mut volume, _) = bench.open().unwrap();
        for round in 0..50 {
            (1..=3).for_each(|block| write(&mut volume, block, block as u8 + round).unwrap());
            if volume.reads_to_begin_max().unwrap() < 6 {
                continue;
            }
            volume.begin_reads(&[&[1, 2], &[2]]).unwrap();
            volume.begin_reads(&[&[3, 1, 3]]).unwrap();
            assert_eq!(finish(&mut volume, 2).unwrap(), [1 + round, 2 + round]);
            volume.flush().unwrap();
            assert_eq!(finish(&mut volume, 1).unwrap(), [2 + round]);
            assert_eq!(finish(&mut volume, 3).unwrap(), [3 + round, 1 + round, 3 + round]);
        }
        volume.check(&mut |_| ()).unwrap();
    }
}

/// Closing the volume makes the accesses that were begun. After a crash, the next opening makes
/// them.
#[test]
fn a_volume_ends_well_with_reads_that_were_begun() {
    for is_closed in [true, false] {
        let mut bench = Bench::new(SmallVolume::default(), 1);
        let (mut volume, _) = bench.open().unwrap();
        (0..9).for_each(|block| write(&mut volume, block, 7).unwrap());
        while volume.reads_to_begin_max().unwrap() < 4 {
            write(&mut volume, 0, 7).unwrap();
        }
        volume.begin_reads(&[&[1, 2], &[2, 3]]).unwrap();
        finish(&mut volume, 2).unwrap();
        if is_closed {
            volume.close().unwrap();
        } else {
            volume.flush().unwrap();
            bench.world.crash(&mut bench.coins, Survival::None);
            drop(volume);
        }
        let (mut volume, recovery) = bench.open().unwrap();
        assert_eq!((recovery.was_needed, recovery.accesses > 0), (!is_closed, !is_closed));
        volume.check(&mut |_| ()).unwrap();
        for block in 0..9 {
            let mut data = [0; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address: block, op: Op::Read(&mut data) }]).unwrap();
            assert_eq!(data, [7; BLOCK_BYTES as usize]);
        }
    }
}

#[test]
fn what_cannot_be_begun_or_finished_is_refused_and_breaks_nothing() {
    let mut bench = Bench::new(SmallVolume::default(), 1);
    let (mut volume, _) = bench.open().unwrap();
    let is_refused = |outcome: Result<(), VolumeError>| {
        assert_eq!(outcome.unwrap_err().kind(), VolumeErrorKind::InvalidRequest);
    };
    is_refused(finish(&mut volume, 1).map(drop));
    is_refused(volume.begin_reads(&[&[BLOCKS]]));
    is_refused(volume.begin_reads(&[&[1], &[]]));
    let too_many = vec![0; volume.reads_to_begin_max().unwrap() + 1];
    is_refused(volume.begin_reads(&[&too_many]));
    volume.begin_reads(&[&[1, 2]]).unwrap();
    is_refused(finish(&mut volume, 1).map(drop));
    is_refused(volume.finish_reads(&mut [WipedBytes::zeros(1), WipedBytes::zeros(1)]));
    is_refused(write(&mut volume, 1, 1));
    is_refused(volume.check(&mut |_| ()).map(drop));
    finish(&mut volume, 2).unwrap();
    write(&mut volume, 1, 1).unwrap();
    // Positions in the tree may change before their turn.
    let mut bench = Bench::new(SmallVolume::default().with_map_in_tree(), 1);
    let (mut volume, _) = bench.open().unwrap();
    assert_eq!(volume.reads_to_begin_max().unwrap(), 0);
}

/// Reads that begin before a block is forgotten return its old contents. Reads that begin later,
/// and reads after a recovery, return zeros.
#[test]
fn blocks_can_be_forgotten_while_they_are_read() {
    for scheme in SmallScheme::each() {
        for is_crashed in [false, true] {
            let setup = SmallVolume { scheme, ..SmallVolume::default() };
            let mut bench = Bench::new(setup, 1);
            let (mut volume, _) = bench.open().unwrap();
            (1..=3).for_each(|block| write(&mut volume, block, 7).unwrap());
            while volume.reads_to_begin_max().unwrap() < 6 {
                write(&mut volume, 0, 7).unwrap();
            }
            volume.begin_reads(&[&[1, 2], &[2]]).unwrap();
            volume.forget(2..3).unwrap();
            volume.begin_reads(&[&[2, 3]]).unwrap();
            volume.flush().unwrap();
            assert_eq!(finish(&mut volume, 2).unwrap(), [7, 7]);
            if is_crashed {
                bench.world.crash(&mut bench.coins, Survival::None);
                drop(volume);
                (volume, _) = bench.open().unwrap();
            } else {
                assert_eq!(finish(&mut volume, 1).unwrap(), [7]);
                assert_eq!(finish(&mut volume, 2).unwrap(), [0, 7]);
            }
            volume.check(&mut |_| ()).unwrap();
            for (block, fill) in [(1, 7), (2, 0), (3, 7)] {
                let mut data = [1; BLOCK_BYTES as usize];
                volume.access(&mut [Access { address: block, op: Op::Read(&mut data) }]).unwrap();
                assert_eq!(data, [fill; BLOCK_BYTES as usize], "{setup:?} {is_crashed} {block}");
            }
        }
    }
}

/// If the stash is over its bound, fewer reads may begin than the counts allow. Then an eviction
/// ahead of schedule comes, even if the begun reads have reduced the stash meanwhile: storage
/// learns only what ADR 4 allows.
#[test]
fn reads_are_put_off_only_with_an_eviction_ahead_of_its_time() {
    let (mut put_off, mut in_time) = (0, 0);
    for seed in 0..20 {
        let setup = SmallVolume { stash_blocks_max: 3, slots: 2, ..SmallVolume::default() };
        let mut bench = Bench::new(setup, seed);
        let (mut volume, _) = bench.open().unwrap();
        (0..BLOCKS).for_each(|block| write(&mut volume, block, 1).unwrap());
        for step in 0..200 {
            let block = |i: u64| (seed * 7 + step * 13 + i * 5) % BLOCKS;
            let room = volume.reads_to_begin_max().unwrap();
            if room > 4 {
                volume.begin_reads(&[&[block(0), block(1)], &[block(2), block(3)]]).unwrap();
                finish(&mut volume, 2).unwrap();
                let left = volume.reads_to_begin_max().unwrap();
                finish(&mut volume, 2).unwrap();
                // A second call with a smaller stash changes nothing.
                volume.reads_to_begin_max().unwrap();
                bench.world.take_view();
                write(&mut volume, block(4), 1).unwrap();
                if left == room - 4 {
                    in_time += 1;
                } else {
                    assert_eq!((left, begins_with_an_eviction(&bench)), (0, true));
                    put_off += 1;
                }
            } else {
                write(&mut volume, block(4), 1).unwrap();
            }
        }
    }
    assert!(put_off > 20 && in_time > 20, "{put_off} and {in_time}");
}

/// Whether an eviction comes first: it reads a path and writes it. After an access, another path
/// would be read first.
fn begins_with_an_eviction(bench: &Bench) -> bool {
    let view = bench.world.take_view();
    let mut trips = BTreeMap::new();
    for seen in view {
        if let StoreEvent::Event(event) = seen
            && event.operation != Operation::Prefetch
            && event.piece.is_some_and(|piece| piece.tree == DATA_TREE)
        {
            trips.insert(event.trip, event.operation);
        }
    }
    trips.into_values().take(2).eq([Operation::Read, Operation::Write])
}

/// Begun windows cause the same calls to storage, including announcements, whatever the stash
/// holds.
#[test]
fn windows_that_are_begun_look_alike_whatever_is_in_the_stash() {
    let views = [true, false].map(|is_written| {
        let small = SmallVolume { slots: 2, tree_top_levels: 4, ..SmallVolume::default() };
        let mut bench = Bench::new(small, 1);
        let (mut volume, _) = bench.open().unwrap();
        for block in 0..15 {
            if is_written {
                write(&mut volume, block, 1).unwrap();
            } else {
                let mut data = vec![0; BLOCK_BYTES as usize];
                let read = Access { address: block, op: Op::Read(&mut data) };
                volume.access(&mut [read]).unwrap();
            }
        }
        bench.world.take_view();
        for first in [0, 8] {
            let window: Vec<u64> = (first..first + 8).collect();
            volume.begin_reads(&[&window[..3], &window[3..7], &window[7..]]).unwrap();
            volume.begin_reads(&[&window[..5]]).unwrap();
            for blocks in [3, 4, 1, 5] {
                finish(&mut volume, blocks).unwrap();
            }
        }
        looks(&bench.world.take_view())
    });
    assert!(views[0].iter().any(|call| call.iter().any(|look| look.1 == Operation::Prefetch)));
    assert_alike(&views, "with blocks on the client, or without");
}
