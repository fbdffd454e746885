//! Volumes of S³ORAM.

use oblivio_testkit::crash::small_volume::{Device, SmallScheme, SmallVolume};

use super::{Setup, Storage, scheduled};
use crate::shares::OnSilence;

/// A volume on share servers, with fewer accesses because each takes longer.
fn shared(name: &'static str, servers: u8, on_silence: OnSilence, volume: SmallVolume) -> Setup {
    let scheme = SmallScheme::Shares { servers, has_map_in_trees: false };
    let volume = SmallVolume { scheme, steps: 20, blocks: 24, ..volume };
    Setup { name, volume, storage: Storage::Shared { servers, on_silence } }
}

/// A volume on three share servers, with its position map in a tree.
fn recursive(name: &'static str, on_silence: OnSilence, volume: SmallVolume) -> Setup {
    let setup = shared(name, 3, on_silence, volume);
    let scheme = SmallScheme::Shares { servers: 3, has_map_in_trees: true };
    Setup { volume: SmallVolume { scheme, ..setup.volume }, ..setup }
}

pub(super) fn setups(common: SmallVolume) -> Vec<Setup> {
    let raw = SmallVolume { device: Device::Raw, state_file_bytes_max: 0, ..common };
    let fixed_rate = SmallVolume { device: scheduled(6, 3), ..common };
    vec![
        shared("shares", 3, OnSilence::GivesUp, common),
        shared("shares-asked-again", 3, OnSilence::AsksAgain, common),
        shared("shares-fixed-rate", 3, OnSilence::GivesUp, fixed_rate),
        recursive("shares-recursive", OnSilence::GivesUp, common),
        recursive("shares-recursive-asked-again", OnSilence::AsksAgain, raw),
        shared("shares-five", 5, OnSilence::GivesUp, common),
        shared("shares-five-asked-again", 5, OnSilence::AsksAgain, raw),
    ]
}
