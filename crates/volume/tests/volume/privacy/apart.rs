//! Storage and the client's directory are on two machines. One of them keeps data that the other
//! loses.

use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_testkit::crash::{InjectedFault, Survival};

use crate::support::bench::Bench;

/// Everything that storage sees was durable in the directory before. Otherwise the volume would be
/// taken for one whose directory was rolled back.
#[test]
fn storage_never_knows_more_than_a_directory_that_lost_its_power() {
    // State files that fill up soon, and large ones.
    for state_file_bytes_max in [0, 1 << 20] {
        let setup = SmallVolume { state_file_bytes_max, ..SmallVolume::default() };
        for crash_at in 0..150 {
            let mut bench = Bench::new(setup, crash_at);
            bench.world.plan(&[InjectedFault::CrashAt(crash_at)], &mut bench.coins);
            if let Ok((mut volume, _)) = bench.open() {
                let mut write = |address| {
                    let data = [1; BLOCK_BYTES as usize];
                    volume.access(&mut [Access { address, op: Op::Write(&data) }])
                };
                while (0..setup.blocks).try_for_each(&mut write).is_ok() {}
            }
            bench.world.crash_apart(&mut bench.coins, Survival::All, Survival::None);
            let opened = bench.open().map(|_| ());
            assert!(opened.is_ok(), "crash at {crash_at}, {state_file_bytes_max}: {opened:?}");
        }
    }
}
