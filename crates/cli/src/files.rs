//! Opens, reads and writes files. Errors name the file and say what to do.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use oblivio_wire::private;
use tempfile::{Builder, NamedTempFile};

use crate::error::CliError;
use crate::output;

/// Opens a file to read.
pub fn open(path: &Path) -> Result<File, CliError> {
    File::open(path).map_err(|error| cannot_read(path, &error))
}

/// Opens a regular file to read. Refuses other kinds of files: a pipe may never deliver data, and a
/// device may never end.
pub fn open_regular(path: &Path) -> Result<File, CliError> {
    // Opening a pipe would block until another process opens it for writing.
    let opened = OpenOptions::new().read(true).custom_flags(NO_WAITING).open(path);
    let file = opened.map_err(|error| cannot_read(path, &error))?;
    let kind = file.metadata().map_err(|error| cannot_read(path, &error))?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = if kind.is_dir() { "a directory" } else { "a pipe or a device" };
    Err(CliError::Input(format!(
        "{} cannot be read: it is {what}, not a regular file; give a file, or copy the contents \
         into one",
        path.display()
    )))
}

/// The flag `O_NONBLOCK`, which has no effect on a regular file.
const NO_WAITING: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Reads a text file. Fails if it has more than `bytes_max` bytes or is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, CliError> {
    text_of(open(path)?, path, bytes_max)
}

/// Reads a text file as [`read_text`] does. Fails also if it is not a regular file.
pub fn read_regular_text(path: &Path, bytes_max: u64) -> Result<String, CliError> {
    text_of(open_regular(path)?, path, bytes_max)
}

fn text_of(file: File, path: &Path, bytes_max: u64) -> Result<String, CliError> {
    let mut text = String::new();
    let read = file.take(bytes_max + 1).read_to_string(&mut text);
    match read {
        Ok(bytes) if bytes as u64 > bytes_max => Err(CliError::Input(format!(
            "{} has more than {bytes_max} bytes: give a file that this program wrote",
            path.display()
        ))),
        Ok(_) => Ok(text),
        Err(error) => Err(cannot_read(path, &error)),
    }
}

/// Writes a whole file. If this fails, the previous file stays unchanged. A pipe or a device at
/// `path` is written directly.
pub fn write(path: &Path, contents: &str) -> Result<(), CliError> {
    OutputTarget::in_place_of_any(path)?.with_text(contents)?.finish()
}

/// The error for a file that cannot be read.
pub fn cannot_read(path: &Path, error: &io::Error) -> CliError {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; check the path",
        io::ErrorKind::PermissionDenied => "permission denied; change the file's permissions",
        io::ErrorKind::InvalidData => "it is not text; give a file that this program wrote",
        io::ErrorKind::IsADirectory => "it is a directory; give a file",
        _ => return CliError::Input(format!("{} cannot be read: {error}", path.display())),
    };
    CliError::Input(format!("{} cannot be read: {advice}", path.display()))
}

/// A directory to write to.
pub struct OutputDir(PathBuf);

impl OutputDir {
    /// Creates the directory if it does not exist.
    pub fn prepare(path: &Path) -> Result<Self, CliError> {
        match fs::create_dir_all(path) {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(CliError::Output(
                format!("{} is a file, not a directory: choose another place", path.display()),
            )),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    /// The path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Fails early if a directory has the name of a file that will be written, perhaps hours later.
    pub fn refuse_directory(&self, name: &str) -> Result<(), CliError> {
        let path = self.path(name);
        if path.is_dir() {
            return Err(CliError::Output(format!(
                "{} is a directory, but a file of this name must be written: remove it, or choose \
                 another --output",
                path.display()
            )));
        }
        Ok(())
    }

    /// Writes a whole file, and returns its path. Until the file is complete, a reader finds the
    /// previous one.
    pub fn write(&self, name: &str, contents: &str) -> Result<PathBuf, CliError> {
        let path = self.path(name);
        AtomicFile::with(&path, contents)?.persist()?;
        Ok(path)
    }
}

/// The kind of an output file. A file of another kind is not replaced: it may be a volume, a key,
/// or the state of a client.
#[derive(Clone, Copy)]
pub struct FileKind {
    /// The name of the kind, with its article.
    name: &'static str,
    /// Whether a file that begins with these bytes may be of this kind.
    begins_with: fn(&[u8]) -> bool,
    /// Whether only the owner may read a new file of this kind.
    is_private: bool,
}

impl FileKind {
    /// A view, written by `view record` and `--record-view`. It is private, because the recorded
    /// shares of t + 1 servers reveal the blocks.
    pub(crate) const VIEW: Self =
        Self::private("a view file", |start| start.starts_with(b"OBLVIEW"));

    /// Comma-separated values, written by `view export`.
    pub(crate) const CSV: Self =
        Self::private("an exported view", |start| start.starts_with(b"order,"));

    /// A picture, written by `view show --svg`. It shows which buckets storage saw, and when.
    pub(crate) const PICTURE: Self = Self::private("a picture", |start| start.starts_with(b"<svg"));

    /// An allocation of slots, written by `plan --alloc-output`.
    pub(crate) const SLOTS: Self =
        Self::public("a file of slots", |start| is_text(start) && start.starts_with(b"{"));

    /// A log, to which the program appends with `--log`.
    pub(crate) const LOG: Self =
        Self::public("a log of this program", |start| is_text(start) && start.starts_with(b"20"));

    /// A kind whose files other users may read, if the user's mask allows it.
    pub const fn public(name: &'static str, begins_with: fn(&[u8]) -> bool) -> Self {
        Self { name, begins_with, is_private: false }
    }

    const fn private(name: &'static str, begins_with: fn(&[u8]) -> bool) -> Self {
        Self { name, begins_with, is_private: true }
    }
}

/// Whether the start of a file consists of printable ASCII, tabs and line feeds.
pub fn is_text(start: &[u8]) -> bool {
    start.iter().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~'))
}

/// Refuses to replace a file of another kind. An empty file may be replaced, and so may a path that
/// is not a regular file.
pub fn refuse_other(path: &Path, kind: FileKind) -> Result<(), CliError> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    if !found.is_file() || found.len() == 0 {
        return Ok(());
    }
    let mut start = Vec::new();
    open(path)?
        .take(START_BYTES)
        .read_to_end(&mut start)
        .map_err(|error| cannot_read(path, &error))?;
    if (kind.begins_with)(&start) {
        return Ok(());
    }
    let (path, kind) = (path.display(), kind.name);
    Err(CliError::Output(format!(
        "{path} exists and is not {kind}: choose another name, or remove it first"
    )))
}

/// Bytes of a file from which its kind is recognized.
const START_BYTES: u64 = 24;

/// An output in progress. Its file gets its name when the output is complete. An output that is
/// dropped before that leaves no file, and a previous file with that name stays.
pub struct OutputTarget(TargetKind);

enum TargetKind {
    File(AtomicFile),
    /// An existing pipe, terminal or other special file, which is written directly.
    Device(PathBuf, File),
}

impl OutputTarget {
    /// Begins an output. Refuses to replace a file of another kind, unless the file is empty.
    pub fn begin(path: &Path, kind: FileKind) -> Result<Self, CliError> {
        refuse_other(path, kind)?;
        let output = Self::in_place_of_any(path)?;
        if kind.is_private
            && let TargetKind::File(atomic) = &output.0
            && path.symlink_metadata().is_err()
        {
            let private = atomic.file().set_permissions(Permissions::from_mode(0o600));
            private.map_err(|error| cannot_write(path, &error))?;
        }
        Ok(output)
    }

    /// Begins an output that holds `text`.
    pub fn with(path: &Path, kind: FileKind, text: &str) -> Result<Self, CliError> {
        Self::begin(path, kind)?.with_text(text)
    }

    fn with_text(self, text: &str) -> Result<Self, CliError> {
        self.file().write_all(text.as_bytes()).map_err(|error| self.failed(&error))?;
        Ok(self)
    }

    fn in_place_of_any(path: &Path) -> Result<Self, CliError> {
        let failed = |error: io::Error| cannot_write(path, &error);
        Ok(Self(match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let device = File::options().write(true).open(path).map_err(failed)?;
                TargetKind::Device(path.to_owned(), device)
            }
            Ok(found) => {
                // A user who may not write to the file may not replace it either.
                File::options().write(true).open(path).map_err(failed)?;
                // Replace the file itself, not a link to it.
                let atomic = AtomicFile::begin(&path.canonicalize().map_err(failed)?)?;
                make_as_private(atomic.file(), &found).map_err(failed)?;
                TargetKind::File(atomic)
            }
            Err(_) => TargetKind::File(AtomicFile::begin(path)?),
        }))
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        match &self.0 {
            TargetKind::File(atomic) => atomic.file(),
            TargetKind::Device(_, file) => file,
        }
    }

    /// The error for a failure to write this output.
    pub fn failed(&self, error: &io::Error) -> CliError {
        match &self.0 {
            TargetKind::File(atomic) => cannot_write(atomic.path(), error),
            TargetKind::Device(path, _) => cannot_write(path, error),
        }
    }

    /// Completes the output, and names the file.
    pub fn finish(self) -> Result<(), CliError> {
        match self.0 {
            TargetKind::File(atomic) => atomic.persist(),
            TargetKind::Device(..) => Ok(()),
        }
    }
}

/// Writes a whole file. Refuses to replace a file of another kind, unless the file is empty.
pub fn replace(path: &Path, kind: FileKind, contents: &str) -> Result<(), CliError> {
    refuse_other(path, kind)?;
    write(path, contents)
}

/// A file on the same file system as `path` that is deleted when dropped.
pub fn temporary_beside(path: &Path) -> Result<NamedTempFile, CliError> {
    Builder::new()
        .permissions(Permissions::from_mode(0o666)) // Reduced by the user's mask.
        .tempfile_in(parent_of(path))
        .map_err(|error| cannot_write(path, &error))
}

/// Creates a folder with mode 0700. Uses an existing one as it is, and warns if other users may
/// enter it.
pub fn make_private_folder(path: &Path) -> Result<(), CliError> {
    if let Ok(found) = fs::metadata(path)
        && found.is_dir()
    {
        warning_about(path, &found).iter().for_each(|warning| output::print_remark(warning));
        return Ok(());
    }
    let made = private::dir_builder().create(path);
    made.map_err(|error| cannot_write(path, &error))
}

/// A warning if users other than the owner may enter a folder. The permissions may be intended, so
/// the folder is used anyway.
fn warning_about(path: &Path, found: &Metadata) -> Option<String> {
    (found.mode() & 0o077 != 0).then(|| {
        format!(
            "other users of this machine may enter {path}, and could read what is kept there: run \
             `chmod 700 {path}`",
            path = path.display()
        )
    })
}

/// The error for a file that cannot be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    let message = format!("{} cannot be written ({error})", path.display());
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            CliError::NoSpace(format!("{message}: allow longer files, or choose another place"))
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            CliError::NoSpace(format!("{message}: make room there, or choose another place"))
        }
        _ => CliError::Output(format!("{message}: choose another place")),
    }
}

/// A file that is named when it is complete. Until then it leaves nothing behind, not even if this
/// program is killed, on file systems that support files without a name.
pub struct AtomicFile {
    path: PathBuf,
    temporary: TemporaryFile,
}

enum TemporaryFile {
    /// A file without a name, which ends with the process.
    Nameless(File),
    /// A temporary file, on file systems that do not support files without a name.
    Named(NamedTempFile),
}

impl AtomicFile {
    /// Begins a file in the folder of `path`.
    pub fn begin(path: &Path) -> Result<Self, CliError> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666); // Reduced by the user's mask.
        let temporary = match rustix::fs::open(parent_of(path), flags, mode) {
            Ok(file) => TemporaryFile::Nameless(file.into()),
            Err(_) => TemporaryFile::Named(temporary_beside(path)?),
        };
        Ok(Self { path: path.to_owned(), temporary })
    }

    /// A file that holds `text`, not yet named.
    pub fn with(path: &Path, text: &str) -> Result<Self, CliError> {
        let atomic = Self::begin(path)?;
        match atomic.file().write_all(text.as_bytes()) {
            Ok(()) => Ok(atomic),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    /// Begins a file in the folder of `path`. Fails if `path` exists.
    pub fn begin_new(path: &Path) -> Result<Self, CliError> {
        if path.symlink_metadata().is_ok() { Err(exists(path)) } else { Self::begin(path) }
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        match &self.temporary {
            TemporaryFile::Nameless(file) => file,
            TemporaryFile::Named(file) => file.as_file(),
        }
    }

    /// The path that the file will get.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names the file, and replaces a previous file of that name. If the previous file cannot be
    /// replaced, the contents stay in a file under another name, which the error gives, because
    /// making them may have taken hours.
    pub fn persist(self) -> Result<(), CliError> {
        let failed = |error: io::Error| cannot_write(&self.path, &error);
        // The previous file is lost, so the new one must survive a power loss.
        self.file().sync_all().map_err(failed)?;
        let beside = match self.temporary {
            TemporaryFile::Named(file) => file.into_temp_path(),
            // `linkat` cannot replace an existing name, so link under a temporary name and rename.
            TemporaryFile::Nameless(file) => Builder::new()
                .make_in(parent_of(&self.path), |beside| link(&file, beside))
                .map_err(failed)?
                .into_temp_path(),
        };
        beside.persist(&self.path).map_err(|refused| {
            let path = self.path.display();
            let error = refused.error;
            match refused.path.keep() {
                Ok(complete) => CliError::Output(format!(
                    "{path} cannot be replaced ({error}): the complete new file is in {}, move it \
                     from there",
                    complete.display()
                )),
                Err(lost) => cannot_write(&self.path, &lost.error),
            }
        })
    }

    /// Names the file, unless a file of that name exists by now.
    pub fn persist_new(self) -> Result<(), CliError> {
        let named = match self.temporary {
            TemporaryFile::Named(file) => {
                file.persist_noclobber(&self.path).map(drop).map_err(|it| it.error)
            }
            TemporaryFile::Nameless(file) => link(&file, &self.path),
        };
        named.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.path),
            _ => cannot_write(&self.path, &error),
        })
    }
}

/// Gives `file` the owner and mode of the file that it will replace. If the owner cannot be set,
/// the group and other users get no access to `file`.
fn make_as_private(file: &File, replaced: &Metadata) -> io::Result<()> {
    let mode = match fchown(file, Some(replaced.uid()), Some(replaced.gid())) {
        Ok(()) => replaced.mode(),
        Err(_) => replaced.mode() & !0o077,
    };
    file.set_permissions(Permissions::from_mode(mode))
}

/// Links a file without a name under a path that does not exist.
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, opened, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// The folder that holds `path`.
fn parent_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> CliError {
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return CliError::Output(format!(
            "{} is a device, a pipe or a socket, but a new file is needed: choose a name that no \
             file has",
            path.display()
        ));
    }
    CliError::Output(format!(
        "{} already exists: remove it, or choose another name",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_replaces_what_was_there_once_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("view.csv"), folder.path().join("link"));
        fs::write(&path, "order,old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let given_up = OutputTarget::begin(&link, FileKind::CSV).unwrap();
        given_up.file().write_all(b"order,half").unwrap();
        drop(given_up);
        assert_eq!(fs::read(&path).unwrap(), b"order,old");
        let output = OutputTarget::begin(&link, FileKind::CSV).unwrap();
        output.file().write_all(b"order,new").unwrap();
        output.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"order,new");
        assert!(link.is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(write(Path::new("/dev/full"), "text").is_err());
        write(Path::new("/dev/null"), "text").unwrap();
    }

    #[test]
    fn recordings_and_the_folders_of_servers_are_their_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let path = folder.path().join("it.view");
        for kind in [FileKind::VIEW, FileKind::CSV, FileKind::PICTURE] {
            OutputTarget::begin(&path, kind).unwrap().finish().unwrap();
            assert_eq!(mode(&path), 0o600);
            fs::remove_file(&path).unwrap();
        }
        let made = folder.path().join("made");
        make_private_folder(&made).unwrap();
        assert_eq!(mode(&made), 0o700);
        let warning = |mode| {
            fs::set_permissions(&made, Permissions::from_mode(mode)).unwrap();
            make_private_folder(&made).unwrap();
            warning_about(&made, &fs::metadata(&made).unwrap())
        };
        assert_eq!(warning(0o700), None);
        for open in [0o755, 0o750, 0o701] {
            assert!(warning(open).is_some_and(|it| it.contains("chmod 700")), "{open:o}");
        }
        assert_eq!(mode(&made), 0o701);
    }

    /// The output is kept under another name, because making it may have taken hours.
    #[test]
    fn an_output_that_cannot_get_its_name_is_kept_under_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view.csv");
        let output = OutputTarget::begin(&path, FileKind::CSV).unwrap();
        output.file().write_all(b"order,whole").unwrap();
        fs::create_dir(&path).unwrap();
        let error = output.finish().unwrap_err().to_string();
        let other_path = error.split("file is in ").nth(1).unwrap().split(',').next().unwrap();
        assert_eq!(fs::read(other_path).unwrap(), b"order,whole");
    }

    #[test]
    fn replacing_a_file_lets_no_other_user_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view.csv");
        fs::write(&path, "order,old").unwrap();
        let is_root = fs::metadata(folder.path()).unwrap().uid() == 0;
        if is_root {
            std::os::unix::fs::chown(&path, Some(1234), Some(2345)).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            replace(&path, FileKind::CSV, "order,new").unwrap();
            let found = fs::metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (1234, 2345, 0o640));
        } else {
            fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
            assert!(replace(&path, FileKind::CSV, "order,new").is_err());
        }
    }

    #[test]
    fn a_file_is_seen_once_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let begun = AtomicFile::begin_new(&path).unwrap();
        begun.file().write_all(b"secret").unwrap();
        assert_eq!(names(), 0, "a process killed now leaves nothing");
        begun.persist_new().unwrap();
        assert_eq!((names(), fs::read(&path).unwrap()), (1, b"secret".to_vec()));
        assert!(AtomicFile::begin_new(&path).is_err());
        AtomicFile::with(&path, "new").unwrap().persist().unwrap();
        assert_eq!((names(), fs::read(&path).unwrap()), (1, b"new".to_vec()));
        assert!(AtomicFile::begin(&path).unwrap().persist_new().is_err());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
