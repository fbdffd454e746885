//! Files, with errors that say what to do.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::error::CliError;

/// Opens a file to read.
pub(crate) fn open(path: &Path) -> Result<File, CliError> {
    File::open(path).map_err(|error| cannot_read(path, &error))
}

/// A small file of text, of `bytes_max` bytes at most.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Result<String, CliError> {
    let mut text = String::new();
    let read = open(path)?.take(bytes_max + 1).read_to_string(&mut text);
    match read {
        Ok(bytes) if bytes as u64 > bytes_max => Err(CliError::Input(format!(
            "{} has more than {bytes_max} bytes: give a file that this program wrote",
            path.display()
        ))),
        Ok(_) => Ok(text),
        Err(error) => Err(cannot_read(path, &error)),
    }
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, contents: &str) -> Result<(), CliError> {
    fs::write(path, contents).map_err(|error| cannot_write(path, &error))
}

/// Why a file cannot be read.
pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> CliError {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; check the path",
        io::ErrorKind::PermissionDenied => "you may not read it; change its permissions",
        io::ErrorKind::InvalidData => "it is not text; give a file that this program wrote",
        io::ErrorKind::IsADirectory => "it is a directory; give a file",
        _ => return CliError::Input(format!("{} cannot be read: {error}", path.display())),
    };
    CliError::Input(format!("{} cannot be read: {advice}", path.display()))
}

/// A directory to write to.
pub(crate) struct OutputDir(PathBuf);

impl OutputDir {
    /// Makes the directory if there is none.
    pub(crate) fn prepare(path: &Path) -> Result<Self, CliError> {
        match fs::create_dir_all(path) {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a whole file.
    pub(crate) fn write(&self, name: &str, contents: &str) -> Result<PathBuf, CliError> {
        let path = self.path(name);
        write(&path, contents)?;
        Ok(path)
    }
}

/// Creates a file, or empties it.
pub(crate) fn create(path: &Path) -> Result<BufWriter<File>, CliError> {
    File::create(path).map(BufWriter::new).map_err(|error| cannot_write(path, &error))
}

/// A file that is gone when it is dropped, on the same disk as `path`.
pub(crate) fn temporary_beside(path: &Path) -> Result<NamedTempFile, CliError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Builder::new()
        .permissions(Permissions::from_mode(0o666)) // Less what the user's mask takes away.
        .tempfile_in(directory.unwrap_or(Path::new(".")))
        .map_err(|error| cannot_write(path, &error))
}

/// Why a file cannot be written.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    CliError::Output(format!(
        "{} cannot be written ({error}): choose another place",
        path.display()
    ))
}

/// A file that gets its name when it is whole. Unless that goes well, nothing is left of it.
pub(crate) struct Unnamed {
    path: PathBuf,
    file: NamedTempFile,
}

impl Unnamed {
    /// Begins a file, beside where it will be.
    pub(crate) fn begin(path: &Path) -> Result<Self, CliError> {
        Ok(Self { path: path.to_owned(), file: temporary_beside(path)? })
    }

    /// A file with this in it.
    pub(crate) fn with(path: &Path, text: &str) -> Result<Self, CliError> {
        let unnamed = Self::begin(path)?;
        match unnamed.file().write_all(text.as_bytes()) {
            Ok(()) => Ok(unnamed),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    /// Begins one for a name that no file has yet.
    pub(crate) fn begin_new(path: &Path) -> Result<Self, CliError> {
        if path.symlink_metadata().is_ok() { Err(exists(path)) } else { Self::begin(path) }
    }

    /// To write to.
    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Where it will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name. A file that has the name is replaced.
    pub(crate) fn name(self) -> Result<(), CliError> {
        match self.file.persist(&self.path) {
            Ok(_) => Ok(()),
            Err(error) => Err(cannot_write(&self.path, &error.error)),
        }
    }

    /// Gives it its name, unless a file has it by now.
    pub(crate) fn name_new(self) -> Result<(), CliError> {
        match self.file.persist_noclobber(&self.path) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(exists(&self.path))
            }
            Err(error) => Err(cannot_write(&self.path, &error.error)),
        }
    }
}

fn exists(path: &Path) -> CliError {
    CliError::Output(format!(
        "{} exists already: remove it, or choose another name",
        path.display()
    ))
}
