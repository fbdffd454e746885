//! Recorded memory requests of a program.
//!
//! A trace is a list of [`Record`]s: a line of memory, whether it is read or written, and the
//! number of instructions before it. [`Trace::read`] reads the formats of USIMM and Ramulator and a
//! compact binary format, compressed or not, and [`Trace::write`] writes them. A trace can also be
//! [synthesized](synthetic::Synthetic), [mixed](Trace::mix) from others, [remapped](Trace::remap)
//! into a small memory, and [measured](TraceStats).
//!
//! A file is untrusted. An error names the first invalid position, and [`RECORDS_MAX`] bounds the
//! memory used.

mod binary;
mod format;
mod mix;
mod packing;
mod ramulator;
mod read;
mod record;
mod remap;
mod reuse;
mod stats;
pub mod synthetic;
#[cfg(test)]
mod tests;
mod text;
mod usimm;
mod write;

pub use format::Format;
pub use packing::Compression;
pub use record::{AccessKind, LINES_MAX, Record};
pub use remap::Placing;
pub use stats::TraceStats;

use crate::{LINE_BYTES, SimError};

/// The maximum number of records of a trace. This number of records takes 1 GiB of memory.
pub const RECORDS_MAX: usize = 1 << 26;

/// The maximum length of a trace's name in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// Bytes of a page, the unit of [`Trace::remap`] and of operating systems.
pub const PAGE_BYTES: u64 = 4096;

/// Lines per page.
pub const PAGE_LINES: u64 = PAGE_BYTES / LINE_BYTES;

/// A trace: a name and at least one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    name: String,
    records: Vec<Record>,
}

impl Trace {
    /// Creates a trace of `records`. `name` is used in results and messages.
    ///
    /// # Errors
    /// [`SimError::Spec`] in these cases: `records` is empty or exceeds [`RECORDS_MAX`]; a line is
    /// not below [`LINES_MAX`]; the name is longer than [`NAME_BYTES_MAX`] bytes or has a control
    /// character.
    pub fn new(name: impl Into<String>, records: Vec<Record>) -> Result<Self, SimError> {
        let name = name.into();
        check_name(&name).map_err(SimError::Spec)?;
        if records.is_empty() || records.len() > RECORDS_MAX {
            return Err(SimError::Spec(format!(
                "a trace has from 1 to {RECORDS_MAX} records, but {name} would have {}",
                records.len()
            )));
        }
        if let Some(record) = records.iter().position(|record| record.line >= LINES_MAX) {
            return Err(SimError::Spec(format!(
                "lines must be below {LINES_MAX}, but record {} of {name} has line {}",
                record + 1,
                records[record].line
            )));
        }
        Ok(Self { name, records })
    }

    /// The name of the trace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The records, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The number of instructions; see [`Record::instructions`].
    pub fn instructions(&self) -> u64 {
        self.records.iter().map(Record::instructions).sum()
    }
}

/// Checks a name. It is shown on terminals, so it must not contain control characters.
fn check_name(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the name of a trace has at most {NAME_BYTES_MAX} bytes"));
    }
    if name.contains(char::is_control) {
        return Err(format!("the name of a trace must not have control characters: {name:?}"));
    }
    Ok(())
}
