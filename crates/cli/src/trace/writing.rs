//! A trace file, whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use oblivio_sim::LINE_BYTES;
use oblivio_sim::trace::{Kind, Record};
use tempfile::NamedTempFile;

use crate::error::CliError;
use crate::files;

/// A trace in the making, under another name.
pub(super) struct TraceFile {
    path: PathBuf,
    file: NamedTempFile,
    out: Box<dyn Finish>,
}

impl TraceFile {
    /// Beside the place where it shall be.
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        let file = files::temporary_beside(path)?;
        let handle = file.reopen().map_err(|error| files::cannot_write(path, &error))?;
        let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
        let out: Box<dyn Finish> = if is_gzip {
            // The header has no time in it: the same records make the same file.
            Box::new(BufWriter::new(GzEncoder::new(handle, Compression::default())))
        } else {
            Box::new(BufWriter::new(handle))
        };
        Ok(Self { path: path.to_owned(), file, out })
    }

    pub(super) fn write(&mut self, record: Record) -> Result<(), CliError> {
        write_record(&mut self.out, record).map_err(|error| files::cannot_write(&self.path, &error))
    }

    /// Gives it its name.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let Self { path, file, out } = self;
        out.finish()
            .and_then(|()| file.persist(&path).map_err(|error| error.error))
            .map(drop)
            .map_err(|error| files::cannot_write(&path, &error))
    }
}

/// As USIMM reads it: `<gap> R 0x<address> 0x0`, `<gap> W 0x<address>`.
fn write_record(out: &mut dyn Write, Record { gap, kind, line }: Record) -> io::Result<()> {
    let address = line * LINE_BYTES;
    match kind {
        Kind::Read => writeln!(out, "{gap} R {address:#x} 0x0"),
        Kind::Write => writeln!(out, "{gap} W {address:#x}"),
    }
}

/// A writer that has an end to write.
trait Finish: Write {
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Finish for BufWriter<File> {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()
    }
}

impl Finish for BufWriter<GzEncoder<File>> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.into_inner().map_err(io::IntoInnerError::into_error)?.finish().map(drop)
    }
}
