//! The volumes that are tried.

use oblivio_testkit::crash::small_volume::{Device, SmallScheme, SmallVolume};
use oblivio_testkit::crash::{FailedSync, Life, Loss, Ran};
use oblivio_volume::SyncMoves;

use crate::remote::Remote;
use crate::shares::{OnSilence, Servers};

/// A volume with a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) volume: SmallVolume,
    pub(crate) storage: Storage,
}

/// Where the blocks of a volume are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// On the machine of the client.
    Local,
    /// On a bucket server.
    Remote,
    /// On so many share servers.
    Shared { servers: u8, on_silence: OnSilence },
}

impl Setup {
    /// With the coins of this seed, a volume lives through `lives`.
    pub(crate) fn run(&self, seed: u64, lives: &[Life]) -> Result<Ran, Loss> {
        let volume = SmallVolume { seed, ..self.volume };
        match self.storage {
            Storage::Local => volume.run(lives),
            Storage::Remote => {
                let server = Remote::new(seed);
                volume.run_over(lives, |store| server.reach(&store, &volume.shapes()))
            }
            Storage::Shared { servers, on_silence } => {
                let servers = Servers::new(seed, servers, on_silence);
                let ran = volume.run_over(lives, |store| Ok(servers.reach(store)))?;
                servers.check()?;
                Ok(ran)
            }
        }
    }
}

/// Accesses take longer where servers compute: there are fewer.
fn shared(name: &'static str, servers: u8, on_silence: OnSilence, volume: SmallVolume) -> Setup {
    let scheme = SmallScheme::Shares { servers, has_map_in_trees: false };
    let volume = SmallVolume { scheme, steps: 20, blocks: 24, ..volume };
    Setup { name, volume, storage: Storage::Shared { servers, on_silence } }
}

/// The same with its position map in a tree of its own.
fn recursive(name: &'static str, on_silence: OnSilence, volume: SmallVolume) -> Setup {
    let setup = shared(name, 3, on_silence, volume);
    let scheme = SmallScheme::Shares { servers: 3, has_map_in_trees: true };
    Setup { volume: SmallVolume { scheme, ..setup.volume }, ..setup }
}

fn scheduled(cache_blocks_max: u64, accesses: usize) -> Device {
    Device::Scheduled { cache_blocks_max, accesses }
}

/// All of them. Each differs from the first in what its name says.
pub(crate) fn setups() -> Vec<Setup> {
    let common = SmallVolume { steps: 60, ..SmallVolume::default() };
    let setup = |name, volume| Setup { name, volume, storage: Storage::Local };
    let remote = |name, volume| Setup { name, volume, storage: Storage::Remote };
    let raw = SmallVolume { device: Device::Raw, state_file_bytes_max: 0, ..common };
    let fixed_rate = SmallVolume { device: scheduled(6, 3), ..common };
    vec![
        setup("sync-before-reads", common),
        setup("sync-at-flush", SmallVolume { sync_moves: SyncMoves::AtFlush, ..common }),
        setup("failed-sync-retains", SmallVolume { failed_sync: FailedSync::Retains, ..common }),
        setup(
            "at-flush-retains",
            SmallVolume {
                sync_moves: SyncMoves::AtFlush,
                failed_sync: FailedSync::Retains,
                ..common
            },
        ),
        setup("checkpoint-each-eviction", SmallVolume { tree_top_levels: 0, ..common }),
        setup("rare-checkpoints", SmallVolume { tree_top_levels: 4, ..common }),
        setup("files-rotate", SmallVolume { state_file_bytes_max: 0, ..common }),
        setup(
            "files-never-rotate",
            SmallVolume { state_file_bytes_max: u64::MAX / 4, tree_top_levels: 1, ..common },
        ),
        setup(
            "cache-of-one-block",
            SmallVolume { device: Device::Disk { cache_blocks_max: 1 }, ..common },
        ),
        setup(
            "disk-without-cache",
            SmallVolume { device: Device::Disk { cache_blocks_max: 0 }, ..common },
        ),
        setup(
            "disk-without-cache-at-flush",
            SmallVolume {
                device: Device::Disk { cache_blocks_max: 0 },
                sync_moves: SyncMoves::AtFlush,
                ..common
            },
        ),
        setup("scheduled", SmallVolume { device: scheduled(8, 5), ..common }),
        setup(
            "scheduled-one-by-one",
            SmallVolume {
                device: scheduled(1, 1),
                sync_moves: SyncMoves::AtFlush,
                state_file_bytes_max: 0,
                ..common
            },
        ),
        setup("raw", SmallVolume { device: Device::Raw, ..common }),
        setup(
            "raw-at-flush",
            SmallVolume { device: Device::Raw, sync_moves: SyncMoves::AtFlush, ..common },
        ),
        setup("map-in-tree", common.with_map_in_tree()),
        setup(
            "map-in-tree-raw",
            SmallVolume { device: Device::Raw, tree_top_levels: 0, ..common.with_map_in_tree() },
        ),
        setup(
            "map-in-tree-at-flush",
            SmallVolume {
                sync_moves: SyncMoves::AtFlush,
                state_file_bytes_max: 0,
                leaf_slots: Some(5),
                ..common.with_map_in_tree()
            },
        ),
        setup(
            "map-in-tree-scheduled",
            SmallVolume { device: scheduled(6, 3), ..common.with_map_in_tree() },
        ),
        setup("served-in-place", SmallVolume { tree_top_ways: 2, ..common }),
        setup(
            "served-in-place-raw",
            SmallVolume {
                device: Device::Raw,
                sync_moves: SyncMoves::AtFlush,
                tree_top_ways: 1,
                ..common
            },
        ),
        setup(
            "everything-at-once",
            SmallVolume {
                device: scheduled(6, 4),
                tree_top_ways: 4,
                leaf_slots: Some(5),
                ..common.with_map_in_tree()
            },
        ),
        setup("range", SmallVolume { scheme: SmallScheme::Range { class: 3 }, ..common }),
        setup(
            "range-striped",
            SmallVolume { scheme: SmallScheme::Range { class: 3 }, disks: 3, ..common },
        ),
        setup(
            "range-raw-at-flush",
            SmallVolume {
                scheme: SmallScheme::Range { class: 2 },
                device: Device::Raw,
                sync_moves: SyncMoves::AtFlush,
                ..common
            },
        ),
        setup(
            "range-scheduled",
            SmallVolume {
                scheme: SmallScheme::Range { class: 1 },
                device: scheduled(6, 3),
                state_file_bytes_max: 0,
                ..common
            },
        ),
        setup(
            "range-at-flush",
            SmallVolume {
                scheme: SmallScheme::Range { class: 3 },
                device: Device::Disk { cache_blocks_max: 24 },
                sync_moves: SyncMoves::AtFlush,
                tree_top_levels: 3,
                ..common
            },
        ),
        setup(
            "range-fixed",
            SmallVolume {
                scheme: SmallScheme::FixedRange { class: 2 },
                device: Device::Disk { cache_blocks_max: 6 },
                ..common
            },
        ),
        setup(
            "range-fixed-scheduled",
            SmallVolume {
                scheme: SmallScheme::FixedRange { class: 2 },
                device: scheduled(6, 3),
                state_file_bytes_max: 0,
                ..common
            },
        ),
        setup(
            "range-exact",
            SmallVolume {
                scheme: SmallScheme::ExactRange { between: 1, class: 2 },
                device: Device::Disk { cache_blocks_max: 6 },
                ..common
            },
        ),
        setup("scan", SmallVolume { scheme: SmallScheme::Scan { spare: 12 }, ..common }),
        setup(
            "scan-raw-at-flush",
            SmallVolume {
                scheme: SmallScheme::Scan { spare: 1 },
                device: Device::Raw,
                sync_moves: SyncMoves::AtFlush,
                ..common
            },
        ),
        setup(
            "scan-scheduled",
            SmallVolume {
                scheme: SmallScheme::Scan { spare: 40 },
                device: scheduled(6, 3),
                state_file_bytes_max: 0,
                ..common
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
        remote("remote-range", SmallVolume { scheme: SmallScheme::Range { class: 3 }, ..common }),
        remote("remote-fixed-rate", SmallVolume { device: scheduled(8, 5), ..common }),
        shared("shares", 3, OnSilence::GivesUp, common),
        shared("shares-asked-again", 3, OnSilence::AsksAgain, common),
        shared("shares-fixed-rate", 3, OnSilence::GivesUp, fixed_rate),
        recursive("shares-recursive", OnSilence::GivesUp, common),
        recursive("shares-recursive-asked-again", OnSilence::AsksAgain, raw),
        shared("shares-five", 5, OnSilence::GivesUp, common),
        shared("shares-five-asked-again", 5, OnSilence::AsksAgain, raw),
        setup(
            "small-stash",
            SmallVolume { stash_blocks_max: 3, sync_moves: SyncMoves::AtFlush, ..common },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::mem;

    use super::*;

    #[test]
    fn every_scheme_is_tried() {
        let on_servers = SmallScheme::Shares { servers: 3, has_map_in_trees: false };
        let schemes = SmallScheme::EACH.into_iter().chain([on_servers]);
        for scheme in schemes.map(|scheme| mem::discriminant(&scheme)) {
            let mut tried = setups().into_iter().map(|setup| setup.volume.scheme);
            assert!(tried.any(|it| mem::discriminant(&it) == scheme));
        }
    }
}
