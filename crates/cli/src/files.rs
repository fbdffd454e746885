//! Files, with errors that say what to do.

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

/// Opens a regular file to read. What is none is refused: a pipe may never begin, and a device never end.
pub fn open_regular(path: &Path) -> Result<File, CliError> {
    // To open a pipe would wait for somebody who writes to it.
    let opened = OpenOptions::new().read(true).custom_flags(NO_WAITING).open(path);
    let file = opened.map_err(|error| cannot_read(path, &error))?;
    let kind = file.metadata().map_err(|error| cannot_read(path, &error))?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = if kind.is_dir() { "a directory" } else { "a pipe or a device" };
    Err(CliError::Input(format!(
        "{} cannot be read: it is {what}, and no regular file; give a file, or copy into one what it gives",
        path.display()
    )))
}

/// Changes nothing of a regular file.
const NO_WAITING: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// A small file of text, of `bytes_max` bytes at most.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, CliError> {
    text_of(open(path)?, path, bytes_max)
}

/// The same, of a regular file.
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

/// Writes a whole file, or nothing of it.
pub fn write(path: &Path, contents: &str) -> Result<(), CliError> {
    Output::in_place_of_any(path)?.holding(contents)?.finish()
}

/// Why a file cannot be read.
pub fn cannot_read(path: &Path, error: &io::Error) -> CliError {
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
pub struct OutputDir(PathBuf);

impl OutputDir {
    /// Makes the directory if there is none.
    pub fn prepare(path: &Path) -> Result<Self, CliError> {
        match fs::create_dir_all(path) {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(CliError::Output(
                format!("{} is a file, and no directory: choose another place", path.display()),
            )),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Refuses what would keep a file of this name from being written in the end, hours after it began.
    pub fn refuse_directory(&self, name: &str) -> Result<(), CliError> {
        let path = self.path(name);
        if path.is_dir() {
            return Err(CliError::Output(format!(
                "{} is a directory, and a file of this name is written: remove it, or choose another --output",
                path.display()
            )));
        }
        Ok(())
    }

    /// Writes a whole file. Anyone who opens it meanwhile, or after an interruption, finds the one before as a whole.
    pub fn write(&self, name: &str, contents: &str) -> Result<PathBuf, CliError> {
        let path = self.path(name);
        Unnamed::with(&path, contents)?.name()?;
        Ok(path)
    }
}

/// What an output is. A file of another kind is not replaced: it may be a volume, a key, or the
/// state of a client.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, with an article.
    name: &'static str,
    /// Whether a file that begins with these bytes may be of this kind.
    begins_with: fn(&[u8]) -> bool,
    /// Whether only the owner may read a new one.
    is_private: bool,
}

impl Kind {
    /// `view record`, `--record-view`. Recorded shares of t + 1 servers reveal the blocks.
    pub(crate) const VIEW: Self =
        Self::private("a view file", |start| start.starts_with(b"OBLVIEW"));

    /// `view export`.
    pub(crate) const CSV: Self =
        Self::private("an exported view", |start| start.starts_with(b"order,"));

    /// `view show --svg`. It shows which buckets storage saw, and when.
    pub(crate) const PICTURE: Self = Self::private("a picture", |start| start.starts_with(b"<svg"));

    /// `plan --alloc-output`.
    pub(crate) const SLOTS: Self =
        Self::public("a file of slots", |start| is_text(start) && start.starts_with(b"{"));

    /// `--log`, which is appended to.
    pub(crate) const LOG: Self =
        Self::public("a log of this program", |start| is_text(start) && start.starts_with(b"20"));

    /// One that others may read, as the user's mask says.
    pub const fn public(name: &'static str, begins_with: fn(&[u8]) -> bool) -> Self {
        Self { name, begins_with, is_private: false }
    }

    const fn private(name: &'static str, begins_with: fn(&[u8]) -> bool) -> Self {
        Self { name, begins_with, is_private: true }
    }
}

/// Whether the start of a file is printable ASCII.
pub fn is_text(start: &[u8]) -> bool {
    start.iter().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~'))
}

/// Refuses to replace a file that is there and is of another kind. One that is empty is of any, and so is what is no file.
pub fn refuse_other(path: &Path, kind: Kind) -> Result<(), CliError> {
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
        "{path} exists, and is not {kind}: choose another name, or remove it first"
    )))
}

/// Of these it is told what a file is.
const START_BYTES: u64 = 24;

/// An output under way. It gets its name when it is whole; unless that goes well, nothing of it is left, and what had the name before stays.
pub struct Output(Begun);

enum Begun {
    File(Unnamed),
    /// What is there and no file, such as a pipe or a terminal, is written as it comes.
    Device(PathBuf, File),
}

impl Output {
    /// Begins one in place of a file of the same kind at most.
    pub fn begin(path: &Path, kind: Kind) -> Result<Self, CliError> {
        refuse_other(path, kind)?;
        let output = Self::in_place_of_any(path)?;
        if kind.is_private
            && let Begun::File(unnamed) = &output.0
            && path.symlink_metadata().is_err()
        {
            let private = unnamed.file().set_permissions(Permissions::from_mode(0o600));
            private.map_err(|error| cannot_write(path, &error))?;
        }
        Ok(output)
    }

    /// One with this in it.
    pub fn with(path: &Path, kind: Kind, text: &str) -> Result<Self, CliError> {
        Self::begin(path, kind)?.holding(text)
    }

    fn holding(self, text: &str) -> Result<Self, CliError> {
        self.file().write_all(text.as_bytes()).map_err(|error| self.failed(&error))?;
        Ok(self)
    }

    fn in_place_of_any(path: &Path) -> Result<Self, CliError> {
        let failed = |error: io::Error| cannot_write(path, &error);
        Ok(Self(match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let device = File::options().write(true).open(path).map_err(failed)?;
                Begun::Device(path.to_owned(), device)
            }
            Ok(found) => {
                // Who may not write to it may not replace it either.
                File::options().write(true).open(path).map_err(failed)?;
                // The file, and not a link that leads to it.
                let unnamed = Unnamed::begin(&path.canonicalize().map_err(failed)?)?;
                make_as_private(unnamed.file(), &found).map_err(failed)?;
                Begun::File(unnamed)
            }
            Err(_) => Begun::File(Unnamed::begin(path)?),
        }))
    }

    /// To write to.
    pub fn file(&self) -> &File {
        match &self.0 {
            Begun::File(unnamed) => unnamed.file(),
            Begun::Device(_, file) => file,
        }
    }

    /// Why it cannot be written.
    pub fn failed(&self, error: &io::Error) -> CliError {
        match &self.0 {
            Begun::File(unnamed) => cannot_write(unnamed.path(), error),
            Begun::Device(path, _) => cannot_write(path, error),
        }
    }

    /// It is whole.
    pub fn finish(self) -> Result<(), CliError> {
        match self.0 {
            Begun::File(unnamed) => unnamed.name(),
            Begun::Device(..) => Ok(()),
        }
    }
}

/// Writes a whole file, in place of one of the same kind at most.
pub fn replace(path: &Path, kind: Kind, contents: &str) -> Result<(), CliError> {
    refuse_other(path, kind)?;
    write(path, contents)
}

/// A file that is gone when it is dropped, on the same disk as `path`.
pub fn temporary_beside(path: &Path) -> Result<NamedTempFile, CliError> {
    Builder::new()
        .permissions(Permissions::from_mode(0o666)) // Less what the user's mask takes away.
        .tempfile_in(folder_of(path))
        .map_err(|error| cannot_write(path, &error))
}

/// Creates a folder with mode 0700. Uses an existing one as it is, and warns if other users may
/// enter it.
pub fn make_private_folder(path: &Path) -> Result<(), CliError> {
    if let Ok(found) = fs::metadata(path)
        && found.is_dir()
    {
        warning_about(path, &found).iter().for_each(|warning| output::remark(warning));
        return Ok(());
    }
    let made = private::dir_builder().create(path);
    made.map_err(|error| cannot_write(path, &error))
}

/// A warning if users other than the owner may enter a folder. It was made so on purpose, perhaps:
/// it is used all the same.
fn warning_about(path: &Path, found: &Metadata) -> Option<String> {
    (found.mode() & 0o077 != 0).then(|| {
        format!(
            "other users of this machine may enter {path}, and could read what is kept there: run \
             `chmod 700 {path}`",
            path = path.display()
        )
    })
}

/// Why a file cannot be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    let said = format!("{} cannot be written ({error})", path.display());
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            CliError::NoSpace(format!("{said}: allow longer files, or choose another place"))
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            CliError::NoSpace(format!("{said}: make room there, or choose another place"))
        }
        _ => CliError::Output(format!("{said}: choose another place")),
    }
}

/// A file that gets its name when it is whole. Before that nothing is left of it, not even if this program is killed, where the file system
/// knows files without a name.
pub struct Unnamed {
    path: PathBuf,
    holding: Holding,
}

enum Holding {
    /// One that has no name, and ends with the program.
    Nameless(File),
    /// Where the file system knows no such thing.
    Named(NamedTempFile),
}

impl Unnamed {
    /// Begins a file, beside where it will be.
    pub fn begin(path: &Path) -> Result<Self, CliError> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666); // Less what the user's mask takes away.
        let holding = match rustix::fs::open(folder_of(path), flags, mode) {
            Ok(file) => Holding::Nameless(file.into()),
            Err(_) => Holding::Named(temporary_beside(path)?),
        };
        Ok(Self { path: path.to_owned(), holding })
    }

    /// A file with this in it.
    pub fn with(path: &Path, text: &str) -> Result<Self, CliError> {
        let unnamed = Self::begin(path)?;
        match unnamed.file().write_all(text.as_bytes()) {
            Ok(()) => Ok(unnamed),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    /// Begins one for a name that no file has yet.
    pub fn begin_new(path: &Path) -> Result<Self, CliError> {
        if path.symlink_metadata().is_ok() { Err(exists(path)) } else { Self::begin(path) }
    }

    /// To write to.
    pub fn file(&self) -> &File {
        match &self.holding {
            Holding::Nameless(file) => file,
            Holding::Named(file) => file.as_file(),
        }
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name. A file that has the name is replaced. If that cannot be done, what was written stays under another name, which the
    /// error tells: it may have taken hours.
    pub fn name(self) -> Result<(), CliError> {
        let failed = |error: io::Error| cannot_write(&self.path, &error);
        // What was there before goes: what comes in its place has to be there after a power loss, too.
        self.file().sync_all().map_err(failed)?;
        let beside = match self.holding {
            Holding::Named(file) => file.into_temp_path(),
            // A name cannot be given in place of another: it is moved there.
            Holding::Nameless(file) => Builder::new()
                .make_in(folder_of(&self.path), |beside| link(&file, beside))
                .map_err(failed)?
                .into_temp_path(),
        };
        beside.persist(&self.path).map_err(|refused| {
            let path = self.path.display();
            let error = refused.error;
            match refused.path.keep() {
                Ok(kept) => CliError::Output(format!(
                    "{path} cannot be replaced ({error}): what was to be there is whole in {}, move it from there",
                    kept.display()
                )),
                Err(lost) => cannot_write(&self.path, &lost.error),
            }
        })
    }

    /// Gives it its name, unless a file has it by now.
    pub fn name_new(self) -> Result<(), CliError> {
        let named = match self.holding {
            Holding::Named(file) => {
                file.persist_noclobber(&self.path).map(drop).map_err(|it| it.error)
            }
            Holding::Nameless(file) => link(&file, &self.path),
        };
        named.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.path),
            _ => cannot_write(&self.path, &error),
        })
    }
}

/// Lets those read and write a new file who may do so with one that it is to replace, or only its owner.
fn make_as_private(file: &File, replaced: &Metadata) -> io::Result<()> {
    let mode = match fchown(file, Some(replaced.uid()), Some(replaced.gid())) {
        Ok(()) => replaced.mode(),
        Err(_) => replaced.mode() & !0o077,
    };
    file.set_permissions(Permissions::from_mode(mode))
}

/// Gives a file without a name one that no file has.
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, opened, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Where a file of this path is.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> CliError {
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return CliError::Output(format!(
            "{} is a device, a pipe or a socket, and a new file is written: choose a name that no \
             file has",
            path.display()
        ));
    }
    CliError::Output(format!(
        "{} exists already: remove it, or choose another name",
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
        let given_up = Output::begin(&link, Kind::CSV).unwrap();
        given_up.file().write_all(b"order,half").unwrap();
        drop(given_up);
        assert_eq!(fs::read(&path).unwrap(), b"order,old");
        let output = Output::begin(&link, Kind::CSV).unwrap();
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
        for kind in [Kind::VIEW, Kind::CSV, Kind::PICTURE] {
            Output::begin(&path, kind).unwrap().finish().unwrap();
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

    /// The output may have taken hours to make.
    #[test]
    fn what_cannot_get_its_name_is_kept_under_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view.csv");
        let output = Output::begin(&path, Kind::CSV).unwrap();
        output.file().write_all(b"order,whole").unwrap();
        fs::create_dir(&path).unwrap();
        let error = output.finish().unwrap_err().to_string();
        let kept = error.split("is whole in ").nth(1).unwrap().split(',').next().unwrap();
        assert_eq!(fs::read(kept).unwrap(), b"order,whole");
    }

    #[test]
    fn what_nobody_may_write_to_is_not_replaced_by_what_more_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view.csv");
        fs::write(&path, "order,old").unwrap();
        let is_root = fs::metadata(folder.path()).unwrap().uid() == 0;
        if is_root {
            std::os::unix::fs::chown(&path, Some(1234), Some(2345)).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            replace(&path, Kind::CSV, "order,new").unwrap();
            let found = fs::metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (1234, 2345, 0o640));
        } else {
            fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
            assert!(replace(&path, Kind::CSV, "order,new").is_err());
        }
    }

    #[test]
    fn a_file_is_seen_once_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let begun = Unnamed::begin_new(&path).unwrap();
        begun.file().write_all(b"secret").unwrap();
        assert_eq!(names(), 0, "whoever is killed now leaves nothing");
        begun.name_new().unwrap();
        assert_eq!((names(), fs::read(&path).unwrap()), (1, b"secret".to_vec()));
        assert!(Unnamed::begin_new(&path).is_err());
        Unnamed::with(&path, "new").unwrap().name().unwrap();
        assert_eq!((names(), fs::read(&path).unwrap()), (1, b"new".to_vec()));
        assert!(Unnamed::begin(&path).unwrap().name_new().is_err());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
