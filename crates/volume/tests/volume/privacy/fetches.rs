//! Accesses that fetch blocks of the position map: storage sees the number of accesses, but not
//! which of them are fetches.

use oblivio_core::view::Operation;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_testkit::crash::{InjectedFault, Survival};
use oblivio_volume::{SyncMoves, Volume, VolumeError};

use crate::support::bench::{Bench, read};
use crate::support::seen::{StorageCall, assert_alike, looks};

/// Level of the leaves. There are enough leaves that few repeat by chance.
const LEAF_LEVEL: u8 = 10;

/// Maximum number of equal pairs by chance among about a hundred pairs of leaves.
const EQUAL_BY_CHANCE_MAX: usize = 2;

const REQUESTS: u64 = 120;

/// Maps the number of a request to an address. One block of the position map covers all of these
/// addresses.
const NEAR: fn(u64) -> u64 = |request| request % 16;

/// Maps the number of a request to an address, so far apart that each position has left the client
/// before its next use.
const FAR: fn(u64) -> u64 = |request| request * 130 % 700;

fn volume() -> SmallVolume {
    let in_tree = SmallVolume::default().with_map_in_tree();
    SmallVolume { leaf_level: LEAF_LEVEL, ..in_tree }
}

#[test]
fn workloads_that_need_more_of_them_show_more_of_the_same_trips() {
    for sync_moves in [SyncMoves::BeforeReads, SyncMoves::AtFlush] {
        for batch in [1, 6] {
            let setup = SmallVolume { sync_moves, ..volume() };
            let [near, far] = [NEAR, FAR].map(|address_of| {
                let mut bench = Bench::new(setup, 1);
                let (mut volume, _) = bench.open().unwrap();
                let requests: Vec<_> = (0..REQUESTS).map(address_of).collect();
                for (i, addresses) in requests.chunks(batch).enumerate() {
                    read_together(&mut volume, addresses).unwrap();
                    if i % 4 == 0 {
                        volume.flush().unwrap();
                    }
                }
                let looks = looks(&bench.world.view());
                // Storage sees where a batch begins, and blocks of the map have batches of their
                // own.
                if batch == 1 { looks } else { without_announcements(&looks) }
            });
            assert!(
                far.len() > near.len() * 3 / 2,
                "far requests need more accesses: {}",
                far.len()
            );
            let beginning = far[..near.len()].to_vec();
            assert_alike(&[near, beginning], &format!("{sync_moves:?}, {batch} together"));
        }
    }
}

/// After a crash and recovery, no access shows a leaf that a fetch has shown before the crash,
/// whether the fetched block was used or not.
#[test]
fn a_leaf_that_one_has_shown_is_never_shown_again_after_a_crash() {
    let mut equal = 0;
    for crash_at in (0..240).step_by(2) {
        let mut bench = Bench::new(volume(), crash_at);
        bench.world.plan(&[InjectedFault::CrashAt(crash_at)], &mut bench.coins);
        let mut answered = 0;
        if let Ok((mut volume, _)) = bench.open() {
            while read(&mut volume, FAR(answered)).is_ok() {
                answered += 1;
            }
        }
        assert!(bench.world.is_off());
        bench.world.crash(&mut bench.coins, Survival::None);
        let shown = bench.leaves();
        let (mut volume, _) = bench.open().unwrap();
        let repeated = bench.leaves().len();
        // A path at the very end might be taken for an eviction: one more access follows.
        (answered..answered + 2).try_for_each(|request| read(&mut volume, FAR(request))).unwrap();
        equal += usize::from(bench.leaves()[repeated] == *shown.last().unwrap());
    }
    assert!(equal <= EQUAL_BY_CHANCE_MAX, "{equal}");
}

fn read_together(volume: &mut Volume, addresses: &[u64]) -> Result<(), VolumeError> {
    let mut blocks = vec![[0; BLOCK_BYTES as usize]; addresses.len()];
    let accesses = addresses.iter().zip(&mut blocks);
    let accesses =
        accesses.map(|(address, block)| Access { address: *address, op: Op::Read(block) });
    volume.access(&mut accesses.collect::<Vec<_>>())
}

/// What storage saw, without announcements, and with trips renumbered from 0.
fn without_announcements(looks: &[StorageCall]) -> Vec<StorageCall> {
    let rest = looks.iter().flatten().filter(|look| look.1 != Operation::Prefetch);
    let mut trip = None;
    let mut trips = 0;
    let numbered = rest.map(|(old, operation, place, bytes)| {
        if trip.replace(*old) != Some(*old) {
            trips += 1;
        }
        Some((trips - 1, *operation, *place, *bytes))
    });
    numbered.collect()
}
