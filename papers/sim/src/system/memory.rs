//! The interface of memory to the processor in front of it.

use super::outcome::MemoryTally;
use super::watched::Watched;
use crate::cache::Victim;
use crate::controller::LastLevel;
use crate::processor::{FetchId, Processor};
use crate::trace::Record;
use crate::{Cycle, SimError};

/// Memory, with or without ORAM. It passes its answers directly to the processor.
pub(super) trait Memory {
    /// Notes that a line leaves the LLC before the timed run begins.
    fn preload_victim(&mut self, victim: Victim) -> Result<(), SimError>;

    /// Notes that the timed run begins, with the lines `held` in the LLC.
    fn start_timed_run(&mut self, held: &mut dyn Iterator<Item = u64>) -> Result<(), SimError>;

    /// Fetches `line`, which the LLC needs.
    fn fetch(
        &mut self,
        id: FetchId,
        line: u64,
        at: Cycle,
        processor: &mut Processor<impl Iterator<Item = Record>>,
    ) -> Result<(), SimError>;

    /// Notes that a line leaves the LLC.
    fn evict_line(&mut self, line: u64, is_dirty: bool, at: Cycle) -> Result<(), SimError>;

    /// The time of the next event that does not depend on further requests of the processor.
    fn next_event(&mut self) -> Option<Cycle>;

    /// Handles the event that [`Self::next_event`] returned.
    fn act(
        &mut self,
        event: Cycle,
        processor: &mut Processor<impl Iterator<Item = Record>>,
    ) -> Result<(), SimError>;

    /// The counts of memory so far.
    fn tally(&self) -> MemoryTally;

    /// The observer of the memory's DRAM.
    fn watched(&self) -> &Watched;
}

impl<Records: Iterator<Item = Record>> LastLevel for Processor<Records> {
    fn sets(&self) -> u64 {
        self.llc().sets()
    }

    fn set_of(&self, line: u64) -> u64 {
        self.llc().set_of(line)
    }

    fn next_victim(&self, number: u64) -> Option<Victim> {
        self.llc().next_victim(number)
    }

    fn written_early(&mut self, line: u64, at: Cycle) {
        Processor::written_early(self, line, at);
    }
}
