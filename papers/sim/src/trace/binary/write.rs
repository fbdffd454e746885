//! Writes a binary trace.

use std::io::{self, Write};

use crc32fast::Hasher;

use super::{MAGIC, VERSION};
use crate::trace::{AccessKind, Trace};

/// Writes `trace` in the binary format.
pub(in crate::trace) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut out = Summed { out, sum: Hasher::new() };
    out.write(&MAGIC)?;
    out.write(&[VERSION])?;
    out.number(trace.name.len() as u64)?;
    out.write(trace.name.as_bytes())?;
    out.number(trace.records.len() as u64)?;
    let mut before = 0;
    for record in &trace.records {
        out.number(u64::from(record.gap) << 1 | u64::from(record.kind == AccessKind::Write))?;
        out.number(zig_zag(record.line.wrapping_sub(before).cast_signed()))?;
        before = record.line;
    }
    let sum = out.sum.finalize();
    out.out.write_all(&sum.to_le_bytes())
}

fn zig_zag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

/// An output with a running checksum.
struct Summed<'a> {
    out: &'a mut dyn Write,
    sum: Hasher,
}

impl Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.out.write_all(bytes)
    }

    fn number(&mut self, mut number: u64) -> io::Result<()> {
        let mut bytes = [0; 10];
        for (count, byte) in (1..).zip(&mut bytes) {
            *byte = number as u8 & 0x7F;
            number >>= 7;
            if number == 0 {
                return self.write(&bytes[..count]);
            }
            *byte |= 0x80;
        }
        unreachable!("ten bytes of seven bits hold 64")
    }
}
