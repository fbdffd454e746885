//! The processor trace format of Ramulator (2015). A line is a read, optionally with the address of
//! the dirty line that it evicts. Numbers are decimal, separated by one space.

use std::io::{self, Write};

use super::text::{TextLine, line_at, number};
use super::{AccessKind, Record, Trace};
use crate::SimError;

pub(super) const FORM: &str =
    "`<instructions> <read address> [<write-back address>]`, in decimal (Ramulator)";

pub(super) fn parse(line: &str) -> Option<TextLine> {
    let mut numbers = line.split(' ').map(|digits| number(digits, 10));
    let gap = numbers.next()??.try_into().ok()?;
    let first = Record { gap, kind: AccessKind::Read, line: line_at(numbers.next()??) };
    let then = match numbers.next() {
        None => None,
        Some(address) => Some(Record { gap: 0, kind: AccessKind::Write, line: line_at(address?) }),
    };
    numbers.next().is_none().then_some(TextLine { first, then })
}

/// Checks that the format can represent `trace`: every write must follow a read, with gap 0. Other
/// traces are refused, since adapting them would change their meaning.
pub(super) fn check(trace: &Trace) -> Result<(), SimError> {
    let mut after_read = false;
    for (number, record) in (1..).zip(&trace.records) {
        let fits = record.kind == AccessKind::Read || after_read && record.gap == 0;
        if !fits {
            return Err(SimError::Trace(format!(
                "{}, record {number}: Ramulator's format only has writes right after a read; write \
                 the trace in USIMM's or the binary format",
                trace.name
            )));
        }
        after_read = record.kind == AccessKind::Read;
    }
    Ok(())
}

/// Writes records that passed [`check`].
pub(super) fn write(records: &[Record], out: &mut dyn Write) -> io::Result<()> {
    let mut records = records.iter().peekable();
    while let Some(read) = records.next() {
        write!(out, "{} {}", read.gap, read.address())?;
        if let Some(written) = records.next_if(|record| record.kind == AccessKind::Write) {
            write!(out, " {}", written.address())?;
        }
        writeln!(out)?;
    }
    Ok(())
}
