//! Reads that are begun before those before them are over.

use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::Survival;
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, SmallScheme, SmallVolume};
use oblivio_volume::{Volume, VolumeError, VolumeErrorKind};

use crate::support::bench::Bench;

fn write(volume: &mut Volume, address: u64, fill: u8) -> Result<(), VolumeError> {
    let data = [fill; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Write(&data) }])
}

/// The first byte of each block of the window that was begun first.
fn finish(volume: &mut Volume, blocks: usize) -> Result<Vec<u8>, VolumeError> {
    let mut data: Vec<_> = (0..blocks).map(|_| WipedBytes::zeros(BLOCK_BYTES as usize)).collect();
    volume.finish_reads(&mut data)?;
    Ok(data.iter().map(|block| block[0]).collect())
}

#[test]
fn windows_are_read_in_the_order_in_which_they_were_begun() {
    for scheme in SmallScheme::EACH {
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

/// A clean end makes the accesses that the log names; a crash leaves them to the next opening.
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
    is_refused(volume.forget(0..1));
    is_refused(volume.check(&mut |_| ()).map(drop));
    finish(&mut volume, 2).unwrap();
    write(&mut volume, 1, 1).unwrap();
    // Positions in the tree may move before it is their turn.
    let mut bench = Bench::new(SmallVolume::default().with_map_in_tree(), 1);
    let (volume, _) = bench.open().unwrap();
    assert_eq!(volume.reads_to_begin_max().unwrap(), 0);
}
