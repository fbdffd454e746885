//! Volumes of rORAM, whose accesses can read a range of blocks (scheme `range`).

use oblivio_testkit::crash::small_volume::{Device, SmallScheme, SmallVolume};
use oblivio_volume::SyncMoves;

use super::{Setup, local, remote, scheduled};

pub(super) fn setups(common: SmallVolume) -> Vec<Setup> {
    vec![
        local("range", SmallVolume { scheme: SmallScheme::Range { class: 3 }, ..common }),
        local(
            "range-striped",
            SmallVolume { scheme: SmallScheme::Range { class: 3 }, disks: 3, ..common },
        ),
        local(
            "range-raw-at-flush",
            SmallVolume {
                scheme: SmallScheme::Range { class: 2 },
                device: Device::Raw,
                sync_moves: SyncMoves::AtFlush,
                ..common
            },
        ),
        local(
            "range-scheduled",
            SmallVolume {
                scheme: SmallScheme::Range { class: 1 },
                device: scheduled(6, 3),
                state_file_bytes_max: 0,
                ..common
            },
        ),
        local(
            "range-at-flush",
            SmallVolume {
                scheme: SmallScheme::Range { class: 3 },
                device: Device::Disk { cache_blocks_max: 24 },
                sync_moves: SyncMoves::AtFlush,
                tree_top_levels: 3,
                ..common
            },
        ),
        local(
            "range-fixed",
            SmallVolume {
                scheme: SmallScheme::FixedRange { class: 2 },
                device: Device::Disk { cache_blocks_max: 6 },
                ..common
            },
        ),
        local(
            "range-fixed-scheduled",
            SmallVolume {
                scheme: SmallScheme::FixedRange { class: 2 },
                device: scheduled(6, 3),
                state_file_bytes_max: 0,
                ..common
            },
        ),
        local(
            "range-exact",
            SmallVolume {
                scheme: SmallScheme::ExactRange { between: 1, class: 2 },
                device: Device::Disk { cache_blocks_max: 6 },
                ..common
            },
        ),
        remote("remote-range", SmallVolume { scheme: SmallScheme::Range { class: 3 }, ..common }),
    ]
}
