//! A directory of saved trees.

use std::io::{self, Read, Write};
use std::path::Path;

use oblivio_cli::error::CliError;
use oblivio_cli::files::{self, AtomicFile, OutputDir};
use oblivio_lab::{LabError, Trees};

/// A directory with one file per tree.
pub(super) struct TreesDir(OutputDir);

impl TreesDir {
    /// Opens the given directory, and creates it if missing. `None` if no directory is given.
    pub(super) fn from_args(path: Option<&Path>) -> Result<Option<Box<dyn Trees>>, CliError> {
        let prepare = |path| Ok(Box::new(Self(OutputDir::prepare(path)?)) as Box<dyn Trees>);
        path.map(prepare).transpose()
    }
}

impl Trees for TreesDir {
    fn open(&self, name: &str) -> Result<Option<Box<dyn Read>>, LabError> {
        let path = self.0.path(name);
        if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        match files::open_regular(&path) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) => Err(LabError::Input(error.to_string())),
        }
    }

    fn replace(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let unnamed = AtomicFile::begin(&self.0.path(name)).map_err(not_kept)?;
        write(&mut unnamed.file())?;
        unnamed.persist().map_err(not_kept)
    }

    fn remove(&self, name: &str) -> Result<(), LabError> {
        let path = self.0.path(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(not_kept(files::cannot_write(&path, &error)))
            }
            _ => Ok(()),
        }
    }
}

fn not_kept(error: CliError) -> LabError {
    LabError::Output(error.to_string())
}
