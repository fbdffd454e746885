//! Volumes of the trivial ORAM (scheme `scan`).

use oblivio_testkit::crash::small_volume::{Device, SmallScheme, SmallVolume};
use oblivio_volume::SyncMoves;

use super::{Setup, local, scheduled};

pub(super) fn setups(common: SmallVolume) -> Vec<Setup> {
    vec![
        local("scan", SmallVolume { scheme: SmallScheme::Scan { spare: 12 }, ..common }),
        local(
            "scan-raw-at-flush",
            SmallVolume {
                scheme: SmallScheme::Scan { spare: 1 },
                device: Device::Raw,
                sync_moves: SyncMoves::AtFlush,
                ..common
            },
        ),
        local(
            "scan-scheduled",
            SmallVolume {
                scheme: SmallScheme::Scan { spare: 40 },
                device: scheduled(6, 3),
                state_file_bytes_max: 0,
                ..common
            },
        ),
    ]
}
