//! What came out of a run.

use serde::{Deserialize, Serialize};

use super::spec::SystemSpec;
use crate::controller::ControllerTally;
use crate::dram::{Currents, DramTally, Energy};
use crate::processor::Tally;
use crate::{Cycle, SimError};

/// What a machine did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Cycles it took.
    pub cycles: Cycle,
    /// Records of the trace.
    pub records: u64,
    /// The processor's side.
    pub processor: Tally,
    /// The memory's side.
    pub memory: MemoryTally,
}

/// What memory did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTally {
    /// The ORAM controller, if there is one.
    pub controller: Option<ControllerTally>,
    /// The DRAM. Records of runs that did not count have nothing here.
    #[serde(default)]
    pub dram: DramTally,
}

impl Outcome {
    /// The energy that the DRAM of `spec` took, if this is what came out of it.
    ///
    /// # Errors
    /// [`SimError::Spec`] if nobody knows what its chips draw.
    pub fn dram_energy(&self, spec: &SystemSpec) -> Result<Energy, SimError> {
        let currents = Currents::built_in(&spec.dram.name)?;
        let microseconds = self.cycles as f64 / f64::from(spec.processor.clock_mhz);
        Ok(currents.energy(&spec.dram, spec.channels, &self.memory.dram, microseconds))
    }

    /// What happened after `before`.
    pub(super) fn since(self, before: &Self) -> Self {
        Self {
            cycles: self.cycles - before.cycles,
            records: self.records - before.records,
            processor: self.processor.since(&before.processor),
            memory: self.memory.since(&before.memory),
        }
    }
}

impl MemoryTally {
    fn since(self, before: &Self) -> Self {
        let after = self.controller;
        let controller = after.map(|after| match &before.controller {
            Some(before) => after.since(before),
            None => after,
        });
        Self { controller, dram: self.dram.since(&before.dram) }
    }
}
