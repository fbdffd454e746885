//! Volumes of S³ORAM, on three or five share servers.

use oblivio_testkit::crash::small_volume::{Device, SmallScheme, SmallVolume};

use super::{Setup, Storage, scheduled};
use crate::shares::MissingAnswerPolicy;

/// Creates the setup of a volume on share servers. It makes fewer accesses than other setups,
/// because each access takes longer.
fn shared(
    name: &'static str,
    servers: u8,
    missing_answer_policy: MissingAnswerPolicy,
    volume: SmallVolume,
) -> Setup {
    let scheme = SmallScheme::Shares { servers, has_map_in_trees: false };
    let volume = SmallVolume { scheme, steps: 20, blocks: 24, ..volume };
    Setup { name, volume, storage: Storage::Shared { servers, missing_answer_policy } }
}

/// Creates the setup of a volume on three share servers, with its position map in a tree.
fn recursive(
    name: &'static str,
    missing_answer_policy: MissingAnswerPolicy,
    volume: SmallVolume,
) -> Setup {
    let setup = shared(name, 3, missing_answer_policy, volume);
    let scheme = SmallScheme::Shares { servers: 3, has_map_in_trees: true };
    Setup { volume: SmallVolume { scheme, ..setup.volume }, ..setup }
}

pub(super) fn setups(common: SmallVolume) -> Vec<Setup> {
    let raw = SmallVolume { device: Device::Raw, state_file_bytes_max: 0, ..common };
    let fixed_rate = SmallVolume { device: scheduled(6, 3), ..common };
    vec![
        shared("shares", 3, MissingAnswerPolicy::GiveUp, common),
        shared("shares-asked-again", 3, MissingAnswerPolicy::Retry, common),
        shared("shares-fixed-rate", 3, MissingAnswerPolicy::GiveUp, fixed_rate),
        recursive("shares-recursive", MissingAnswerPolicy::GiveUp, common),
        recursive("shares-recursive-asked-again", MissingAnswerPolicy::Retry, raw),
        shared("shares-five", 5, MissingAnswerPolicy::GiveUp, common),
        shared("shares-five-asked-again", 5, MissingAnswerPolicy::Retry, raw),
    ]
}
