//! The file that records the progress of a copy.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use oblivio::Location;
use oblivio_core::store::TreeShape;
use oblivio_volume::copying::{PROGRESS_BYTES, Progress, ProgressError};
use oblivio_wire::private;

use crate::args::CopyArgs;
use crate::error::CliError;
use crate::files;

/// The path of the progress file.
pub(super) struct ProgressFile(PathBuf);

impl ProgressFile {
    /// The file that `--progress` names, or the default file in the folder of the copy. Fails if
    /// the file is a part of either volume, or if no file is named and the copy is not on files.
    pub(super) fn of(args: &CopyArgs, shapes: &[TreeShape]) -> Result<Self, CliError> {
        let path = match &args.progress {
            Some(path) => path.clone(),
            None => beside(&args.to, shapes)?,
        };
        // It is replaced repeatedly, so it must not be a part of a volume.
        let file = Location::from(oblivio_store::Location::File(path.clone()));
        if let Some(path) = file.shared_file(&args.from).or(file.shared_file(&args.to)) {
            return Err(CliError::Input(format!(
                "{} is a part of a volume: choose another file with --progress",
                path.display()
            )));
        }
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Fails if a progress file exists.
    pub(super) fn check_vacant(&self) -> Result<(), CliError> {
        if self.0.symlink_metadata().is_err() {
            return Ok(());
        }
        Err(CliError::Input(format!(
            "{} exists, so a copy was begun: continue it with --resume; or remove this file and \
             the incomplete copy; or choose another file with --progress",
            self.0.display()
        )))
    }

    /// The recorded progress, if any.
    pub(super) fn read(&self) -> Result<Option<Progress>, CliError> {
        let path = self.0.display();
        let mut bytes = Vec::new();
        match self.0.try_exists() {
            Ok(false) => return Ok(None),
            there => there.map_err(|error| files::cannot_read(&self.0, &error))?,
        };
        let file = files::open_regular(&self.0)?;
        file.take(PROGRESS_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| files::cannot_read(&self.0, &error))?;
        Progress::decode(&bytes).map(Some).map_err(|error| {
            let message = format!("{path}: {error}");
            match error {
                ProgressError::UnknownVersion(_) => CliError::UnknownVersion(message),
                _ => CliError::Input(message),
            }
        })
    }

    /// The error for a resumed copy without a progress file.
    pub(super) fn is_missing(&self) -> CliError {
        CliError::Input(format!(
            "there is no {}, so no copy can be resumed: give the same locations as before, and the \
             file of --progress if you chose one. If nothing was copied yet, leave --resume out",
            self.0.display()
        ))
    }

    /// Replaces the recorded progress. If the new record cannot be written, the previous one stays.
    pub(super) fn record(&self, progress: &Progress) -> io::Result<()> {
        let new = self.next();
        // Remove and do not follow a link of this name, which another user of the folder may have
        // made.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => (),
        }
        let mut file = private::file_options().write(true).create_new(true).open(&new)?;
        let written = file.write_all(&progress.encode()).and_then(|()| file.sync_all());
        written.and_then(|()| fs::rename(&new, &self.0)).inspect_err(|_| {
            // The first error says more than an error of the clean-up.
            let _ = fs::remove_file(&new);
        })?;
        self.sync_name()
    }

    /// Removes the progress file of a complete copy.
    pub(super) fn remove(&self) -> io::Result<()> {
        // Left if an attempt was killed while it recorded the last progress.
        let _ = fs::remove_file(self.next());
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// The path of the next record, before it replaces the file.
    fn next(&self) -> PathBuf {
        with_suffix(&self.0, ".new")
    }

    fn sync_name(&self) -> io::Result<()> {
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// The default path of the progress file: in the folder of the first file of the copy.
fn beside(to: &Location, shapes: &[TreeShape]) -> Result<PathBuf, CliError> {
    match to.files_needed(shapes)?.first() {
        Some((path, _)) => Ok(with_suffix(path, ".copying")),
        None => Err(CliError::Input(format!(
            "{to} is not a file, so the progress of the copy cannot be recorded beside it: choose \
             a file with --progress"
        ))),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use oblivio_volume::copying::VolumeFingerprint;

    use super::*;

    /// In a folder that others may write to, an attacker may place a link with the name of the next
    /// record. Recording the progress must not overwrite the file that the link leads to.
    #[test]
    fn a_link_in_place_of_the_next_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy.copying");
        let (file, precious) = (ProgressFile(path), folder.path().join("precious"));
        fs::write(&precious, "precious").unwrap();
        symlink(&precious, file.next()).unwrap();
        let progress = Progress::begin(VolumeFingerprint([7; 32]));
        file.record(&progress).unwrap();
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
        assert_eq!(file.read().unwrap(), Some(progress));
        assert_eq!(fs::metadata(file.path()).unwrap().mode() & 0o777, 0o600);
    }
}
