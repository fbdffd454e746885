//! The parameters of a machine.

use serde::{Deserialize, Serialize};

use crate::controller::{ControllerSpec, OramSpec, Remap};
use crate::dram::{Clock, DramSpec};
use crate::processor::ProcessorSpec;
use crate::{Cycle, SimError};

/// How a tree lies in DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Level after level.
    Heap,
    /// Subtrees that fill a row of every channel together.
    Subtrees,
    /// The same, with the lines of each path spread evenly over the channels.
    Balanced,
}

/// A machine: data, not code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemSpec {
    /// The processor, with its LLC.
    pub processor: ProcessorSpec,
    /// One channel of DRAM.
    pub dram: DramSpec,
    /// How many of them.
    pub channels: u32,
    /// How the trees lie in DRAM.
    pub layout: Layout,
    /// Lines of a bucket's header. IR-ORAM counts none; Tiny ORAM has one.
    pub header_lines: u64,
    /// The controller.
    pub controller: ControllerSpec,
    /// The ORAM. Without one, the LLC asks DRAM itself.
    pub oram: Option<OramSpec>,
}

impl SystemSpec {
    /// Table I of IR-ORAM, with its Baseline; `leaf_level` is 24 there.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the built-in DRAM is none.
    pub fn paper(leaf_level: u8) -> Result<Self, SimError> {
        Ok(Self {
            processor: ProcessorSpec::default(),
            dram: DramSpec::built_in("DDR3-1600")?,
            channels: 4,
            layout: Layout::Balanced,
            header_lines: 0,
            controller: ControllerSpec::default(),
            oram: Some(OramSpec::paper(leaf_level)),
        })
    }

    /// Refuses parts that do not go together.
    pub(super) fn check(&self) -> Result<(), SimError> {
        let delayed = self.oram.as_ref().is_some_and(|oram| oram.remap == Remap::Delayed);
        if delayed && !self.processor.fetch_on_write_miss {
            let message = "with delayed remapping a line in the LLC is nowhere in the ORAM, so a write that \
                           misses must fetch it: set fetch_on_write_miss";
            return Err(SimError::Spec(message.to_owned()));
        }
        Ok(())
    }

    pub(super) fn clocks(&self) -> Clocks {
        let khz = |mhz: f64| (mhz * 1000.0).round().max(1.0) as u128;
        Clocks { processor: khz(self.processor.clock_mhz.into()), dram: khz(self.dram.clock_mhz) }
    }
}

/// Two clocks that started together, in kHz.
#[derive(Clone, Copy)]
pub(super) struct Clocks {
    processor: u128,
    dram: u128,
}

impl Clocks {
    /// The first clock of the DRAM at or after a cycle of the processor.
    pub(super) fn clock(self, cycle: Cycle) -> Clock {
        (u128::from(cycle) * self.dram).div_ceil(self.processor) as Clock
    }

    /// The last clock of the DRAM at or before a cycle of the processor.
    pub(super) fn clock_by(self, cycle: Cycle) -> Clock {
        (u128::from(cycle) * self.dram / self.processor) as Clock
    }

    /// The first cycle of the processor at or after a clock of the DRAM.
    pub(super) fn cycle(self, clock: Clock) -> Cycle {
        (u128::from(clock) * self.processor).div_ceil(self.dram) as Cycle
    }
}
