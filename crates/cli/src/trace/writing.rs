//! Traces are written whole or not at all.

use std::io::BufWriter;
use std::path::Path;

use oblivio_sim::SimError;
use oblivio_sim::trace::{Compression, Format, Trace};

use crate::error::CliError;
use crate::files::{self, Kind, Unnamed};

/// Writes `trace` to `path` as USIMM reads it, compressed if the name ends so. A file that exists is
/// replaced once the new one is whole.
pub(super) fn write_recorded(trace: &Trace, path: &Path) -> Result<(), CliError> {
    files::refuse_other(path, Kind::Trace)?;
    let unnamed = Unnamed::begin(path)?;
    let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
    let compression = if is_gzip { Compression::Gzip } else { Compression::None };
    write(trace, &unnamed, Format::Usimm, compression)?;
    unnamed.name()
}

/// Writes `trace` to a file that has no name yet.
pub(super) fn write(
    trace: &Trace,
    unnamed: &Unnamed,
    format: Format,
    compression: Compression,
) -> Result<(), CliError> {
    let out = BufWriter::new(unnamed.file());
    trace.write(format, compression, out).map_err(|error| match error {
        SimError::Output(error) => files::cannot_write(unnamed.path(), &error),
        refused => refused.into(),
    })
}
