//! The contents of requests, and operations that make no access: storage sees neither.

use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_volume::device::{DiskOp, call};
use oblivio_volume::{Disk, DiskOptions, SyncMoves, Volume};

use crate::support::bench::{Bench, read};
use crate::support::seen::{StorageCall, assert_alike, looks};

/// The calls that storage sees while `used` uses a volume.
fn look(setup: SmallVolume, used: impl Fn(&mut Volume)) -> Vec<StorageCall> {
    let mut bench = Bench::new(setup, 1);
    let (mut volume, _) = bench.open().unwrap();
    used(&mut volume);
    looks(&bench.world.view())
}

#[test]
fn flushes_of_a_volume_are_not_seen() {
    for sync_moves in [SyncMoves::BeforeReads, SyncMoves::AtFlush] {
        let setup = SmallVolume { sync_moves, ..SmallVolume::default() };
        let views = [false, true].map(|flushes| {
            look(setup, |volume| {
                for request in 0..60 {
                    read(volume, request % 7).unwrap();
                    if flushes {
                        volume.flush().unwrap();
                    }
                }
            })
        });
        assert_alike(&views, &format!("{sync_moves:?}"));
    }
}

#[test]
fn trims_of_a_volume_are_not_seen() {
    let setup = SmallVolume { state_file_bytes_max: 1 << 20, ..SmallVolume::default() };
    let views = [false, true].map(|trims| {
        look(setup, |volume| {
            for request in 0..60 {
                let data = [1; BLOCK_BYTES as usize];
                let address = request % 7;
                volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
                if trims {
                    volume.forget(address..address + 1).unwrap();
                }
            }
        })
    });
    assert_alike(&views, "trims");
}

/// Storage sees the same calls, including announcements, whether the blocks of a batch were ever
/// written or not.
#[test]
fn batches_look_alike_whether_their_blocks_were_ever_written() {
    let views = [false, true].map(|are_written| {
        look(SmallVolume::default(), |volume| {
            for first in (0..60).step_by(5) {
                let mut blocks = [[0; BLOCK_BYTES as usize]; 5];
                let addresses = if are_written { 0..5 } else { first..first + 5 };
                let data = [1; BLOCK_BYTES as usize];
                let batch = addresses.clone().zip(&mut blocks).map(|(address, block)| {
                    let op = if are_written { Op::Write(&data) } else { Op::Read(block) };
                    Access { address, op }
                });
                volume.access(&mut batch.collect::<Vec<_>>()).unwrap();
            }
        })
    });
    assert_alike(&views, "never written, and written over and over");
}

#[test]
fn closings_look_alike_whatever_is_on_the_client() {
    // Three numbers in a row: each possible number of accesses since the last eviction occurs.
    for requests in 60..63 {
        let views = [false, true].map(|are_writes| {
            let mut bench = Bench::new(SmallVolume::default(), 1);
            let (mut volume, _) = bench.open().unwrap();
            for request in 0..requests {
                let data = [1; BLOCK_BYTES as usize];
                if are_writes {
                    volume
                        .access(&mut [Access { address: request, op: Op::Write(&data) }])
                        .unwrap();
                } else {
                    read(&mut volume, 7).unwrap();
                }
            }
            volume.close().unwrap();
            looks(&bench.world.view())
        });
        assert_alike(&views, &format!("{requests} reads of one block, and writes to many"));
    }
}

/// Storage sees the same calls whatever is written, although the cache could compare it with the
/// current contents.
#[test]
fn writes_to_a_disk_look_alike_whatever_they_write() {
    let fills: [fn(u64) -> u8; 3] = [|_| 0, |_| 7, |request| request as u8];
    let views = fills.map(|fill| {
        let mut bench = Bench::new(SmallVolume::default(), 1);
        let (volume, _) = bench.open().unwrap();
        let cache_bytes_max = 4 * u64::from(BLOCK_BYTES);
        let options = DiskOptions::default().with_cache_bytes_max(cache_bytes_max);
        let disk = Disk::start(volume, &options).unwrap();
        for request in 0..60 {
            let data = vec![fill(request); BLOCK_BYTES as usize];
            let offset = request % 3 * u64::from(BLOCK_BYTES);
            // Durable, so that no write-back is left for when the disk is idle.
            call(&disk, DiskOp::Write { offset, data: data.into(), durable: true }).unwrap();
        }
        disk.close().unwrap();
        looks(&bench.world.view())
    });
    let [zeros, same, other] = views;
    assert_alike(&[other.clone(), zeros], "zeros");
    assert_alike(&[other, same], "the data that is there already");
}
