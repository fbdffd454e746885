//! The format of USIMM, the Utah simulated memory module (2012). A line is a record, with the byte
//! address in hex, and for reads optionally the address of the instruction. Fields are separated by
//! any white space, as in USIMM's own reader.

use std::io::{self, Write};

use super::text::{TextLine, line_at, number};
use super::{AccessKind, Record};

pub(super) const FORM: &str =
    "`<gap> R <hex address> [<hex pc>]` or `<gap> W <hex address>` (USIMM)";

pub(super) fn parse(line: &str) -> Option<TextLine> {
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let (gap, kind, address) = match fields[..] {
        [gap, "R", address] => (gap, AccessKind::Read, address),
        [gap, "R", address, pc] => {
            hex(pc)?;
            (gap, AccessKind::Read, address)
        }
        [gap, "W", address] => (gap, AccessKind::Write, address),
        _ => return None,
    };
    let gap = number(gap, 10)?.try_into().ok()?;
    let first = Record { gap, kind, line: line_at(hex(address)?) };
    Some(TextLine { first, then: None })
}

/// Parses a hex number, with or without `0x`.
fn hex(digits: &str) -> Option<u64> {
    number(digits.strip_prefix("0x").unwrap_or(digits), 16)
}

pub(super) fn write(records: &[Record], out: &mut dyn Write) -> io::Result<()> {
    records.iter().try_for_each(|record| {
        let kind = match record.kind {
            AccessKind::Read => 'R',
            AccessKind::Write => 'W',
        };
        writeln!(out, "{} {kind} {:#x}", record.gap, record.address())
    })
}
