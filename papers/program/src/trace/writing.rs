//! Writes traces. A file appears under its name only once it is complete.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use oblivio_cli::files::{self, FileKind, OutputTarget};
use oblivio_sim::SimError;
use oblivio_sim::trace::{Compression, Format, Trace};

use crate::error::ProgramError;

/// The kind of file that `trace record` may replace.
const TRACE: FileKind = FileKind::public("a trace of a program", |start| {
    files::is_text(start) || start.starts_with(&[0x1f, 0x8b])
});

/// Writes `trace` to `path` in USIMM's format, with gzip if the name ends in `.gz`. An existing
/// trace is replaced once the new file is complete. A file of another kind is not replaced.
pub(super) fn write_recorded(trace: &Trace, path: &Path) -> Result<(), ProgramError> {
    let output = OutputTarget::begin(path, TRACE)?;
    let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
    let compression = if is_gzip { Compression::Gzip } else { Compression::None };
    write(trace, output.file(), path, Format::Usimm, compression)?;
    Ok(output.finish()?)
}

/// Writes `trace` to an open file. `path` is its future name, for error messages.
pub(super) fn write(
    trace: &Trace,
    file: &File,
    path: &Path,
    format: Format,
    compression: Compression,
) -> Result<(), ProgramError> {
    let out = BufWriter::new(file);
    trace.write(format, compression, out).map_err(|error| match error {
        SimError::Output(error) => files::cannot_write(path, &error).into(),
        refused => refused.into(),
    })
}
