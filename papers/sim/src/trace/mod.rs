//! What a program asked memory for, as it was recorded.
//!
//! A trace is a list of [`Record`]s: a line of memory, whether it is read or written, and how many
//! instructions went before. It is [read](Trace::read) from the formats of USIMM and Ramulator and a
//! compact binary one, each as it is or compressed, and [written](Trace::write) in them. A trace can
//! also be [made](synthetic::Synthetic), [mixed](Trace::mix) from others, [moved](Trace::remap) into
//! a small memory, and [measured](TraceStats).
//!
//! A file may hold anything: what is no trace is refused with the place where it stops being one, and
//! memory is bounded by [`RECORDS_MAX`].

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
pub use record::{Kind, LINES_MAX, Record};
pub use remap::Placing;
pub use stats::TraceStats;

use crate::{LINE_BYTES, SimError};

/// The longest trace, in records: a gigabyte of them.
pub const RECORDS_MAX: usize = 1 << 26;

/// The longest name of a trace, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// Bytes of a page: what operating systems give to programs, and what [`Trace::remap`] moves.
pub const PAGE_BYTES: u64 = 4096;

/// Lines of a page.
pub const PAGE_LINES: u64 = PAGE_BYTES / LINE_BYTES;

/// A trace: a name and records, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    name: String,
    records: Vec<Record>,
}

impl Trace {
    /// The trace of `records`. `name` is what it is called in results and errors.
    ///
    /// # Errors
    /// [`SimError::Spec`] when there is no record or more than [`RECORDS_MAX`], when a line is not
    /// below [`LINES_MAX`], or when the name has more than [`NAME_BYTES_MAX`] bytes or a control
    /// character.
    pub fn new(name: impl Into<String>, records: Vec<Record>) -> Result<Self, SimError> {
        let name = name.into();
        check_name(&name).map_err(SimError::Spec)?;
        if records.is_empty() || records.len() > RECORDS_MAX {
            return Err(SimError::Spec(format!(
                "a trace has from 1 to {RECORDS_MAX} records, and {name} would have {}",
                records.len()
            )));
        }
        if let Some(record) = records.iter().position(|record| record.line >= LINES_MAX) {
            return Err(SimError::Spec(format!(
                "lines are below {LINES_MAX}, and that of record {} of {name} is {}",
                record + 1,
                records[record].line
            )));
        }
        Ok(Self { name, records })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its records, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The instructions it covers; see [`Record::instructions`].
    pub fn instructions(&self) -> u64 {
        self.records.iter().map(Record::instructions).sum()
    }
}

/// Why `name` cannot be that of a trace. It is shown to people, so it must not steer their terminal.
fn check_name(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("the name of a trace has {NAME_BYTES_MAX} bytes at most"));
    }
    if name.contains(char::is_control) {
        return Err(format!("the name of a trace has no control characters, and {name:?} has"));
    }
    Ok(())
}
