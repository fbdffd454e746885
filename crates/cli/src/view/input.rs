//! Reads the events of a view file one by one. The file is not trusted, and no events are kept in
//! memory.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oblivio_core::store::Capabilities;
use oblivio_core::view::{Observed, ViewServers, csv, read_view};

use super::parties::Parties;
use crate::error::CliError;
use crate::files;

/// A view file that can be read repeatedly.
pub(super) struct ViewInput {
    path: PathBuf,
    file: File,
    capabilities: Option<Capabilities>,
    servers: Option<ViewServers>,
}

impl ViewInput {
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let mut file = files::open(path)?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            file = copy_of_pipe(path, file)?;
        }
        file.rewind().map_err(|error| files::cannot_read(path, &error))?;
        let reader = read_view(&file).map_err(|error| not_whole(path, &error))?;
        let (capabilities, servers) = (reader.capabilities(), reader.servers());
        Ok(Self { path: path.to_owned(), file, capabilities, servers })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The capabilities of the store, if the file records them.
    pub(super) fn capabilities(&self) -> Option<Capabilities> {
        self.capabilities
    }

    /// The servers that hold shares, if the file records them.
    pub(super) fn servers(&self) -> Option<ViewServers> {
        self.servers
    }

    /// Passes every observation to `each`, with the time since the beginning of the recording if
    /// the file contains times.
    pub(super) fn each(
        &mut self,
        each: &mut dyn FnMut(&Observed, Option<Duration>),
    ) -> Result<(), CliError> {
        let path = &self.path;
        self.file.rewind().map_err(|error| files::cannot_read(path, &error))?;
        let read = read_view(BufReader::new(&self.file)).and_then(|mut reader| {
            while let Some(observed) = reader.next() {
                each(&observed?, reader.micros().map(Duration::from_micros));
            }
            Ok(())
        });
        read.map_err(|error| not_whole(path, &error))
    }

    /// Writes what the servers `parties` saw, or the whole view if `parties` is `None`, as
    /// comma-separated values. The view must be complete.
    pub(super) fn write_csv(
        &mut self,
        parties: Option<&Parties>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.file.rewind()?;
        let mut reader = read_view(BufReader::new(&self.file)).map_err(io::Error::other)?;
        let servers = reader.servers();
        let timed = iter::from_fn(|| {
            let observed = reader.next()?.map_err(io::Error::other);
            Some(observed.map(|observed| (observed, reader.micros())))
        });
        let is_shown = |observed: &Observed| parties.is_none_or(|parties| parties.saw(observed));
        let shown = timed.filter(|it| it.as_ref().map_or(true, |(observed, _)| is_shown(observed)));
        csv::write_csv(shown, servers, out)
    }
}

/// Copies a pipe, which cannot be read twice, to a file without a name. Parses the contents at the
/// same time, so that data other than a view is refused before it fills the disk.
fn copy_of_pipe(path: &Path, mut pipe: File) -> Result<File, CliError> {
    let mut file = tempfile::tempfile().map_err(|error| cannot_keep(&error))?;
    let mut failed = None;
    let tee = Tee { path, from: &mut pipe, to: &mut file, failed: &mut failed };
    let read = read_view(BufReader::new(tee))
        .and_then(|mut reader| reader.try_for_each(|observed| observed.map(drop)));
    match (read, failed) {
        (_, Some(error)) => Err(error),
        (Err(error), None) => Err(not_whole(path, &error)),
        (Ok(()), None) => Ok(file),
    }
}

fn cannot_keep(error: &io::Error) -> CliError {
    CliError::Output(format!(
        "cannot write a temporary file ({error}): give a file instead of a pipe"
    ))
}

fn not_whole(path: &Path, error: &impl fmt::Display) -> CliError {
    let path = path.display();
    CliError::Input(format!("{path} is not a complete view file: {error}; record the view again"))
}

/// A reader that also writes all bytes that it reads to a file.
struct Tee<'t> {
    path: &'t Path,
    from: &'t mut File,
    to: &'t mut File,
    /// The error that stopped the copying, if any.
    failed: &'t mut Option<CliError>,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Self { path, from, to, failed } = self;
        let bytes = from
            .read(buffer)
            .inspect_err(|error| **failed = Some(files::cannot_read(path, error)))?;
        to.write_all(&buffer[..bytes]).inspect_err(|error| **failed = Some(cannot_keep(error)))?;
        Ok(bytes)
    }
}
