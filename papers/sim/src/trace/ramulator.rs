//! The format of Ramulator (2015) for processors: a line for each read, with the address of the line
//! that it drives out of the cache, if that must be written. All numbers are decimal, with one space
//! between.

use std::io::{self, Write};

use super::text::{Line, line_at, number};
use super::{Kind, Record, Trace};
use crate::SimError;

pub(super) const FORM: &str =
    "`<instructions> <read address> [<write-back address>]`, in decimal (Ramulator)";

pub(super) fn parse(line: &str) -> Option<Line> {
    let mut numbers = line.split(' ').map(|digits| number(digits, 10));
    let gap = numbers.next()??.try_into().ok()?;
    let first = Record { gap, kind: Kind::Read, line: line_at(numbers.next()??) };
    let then = match numbers.next() {
        None => None,
        Some(address) => Some(Record { gap: 0, kind: Kind::Write, line: line_at(address?) }),
    };
    numbers.next().is_none().then_some(Line { first, then })
}

/// Whether the format can hold `trace`: every write must follow a read, with gap 0. Nothing else is
/// bent to fit, since that would change what the trace says.
pub(super) fn check(trace: &Trace) -> Result<(), SimError> {
    let mut after_read = false;
    for (number, record) in (1..).zip(&trace.records) {
        let fits = record.kind == Kind::Read || after_read && record.gap == 0;
        if !fits {
            return Err(SimError::Trace(format!(
                "{}, record {number}: this write does not come right after a read, and others have no \
                 place in Ramulator's format; write the trace in USIMM's or the binary one",
                trace.name
            )));
        }
        after_read = record.kind == Kind::Read;
    }
    Ok(())
}

/// Writes records that [`check`] let pass.
pub(super) fn write(records: &[Record], out: &mut dyn Write) -> io::Result<()> {
    let mut records = records.iter().peekable();
    while let Some(read) = records.next() {
        write!(out, "{} {}", read.gap, read.address())?;
        if let Some(written) = records.next_if(|record| record.kind == Kind::Write) {
            write!(out, " {}", written.address())?;
        }
        writeln!(out)?;
    }
    Ok(())
}
