//! Mixes traces of several programs that take turns on one processor.

use super::{LINES_MAX, PAGE_LINES, Record, Trace};
use crate::SimError;

impl Trace {
    /// Mixes programs that take turns of `slice` instructions each, in order. Each program is moved
    /// as a whole, by whole pages, to an address range of its own. A turn ends after the record
    /// that uses it up; instructions beyond the slice are deducted from the next turn. A program
    /// that has ended takes no more turns.
    ///
    /// # Errors
    /// [`SimError::Spec`] if `traces` is empty, `slice` is 0, `name` is not a valid name, the
    /// result exceeds [`RECORDS_MAX`](super::RECORDS_MAX) records, or the address ranges do not fit
    /// next to each other.
    pub fn mix(name: &str, traces: &[Self], slice: u64) -> Result<Self, SimError> {
        if slice == 0 {
            return Err(SimError::Spec("a slice must be at least one instruction".to_owned()));
        }
        let mut programs = programs(traces, slice)?;
        let mut records = Vec::with_capacity(traces.iter().map(|trace| trace.records.len()).sum());
        while let Some(program) = programs
            .iter_mut()
            .filter(|program| !program.left.is_empty())
            .min_by_key(|program| program.turn())
        {
            records.extend(program.take_turn());
        }
        Self::new(name, records)
    }
}

/// A program, with its remaining records.
struct Program<'a> {
    left: &'a [Record],
    /// The offset added to the program's lines, modulo 2^64.
    offset: u64,
    instructions: u64,
    slice: u64,
}

impl Program<'_> {
    /// Number of turns that the program has used up so far.
    fn turn(&self) -> u64 {
        self.instructions / self.slice
    }

    /// Takes the records of the program's current turn, and moves their lines to the program's own
    /// address range.
    fn take_turn(&mut self) -> impl Iterator<Item = Record> {
        let turn = self.turn();
        let mut count = 0;
        while self.turn() == turn && count < self.left.len() {
            self.instructions += self.left[count].instructions();
            count += 1;
        }
        let (taken, left) = self.left.split_at(count);
        self.left = left;
        let offset = self.offset;
        taken.iter().map(move |record| Record { line: record.line.wrapping_add(offset), ..*record })
    }
}

/// Creates the programs of `traces`. Each program gets the address range after that of the previous
/// program.
fn programs(traces: &[Trace], slice: u64) -> Result<Vec<Program<'_>>, SimError> {
    let mut end = 0;
    let programs = traces.iter().map(|trace| {
        let lines = || trace.records.iter().map(|record| record.line);
        let (first, last) = (lines().min()?, lines().max()?);
        let first = first - first % PAGE_LINES;
        let offset = u64::wrapping_sub(end, first);
        end += (last - first + 1).next_multiple_of(PAGE_LINES);
        (end <= LINES_MAX).then_some(Program {
            left: &trace.records,
            offset,
            instructions: 0,
            slice,
        })
    });
    programs.collect::<Option<Vec<_>>>().ok_or_else(|| {
        SimError::Spec(
            "the addresses of these traces do not fit next to each other: remap each first"
                .to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::trace::tests::{any_trace, record};
    use crate::trace::{AccessKind, Placing};

    fn reads(count: usize, gap: u32, line: u64) -> Trace {
        Trace::new("a", vec![record(gap, AccessKind::Read, line); count]).unwrap()
    }

    fn lines(trace: &Trace) -> Vec<u64> {
        trace.records().iter().map(|record| record.line).collect()
    }

    #[test]
    fn programs_take_turns_beside_each_other() {
        // 10 and 4 instructions per record. The second program gets the second page, and keeps its
        // offset in the page.
        let traces = [reads(3, 9, 1 << 40), reads(7, 3, (1 << 30) + 5)];
        let mixed = Trace::mix("both", &traces, 10).unwrap();
        assert_eq!(lines(&mixed), [0, 69, 69, 69, 0, 69, 69, 0, 69, 69]);
        assert_eq!(mixed.name(), "both");
    }

    #[test]
    fn what_cannot_be_mixed_is_refused() {
        assert!(Trace::mix("none", &[], 10).is_err());
        assert!(Trace::mix("never", &[reads(1, 0, 0)], 0).is_err());
        let last = LINES_MAX - 1;
        let whole = [(0, 0), (0, last)].map(|(gap, line)| record(gap, AccessKind::Read, line));
        let whole = Trace::new("whole", whole.to_vec()).unwrap();
        assert!(Trace::mix("alone", std::slice::from_ref(&whole), 1).is_ok());
        let error = Trace::mix("too large", &[whole, reads(1, 0, 0)], 1).unwrap_err();
        assert!(error.to_string().contains("remap each first"), "{error}");
    }

    /// Makes the turns by a literal model: each program has a credit of instructions, which grows
    /// by `slice` at each of its turns. Returns each record with the index of its trace.
    fn literal_turns(traces: &[Trace], slice: i64) -> Vec<(usize, Record)> {
        let mut left: Vec<VecDeque<Record>> =
            traces.iter().map(|trace| trace.records.iter().copied().collect()).collect();
        let mut credits = vec![0; traces.len()];
        let mut mixed = Vec::new();
        while left.iter().any(|left| !left.is_empty()) {
            for (program, (left, credit)) in left.iter_mut().zip(&mut credits).enumerate() {
                *credit += slice;
                while *credit > 0
                    && let Some(record) = left.pop_front()
                {
                    *credit -= record.instructions() as i64;
                    mixed.push((program, record));
                }
            }
        }
        mixed
    }

    proptest! {
        #[test]
        fn turns_match_the_literal_model(
            traces in prop::collection::vec(any_trace(), 1..4),
            slice in 1u64..500,
        ) {
            let traces: Vec<_> = traces.into_iter().map(|mut trace| {
                trace.records.iter_mut().for_each(|record| record.gap %= 200);
                trace.remap(1 << 20, Placing::InOrder).unwrap()
            }).collect();
            let mixed = Trace::mix("mixed", &traces, slice).unwrap();
            let expected = literal_turns(&traces, slice as i64);
            prop_assert_eq!(mixed.records().len(), expected.len());
            let offsets: Vec<_> =
                programs(&traces, slice).unwrap().iter().map(|p| p.offset).collect();
            for (mixed, (program, record)) in mixed.records().iter().zip(expected) {
                let line = record.line.wrapping_add(offsets[program]);
                prop_assert_eq!(*mixed, Record { line, ..record });
                prop_assert!(offsets.get(program + 1).is_none_or(|next| line < *next));
            }
        }
    }
}
