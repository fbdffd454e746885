//! Volumes of RAW ORAM, with each kind of device, on the client's machine and on a bucket server.

use oblivio_testkit::crash::FailedSync;
use oblivio_testkit::crash::small_volume::{Device, SmallVolume};
use oblivio_volume::SyncMoves;

use super::{Setup, local, objects, remote, scheduled};

pub(super) fn setups(common: SmallVolume) -> Vec<Setup> {
    vec![
        local("sync-before-reads", common),
        local("sync-at-flush", SmallVolume { sync_moves: SyncMoves::AtFlush, ..common }),
        local("failed-sync-retains", SmallVolume { failed_sync: FailedSync::Retains, ..common }),
        local(
            "at-flush-retains",
            SmallVolume {
                sync_moves: SyncMoves::AtFlush,
                failed_sync: FailedSync::Retains,
                ..common
            },
        ),
        local("checkpoint-each-eviction", SmallVolume { tree_top_levels: 0, ..common }),
        local("rare-checkpoints", SmallVolume { tree_top_levels: 4, ..common }),
        local("files-rotate", SmallVolume { state_file_bytes_max: 0, ..common }),
        local(
            "files-never-rotate",
            SmallVolume { state_file_bytes_max: u64::MAX / 4, tree_top_levels: 1, ..common },
        ),
        local(
            "cache-of-one-block",
            SmallVolume { device: Device::Disk { cache_blocks_max: 1 }, ..common },
        ),
        local(
            "disk-without-cache",
            SmallVolume { device: Device::Disk { cache_blocks_max: 0 }, ..common },
        ),
        local(
            "disk-without-cache-at-flush",
            SmallVolume {
                device: Device::Disk { cache_blocks_max: 0 },
                sync_moves: SyncMoves::AtFlush,
                ..common
            },
        ),
        local("scheduled", SmallVolume { device: scheduled(8, 5), ..common }),
        local(
            "scheduled-one-by-one",
            SmallVolume {
                device: scheduled(1, 1),
                sync_moves: SyncMoves::AtFlush,
                state_file_bytes_max: 0,
                ..common
            },
        ),
        local("raw", SmallVolume { device: Device::Raw, ..common }),
        local(
            "raw-at-flush",
            SmallVolume { device: Device::Raw, sync_moves: SyncMoves::AtFlush, ..common },
        ),
        local("map-in-tree", common.with_map_in_tree()),
        local(
            "map-in-tree-raw",
            SmallVolume { device: Device::Raw, tree_top_levels: 0, ..common.with_map_in_tree() },
        ),
        local(
            "map-in-tree-at-flush",
            SmallVolume {
                sync_moves: SyncMoves::AtFlush,
                state_file_bytes_max: 0,
                leaf_slots: Some(5),
                ..common.with_map_in_tree()
            },
        ),
        local(
            "map-in-tree-scheduled",
            SmallVolume { device: scheduled(6, 3), ..common.with_map_in_tree() },
        ),
        local("served-in-place", SmallVolume { tree_top_ways: 2, ..common }),
        local(
            "served-in-place-raw",
            SmallVolume {
                device: Device::Raw,
                sync_moves: SyncMoves::AtFlush,
                tree_top_ways: 1,
                ..common
            },
        ),
        local(
            "everything-at-once",
            SmallVolume {
                device: scheduled(6, 4),
                tree_top_ways: 4,
                leaf_slots: Some(5),
                ..common.with_map_in_tree()
            },
        ),
        remote("remote", common),
        remote(
            "remote-at-flush",
            SmallVolume { sync_moves: SyncMoves::AtFlush, tree_top_levels: 3, ..common },
        ),
        remote(
            "remote-without-cache",
            SmallVolume { device: Device::Disk { cache_blocks_max: 0 }, ..common },
        ),
        remote("remote-map-in-tree", common.with_map_in_tree()),
        remote("remote-fixed-rate", SmallVolume { device: scheduled(8, 5), ..common }),
        objects("objects", false, common),
        objects(
            "objects-at-flush",
            false,
            SmallVolume { sync_moves: SyncMoves::AtFlush, tree_top_levels: 3, ..common },
        ),
        objects("objects-map-in-tree", false, common.with_map_in_tree()),
        objects("objects-redis", true, common),
        local(
            "small-stash",
            SmallVolume { stash_blocks_max: 3, sync_moves: SyncMoves::AtFlush, ..common },
        ),
    ]
}
