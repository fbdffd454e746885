//! Who judges a profile, and by what.

use oblivio_models::alloc_search as search;
use oblivio_sim::controller::{Initial, Pace};
use oblivio_sim::system::SystemSpec;
use serde::{Deserialize, Serialize};

use super::{Plan, Profile};
use crate::LabError;
use crate::evaluation::{Switches, Variant};

/// Who judges a profile, and by what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// The engine behind a flat position map: by the slots that an access moves, its share of background evictions
    /// included.
    #[default]
    Slots,
    /// A simulated processor, by the time that it takes: the *performance improvement* of IR-ORAM, section IV-B.
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

/// Table I.
const LLC_BYTES: u64 = Switches::PAPER.llc_bytes;

const LLC_BYTES_MIN: u64 = 4 << 10;

/// A simulated processor that asks Baseline of IR-ORAM for lines by chance, or IR-Stash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeJudge {
    /// Whether the client keeps the tree top as IR-Stash does, found by address.
    pub ir_stash: bool,
    /// Channels of DRAM.
    pub channels: u32,
    /// When paths start.
    pub pace: Pace,
    /// Random requests for each thousand blocks before the first record, of which the narrow levels become as full as in a
    /// tree in use: see [`Initial::Aged`].
    pub aging: u32,
}

impl TimeJudge {
    /// Table I, and a tree in use.
    pub const PAPER: Self = Self { ir_stash: false, channels: 4, pace: Pace::DEFAULT, aging: 20 };

    /// The machine whose tree has `profile`.
    pub(super) fn spec(&self, plan: &Plan, profile: &Profile) -> Result<SystemSpec, LabError> {
        let Self { ir_stash, channels, pace, aging } = *self;
        let name = if ir_stash { "ir-stash" } else { "baseline" };
        let machine = Variant::named(name)
            .ok_or_else(|| LabError::Plan(format!("there is no machine {name}")))?;
        let switches = Switches {
            channels,
            pace,
            initial: Initial::Aged(aging),
            stash_blocks: plan.stash_blocks_max,
            // A 64th of the memory at most: what fits the LLC asks for nothing.
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
