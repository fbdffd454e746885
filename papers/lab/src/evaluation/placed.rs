//! Places the trace of each run in the protected space of its machine: the memory that the ORAM
//! holds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use oblivio_sim::trace::{AccessKind, Record};

use super::plan::{EvaluationPlan, Run};
use super::switches::Pages;
use super::workloads::Programs;
use crate::LabError;

/// Places traces when a run needs them, since a placed trace has tens of megabytes. Checksums are
/// cached, so that a recorded run is recognized without placing its trace again.
pub(super) struct PlacedTraces<'a> {
    plan: &'a EvaluationPlan,
    programs: &'a Programs,
    sums: Mutex<HashMap<Placement, u32>>,
}

/// The parameters that determine the records of a run, in addition to the plan.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Placement {
    workload: String,
    records: u64,
    lines: u64,
    pages: Pages,
}

impl Placement {
    /// The placement of `run` in a protected space of `lines` lines.
    pub(super) fn from_run(run: &Run, lines: u64) -> Self {
        Self {
            workload: run.workload.clone(),
            records: run.scale.all_records(),
            lines,
            pages: run.switches.pages,
        }
    }
}

impl<'a> PlacedTraces<'a> {
    pub(super) fn new(plan: &'a EvaluationPlan, programs: &'a Programs) -> Self {
        Self { plan, programs, sums: Mutex::default() }
    }

    /// Returns the records of `run` in a protected space of `lines` lines.
    ///
    /// # Errors
    /// [`LabError::Plan`] or [`LabError::Simulation`] if the trace does not exist, or its pages do
    /// not fit.
    pub(super) fn records(&self, run: &Run, lines: u64) -> Result<Vec<Record>, LabError> {
        self.place(&Placement::from_run(run, lines))
    }

    /// The checksum of the records of `run`, which identifies the trace.
    ///
    /// # Errors
    /// The errors of [`Self::records`].
    pub(super) fn checksum(&self, run: &Run, lines: u64) -> Result<u32, LabError> {
        let placement = Placement::from_run(run, lines);
        let known = self.sums().get(&placement).copied();
        known.map_or_else(
            || {
                let sum = checksum(&self.place(&placement)?);
                self.sums().insert(placement, sum);
                Ok(sum)
            },
            Ok,
        )
    }

    fn place(&self, placement: &Placement) -> Result<Vec<Record>, LabError> {
        let Placement { workload, records, lines, pages } = placement;
        self.programs.records(workload, *records, *lines, *pages, self.plan.seed_of(workload))
    }

    fn sums(&self) -> std::sync::MutexGuard<'_, HashMap<Placement, u32>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A CRC-32 that identifies a trace.
pub(crate) fn checksum(records: &[Record]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    for Record { gap, kind, line } in records {
        checksum.update(&gap.to_le_bytes());
        checksum.update(&[u8::from(*kind == AccessKind::Write)]);
        checksum.update(&line.to_le_bytes());
    }
    checksum.finalize()
}
