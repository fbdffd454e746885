//! The events of a view file, as they come. Its bytes are not trusted, and none of them are kept.

use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use oblivio_core::store::Capabilities;
use oblivio_core::view::{Event, csv, read_view};

use crate::error::CliError;
use crate::files;

/// A view file, to be read as often as it takes.
pub(crate) struct ViewInput {
    path: PathBuf,
    file: File,
}

impl ViewInput {
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let mut file = files::open(path)?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            // What comes through a pipe cannot be read twice.
            let mut kept = tempfile::tempfile().map_err(|error| {
                CliError::Output(format!("no temporary file can be made ({error}): give a file"))
            })?;
            io::copy(&mut file, &mut kept).map_err(|error| files::cannot_read(path, &error))?;
            file = kept;
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Names each event from the first on, and when it happened after the beginning of the recording, if the file
    /// says so. Answers what the store could do, if the file says that.
    pub(crate) fn each(
        &mut self,
        each: &mut dyn FnMut(&Event, Option<Duration>),
    ) -> Result<Option<Capabilities>, CliError> {
        let path = &self.path;
        self.file.rewind().map_err(|error| files::cannot_read(path, &error))?;
        let read = read_view(BufReader::new(&self.file)).and_then(|mut reader| {
            while let Some(event) = reader.next() {
                each(&event?, reader.micros().map(Duration::from_micros));
            }
            Ok(reader.capabilities())
        });
        read.map_err(|error| {
            CliError::Input(format!(
                "{} is not a whole view file: {error}; record the view again",
                path.display()
            ))
        })
    }

    /// Writes a view that is whole as comma-separated values.
    pub(super) fn write_csv(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.file.rewind()?;
        let reader = read_view(BufReader::new(&self.file)).map_err(io::Error::other)?;
        csv::write_csv(reader.map(|event| event.map_err(io::Error::other)), out)
    }
}
