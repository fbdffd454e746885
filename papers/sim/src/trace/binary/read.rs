//! Reads a binary trace. The bytes are untrusted.

use std::io::{self, BufRead, ErrorKind, Read};

use crc32fast::Hasher;

use super::{MAGIC, VERSION};
use crate::SimError;
use crate::trace::{AccessKind, LINES_MAX, NAME_BYTES_MAX, RECORDS_MAX, Record, Trace, check_name};

/// Reads a trace. `name` is the name of the file in messages.
pub(in crate::trace) fn read(name: &str, file: impl BufRead) -> Result<Trace, SimError> {
    let mut input = Input { name, record: None, bytes: file, offset: 0, sum: Hasher::new() };
    if input.array()? != MAGIC {
        return Err(input.wrong("not a binary trace; give a file that this program wrote"));
    }
    let version = input.byte()?;
    if version != VERSION {
        return Err(input.wrong(&format!(
            "version {version} is unknown (this program reads {VERSION}): use a newer program"
        )));
    }
    let own_name = input.own_name()?;
    let count = input.number()?;
    if count == 0 || count > RECORDS_MAX as u64 {
        return Err(input.wrong(&format!(
            "a trace has from 1 to {RECORDS_MAX} records, but this file claims {count}"
        )));
    }
    let mut records = Vec::new();
    let mut before = 0;
    for number in 1..=count {
        input.record = Some(number);
        let record = input.record_after(before)?;
        before = record.line;
        records.push(record);
    }
    input.record = None;
    input.end()?;
    Ok(Trace { name: own_name, records })
}

/// Input with byte offset and running checksum.
struct Input<'a, R> {
    name: &'a str,
    /// Number of the current record, from 1.
    record: Option<u64>,
    bytes: R,
    offset: u64,
    sum: Hasher,
}

impl<R: BufRead> Input<'_, R> {
    fn own_name(&mut self) -> Result<String, SimError> {
        let length = self.number()?;
        if length > NAME_BYTES_MAX as u64 {
            return Err(self.wrong(&format!("a name has at most {NAME_BYTES_MAX} bytes")));
        }
        let bytes = (0..length).map(|_| self.byte()).collect::<Result<Vec<_>, _>>()?;
        let name = String::from_utf8(bytes).map_err(|_| self.wrong("the name is not UTF-8"))?;
        check_name(&name).map_err(|why| self.wrong(&why))?;
        Ok(name)
    }

    /// Reads the next record. `before` is the line of the previous record.
    fn record_after(&mut self, before: u64) -> Result<Record, SimError> {
        let head = self.number()?;
        let gap = u32::try_from(head >> 1)
            .map_err(|_| self.wrong(&format!("a gap is at most {}", u32::MAX)))?;
        let kind = if head & 1 == 0 { AccessKind::Read } else { AccessKind::Write };
        let difference = un_zig_zag(self.number()?);
        let line = before.checked_add_signed(difference).filter(|line| *line < LINES_MAX);
        let line = line.ok_or_else(|| self.wrong(&format!("a line is below {LINES_MAX}")))?;
        Ok(Record { gap, kind, line })
    }

    /// Checks the checksum, and that no bytes follow it.
    fn end(&mut self) -> Result<(), SimError> {
        let sum = self.sum.clone().finalize();
        if u32::from_le_bytes(self.array()?) != sum {
            return Err(self.wrong("wrong checksum: the file is damaged; get it again"));
        }
        match self.bytes.by_ref().bytes().next() {
            None => Ok(()),
            Some(Ok(_)) => Err(self.wrong("there are bytes after the end; truncate the file here")),
            Some(Err(error)) => Err(self.unreadable(&error)),
        }
    }

    fn number(&mut self) -> Result<u64, SimError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                let is_shortest = byte != 0 || shift == 0;
                let too_long = "a number is longer than it must be: the file is damaged";
                return if is_shortest { Ok(number) } else { Err(self.wrong(too_long)) };
            }
        }
        Err(self.wrong("a number exceeds 64 bits: the file is damaged"))
    }

    fn byte(&mut self) -> Result<u8, SimError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], SimError> {
        let mut bytes = [0; LENGTH];
        self.bytes.read_exact(&mut bytes).map_err(|error| self.unreadable(&error))?;
        self.sum.update(&bytes);
        self.offset += LENGTH as u64;
        Ok(bytes)
    }

    fn unreadable(&self, error: &io::Error) -> SimError {
        match error.kind() {
            ErrorKind::UnexpectedEof => {
                self.wrong("the file ends too early: it was truncated; get it again")
            }
            _ => self.wrong(&format!("the file cannot be read: {error}")),
        }
    }

    /// Makes an error at the current position of the input.
    fn wrong(&self, what: &str) -> SimError {
        let record = self.record.map_or_else(String::new, |record| format!(", record {record}"));
        SimError::Trace(format!("{}{record}, byte {}: {what}", self.name, self.offset))
    }
}

fn un_zig_zag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
