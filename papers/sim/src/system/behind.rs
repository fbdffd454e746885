//! What a memory is to the processor in front of it.

use super::outcome::MemoryTally;
use super::watched::Watched;
use crate::cache::Victim;
use crate::controller::LastLevel;
use crate::processor::{FetchId, Processor};
use crate::trace::Record;
use crate::{Cycle, SimError};

/// Memory, with or without ORAM. It answers the processor directly.
pub(super) trait Memory {
    /// A line leaves the LLC before time begins.
    fn left_before(&mut self, victim: Victim) -> Result<(), SimError>;

    /// Time begins, with these lines in the LLC.
    fn begin(&mut self, held: &mut dyn Iterator<Item = u64>) -> Result<(), SimError>;

    /// The LLC needs `line`.
    fn fetch(
        &mut self,
        id: FetchId,
        line: u64,
        at: Cycle,
        processor: &mut Processor<impl Iterator<Item = Record>>,
    ) -> Result<(), SimError>;

    /// A line leaves the LLC.
    fn leaves(&mut self, line: u64, is_dirty: bool, at: Cycle) -> Result<(), SimError>;

    /// When something happens next that no request of the processor has to come for.
    fn next_event(&mut self) -> Option<Cycle>;

    /// Lets that happen.
    fn act(
        &mut self,
        event: Cycle,
        processor: &mut Processor<impl Iterator<Item = Record>>,
    ) -> Result<(), SimError>;

    /// What it did.
    fn tally(&self) -> MemoryTally;

    /// Who watches its DRAM.
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
