//! Counts of DRAM commands.

use serde::{Deserialize, Serialize};

use super::{Command, CommandKind, Observer};

/// An observer that counts commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DramTally {
    /// The number of lines read.
    pub reads: u64,
    /// The number of lines written.
    pub writes: u64,
    /// The number of rows opened.
    pub activates: u64,
}

impl Observer for DramTally {
    #[inline]
    fn observe(&mut self, command: Command) {
        match command.kind {
            CommandKind::Read => self.reads += 1,
            CommandKind::Write => self.writes += 1,
            CommandKind::Activate => self.activates += 1,
            CommandKind::Precharge | CommandKind::Refresh => (),
        }
    }
}

impl DramTally {
    /// The number of lines read or written.
    pub fn lines(&self) -> u64 {
        self.reads + self.writes
    }

    /// The fraction of lines whose row was already open: 1 minus the activates per line, and at
    /// least 0. `None` if no lines were read or written.
    pub fn row_hits(&self) -> Option<f64> {
        let lines = self.lines();
        (lines > 0).then(|| lines.saturating_sub(self.activates) as f64 / lines as f64)
    }

    /// Subtracts the earlier counts `before` from these counts.
    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            activates: self.activates - before.activates,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::{Dram, DramSpec, Request};
    use crate::trace::AccessKind;

    #[test]
    fn a_row_is_opened_once_for_its_lines() {
        let spec = DramSpec::built_in("DDR3-1600").unwrap();
        let mut dram = Dram::observed(&spec, 1, DramTally::default()).unwrap();
        assert_eq!(dram.observer().row_hits(), None);
        let far = dram.lines() / 2;
        for (id, line) in (0..).zip([0, 1, 2, far]) {
            let kind = if line == far { AccessKind::Write } else { AccessKind::Read };
            dram.enqueue(Request { id, line, kind, arrival: 0 }).unwrap();
        }
        dram.run_until_idle(&mut Vec::new());
        let tally = *dram.observer();
        assert_eq!(tally, DramTally { reads: 3, writes: 1, activates: 2 });
        assert_eq!((tally.lines(), tally.row_hits()), (4, Some(0.5)));
        assert_eq!(tally.since(&tally), DramTally::default());
    }
}
