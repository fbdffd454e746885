//! The measures by which a search compares profiles (the bucket sizes of all levels).

use oblivio_models::alloc_search as search;
use oblivio_sim::controller::{Initial, Pace};
use oblivio_sim::system::SystemSpec;
use serde::{Deserialize, Serialize};

use super::{Profile, SearchPlan};
use crate::LabError;
use crate::evaluation::{Switches, Variant};

/// The measure by which a search compares profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// Slots moved per access of the engine with a flat position map, including the access's share
    /// of background evictions.
    #[default]
    Slots,
    /// Running time of a simulated processor: the *performance improvement* of IR-ORAM, section
    /// IV-B.
    Time(TimeJudge),
}

impl search::Judge for Judge {
    fn channels(&self) -> Option<u32> {
        match self {
            Self::Slots => None,
            Self::Time(judge) => Some(judge.channels),
        }
    }
}

/// Size in bytes of the LLC in IR-ORAM's Table I.
const LLC_BYTES: u64 = Switches::PAPER.llc_bytes;

const LLC_BYTES_MIN: u64 = 4 << 10;

/// A simulated processor that makes random requests to IR-ORAM's Baseline, or to IR-Stash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeJudge {
    /// Whether the client keeps the tree top as IR-Stash does, indexed by address.
    pub ir_stash: bool,
    /// Number of DRAM channels.
    pub channels: u32,
    /// The rule for when paths start.
    pub pace: Pace,
    /// Random requests per thousand blocks before the first record. They fill the narrow levels as
    /// in a tree in use: see [`Initial::Aged`].
    pub aging: u32,
}

impl TimeJudge {
    /// The machine of Table I, with an aged tree.
    pub const PAPER: Self = Self { ir_stash: false, channels: 4, pace: Pace::DEFAULT, aging: 20 };

    /// The machine whose tree has `profile`.
    pub(super) fn spec(
        &self,
        plan: &SearchPlan,
        profile: &Profile,
    ) -> Result<SystemSpec, LabError> {
        let Self { ir_stash, channels, pace, aging } = *self;
        let name = if ir_stash { "ir-stash" } else { "baseline" };
        let machine = Variant::named(name)
            .ok_or_else(|| LabError::Plan(format!("unknown machine {name}")))?;
        let switches = Switches {
            channels,
            pace,
            initial: Initial::Aged(aging),
            stash_blocks: plan.stash_blocks_max,
            // About a 64th of the memory, within limits: hits in the LLC make no request to the
            // ORAM.
            llc_bytes: plan.capacity.next_power_of_two().clamp(LLC_BYTES_MIN, LLC_BYTES),
            ..Switches::PAPER
        };
        let mut spec = machine.spec(plan.leaf_level, &switches)?;
        if let Some(oram) = &mut spec.oram {
            oram.data_blocks = plan.capacity;
            oram.tree_top_levels = plan.tree_top_levels;
            oram.slots = profile.slots().to_vec();
        }
        spec.check()?;
        Ok(spec)
    }
}
