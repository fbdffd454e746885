//! A recorded trace, whole or not at all.

use std::io::BufWriter;
use std::path::Path;

use oblivio_sim::SimError;
use oblivio_sim::trace::{Compression, Format, Trace};

use crate::error::CliError;
use crate::files;

/// Writes `trace` to `path` as USIMM reads it, compressed if the name ends so. A file that exists is
/// replaced once the new one is whole.
pub(super) fn write(trace: &Trace, path: &Path) -> Result<(), CliError> {
    let file = files::temporary_beside(path)?;
    let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
    let compression = if is_gzip { Compression::Gzip } else { Compression::None };
    let out = BufWriter::new(file.as_file());
    trace.write(Format::Usimm, compression, out).map_err(|error| match error {
        SimError::Output(error) => files::cannot_write(path, &error),
        refused => refused.into(),
    })?;
    file.persist(path).map(drop).map_err(|error| files::cannot_write(path, &error.error))
}
