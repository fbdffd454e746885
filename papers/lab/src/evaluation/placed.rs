//! The traces of runs on the lines of their protected spaces.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use oblivio_sim::trace::{Kind, Record};

use super::plan::{Plan, Run};
use super::switches::Pages;
use super::workloads::Programs;
use crate::LabError;

/// Traces are placed for each run anew, since each is some tens of megabytes. What they sum up to is known once one of them
/// was placed, so that a run that is kept is known without its trace.
pub(super) struct PlacedTraces<'a> {
    plan: &'a Plan,
    programs: &'a Programs,
    sums: Mutex<HashMap<Placement, u32>>,
}

/// What the records of a run depend on, beside the plan.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Placement {
    workload: String,
    records: u64,
    lines: u64,
    pages: Pages,
}

impl Placement {
    /// Of `run` on a protected space of `lines`.
    pub(super) fn of(run: &Run, lines: u64) -> Self {
        Self {
            workload: run.workload.clone(),
            records: run.scale.all_records(),
            lines,
            pages: run.switches.pages,
        }
    }
}

impl<'a> PlacedTraces<'a> {
    pub(super) fn new(plan: &'a Plan, programs: &'a Programs) -> Self {
        Self { plan, programs, sums: Mutex::default() }
    }

    /// The records of `run` on a protected space of `lines`, and their sum.
    ///
    /// # Errors
    /// [`LabError::Plan`] and [`LabError::Simulation`] where there is no such trace, or no room for its pages.
    pub(super) fn records(&self, run: &Run, lines: u64) -> Result<Vec<Record>, LabError> {
        self.place(&Placement::of(run, lines))
    }

    /// What they sum up to: of other records it is another one.
    ///
    /// # Errors
    /// Those of [`Self::records`].
    pub(super) fn checksum(&self, run: &Run, lines: u64) -> Result<u32, LabError> {
        let placement = Placement::of(run, lines);
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

/// Of other records it is another one.
pub(crate) fn checksum(records: &[Record]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    for Record { gap, kind, line } in records {
        checksum.update(&gap.to_le_bytes());
        checksum.update(&[u8::from(*kind == Kind::Write)]);
        checksum.update(&line.to_le_bytes());
    }
    checksum.finalize()
}
