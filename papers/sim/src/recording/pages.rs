//! Renumbers pages to get compact addresses.
//!
//! The pages of a program are spread over 47 bits of addresses. If they are numbered from 0 in the
//! order of first use, as an operating system assigns frames, they fit the protected memory.

use std::collections::HashMap;

use crate::LINE_BYTES;
use crate::trace::Record;

/// Lines per page of 4 KiB.
const LINES_PER_PAGE: u64 = 4096 / LINE_BYTES;

/// The pages used so far, with their numbers.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    numbers: HashMap<u64, u64>,
}

impl Pages {
    /// Returns the record with its line in the compact address space.
    pub fn compact(&mut self, record: Record) -> Record {
        let next = self.numbers.len() as u64;
        let page = *self.numbers.entry(record.line / LINES_PER_PAGE).or_insert(next);
        Record { line: page * LINES_PER_PAGE + record.line % LINES_PER_PAGE, ..record }
    }

    /// The number of pages used.
    pub fn count(&self) -> u64 {
        self.numbers.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::AccessKind;

    #[test]
    fn pages_are_numbered_by_first_use_and_lines_keep_their_place() {
        let mut pages = Pages::default();
        let lines = [1 << 41, (1 << 41) + 63, 64, 0, (1 << 41) + 64, 127];
        let compact =
            lines.map(|line| pages.compact(Record { gap: 7, kind: AccessKind::Write, line }));
        assert_eq!(compact.map(|record| record.line), [0, 63, 64, 128, 192, 127]);
        assert!(compact.iter().all(|record| (record.gap, record.kind) == (7, AccessKind::Write)));
        assert_eq!(pages.count(), 4);
    }
}
