//! The outcome of a run.

use serde::{Deserialize, Serialize};

use super::spec::SystemSpec;
use crate::controller::ControllerTally;
use crate::dram::{Currents, DramTally, Energy};
use crate::processor::Tally;
use crate::{Cycle, SimError};

/// The counts of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Duration of the run in cycles.
    pub cycles: Cycle,
    /// The number of records of the trace that have run.
    pub records: u64,
    /// Counts of the processor.
    pub processor: Tally,
    /// The counts of memory.
    pub memory: MemoryTally,
}

/// The counts of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTally {
    /// The counts of the ORAM controller; `None` without an ORAM.
    pub controller: Option<ControllerTally>,
    /// The counts of the DRAM. Results of older versions lack this field.
    #[serde(default)]
    pub dram: DramTally,
}

impl Outcome {
    /// The energy that the DRAM of `spec` used for this outcome.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the currents of the DRAM's chips are not known.
    pub fn dram_energy(&self, spec: &SystemSpec) -> Result<Energy, SimError> {
        let currents = Currents::built_in(&spec.dram.name)?;
        let microseconds = self.cycles as f64 / f64::from(spec.processor.clock_mhz);
        Ok(currents.energy(&spec.dram, spec.channels, &self.memory.dram, microseconds))
    }

    /// Subtracts the earlier counts `before` from these counts.
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
