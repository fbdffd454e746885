//! Writes traces in any format.

use std::io::Write;

use super::{Compression, Format, Trace, binary, packing, ramulator, usimm};
use crate::SimError;

impl Trace {
    /// Writes the trace to `out`, record by record. The same trace gives the same bytes. Text
    /// formats do not contain the name.
    ///
    /// # Errors
    /// [`SimError::Trace`] if the format cannot represent the trace; no bytes are then written.
    /// Ramulator's format only has writes directly after a read. [`SimError::Output`] if writing to
    /// `out` fails.
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
