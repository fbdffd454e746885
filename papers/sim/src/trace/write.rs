//! Writing a trace.

use std::io::Write;

use super::{Compression, Format, Trace, binary, packing, ramulator, usimm};
use crate::SimError;

impl Trace {
    /// Writes the trace to `out`, record by record. The same trace gives the same bytes. Text has no
    /// place for the name.
    ///
    /// # Errors
    /// [`SimError::Trace`] when the format cannot hold the trace, before anything is written: that of
    /// Ramulator has no place for a write that does not come right after a read. [`SimError::Output`]
    /// when `out` fails.
    pub fn write(
        &self,
        format: Format,
        compression: Compression,
        out: impl Write,
    ) -> Result<(), SimError> {
        if format == Format::Ramulator {
            ramulator::check(self)?;
        }
        let written = packing::pack(compression, out, |out| match format {
            Format::Usimm => usimm::write(&self.records, out),
            Format::Ramulator => ramulator::write(&self.records, out),
            Format::Binary => binary::write(self, out),
        });
        written.map_err(SimError::Output)
    }
}
