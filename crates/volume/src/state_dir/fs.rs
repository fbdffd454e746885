//! A state directory in the file system.
//!
//! Anyone who can put files into the directory could put old ones back. So only its owner may enter
//! it. The directory is held open, and its files are opened relative to it. So while it is used,
//! the directory cannot be exchanged, and no file can be replaced with a link.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat};
use rustix::process::geteuid;

use super::fs_file::FsStateFile;
use super::retry::retry;
use super::{CHUNK_BYTES, StateDir, StateFile, StateSource};
use crate::error::{VolumeError, VolumeErrorKind, room_advice};

/// The file that a process locks while it uses the directory.
const LOCK_NAME: &str = "lock";

/// The result of locking.
type Locked = Result<(), fs::TryLockError>;

/// A directory that only its owner may enter. One process uses it at a time, or several only read.
pub struct FsStateDir {
    dir: OwnedFd,
    /// The lock file. Its lock is held while it is open.
    _lock: File,
}

impl FsStateDir {
    /// Creates the directory if it does not exist, and locks it.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Io`] or [`VolumeErrorKind::NoSpace`] when it cannot be created, and the
    /// errors of [`Self::open`].
    pub fn create(path: &Path) -> Result<Self, VolumeError> {
        make_durably(path).map_err(|error| cannot_make(path, error))?;
        Self::open(path)
    }

    /// Opens and locks a directory.
    ///
    /// # Errors
    /// [`VolumeErrorKind::StateDamaged`] when it does not exist or is no directory,
    /// [`VolumeErrorKind::InvalidRequest`] when it is a link, another user's, or open to others,
    /// [`VolumeErrorKind::Locked`] when another process uses it, [`VolumeErrorKind::Io`] when it
    /// cannot be entered, [`VolumeErrorKind::NoSpace`] when it has no room for its lock file.
    pub fn open(path: &Path) -> Result<Self, VolumeError> {
        Self::take(path, |dir, path| {
            let lock = open_in(dir, LOCK_NAME, OFlags::WRONLY | OFlags::CREATE)
                .map_err(|error| unusable(path, error))?;
            let locked = lock.try_lock();
            Ok((lock, locked))
        })
    }

    /// Opens a directory to read only, under a lock that readers share. The file system may be
    /// read-only. The caller must not write to the directory.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_to_read(path: &Path) -> Result<Self, VolumeError> {
        Self::take(path, |dir, path| {
            let lock = open_in(dir, LOCK_NAME, OFlags::RDONLY)
                .or_else(|_| open_in(dir, LOCK_NAME, OFlags::RDONLY | OFlags::CREATE))
                .map_err(|error| without_lock(path, error))?;
            let locked = lock.try_lock_shared();
            Ok((lock, locked))
        })
    }

    /// Opens a directory and locks it with `lock`.
    fn take(
        path: &Path,
        lock: impl FnOnce(&OwnedFd, &Path) -> Result<(File, Locked), VolumeError>,
    ) -> Result<Self, VolumeError> {
        // A trailing slash would follow a link.
        let path: PathBuf = path.components().collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = retry(|| Ok(rustix::fs::open(&path, flags, Mode::empty())?))
            .map_err(|error| not_a_directory(&path, error))?;
        let stat = rustix::fs::fstat(&dir).map_err(|error| unusable(&path, error.into()))?;
        check_private(&path, &stat)?;
        let (lock, locked) = lock(&dir, &path)?;
        match locked {
            Ok(()) => Ok(Self { dir, _lock: lock }),
            Err(fs::TryLockError::WouldBlock) => Err(VolumeError::new(
                VolumeErrorKind::Locked,
                format!(
                    "the client's directory {} is in use: another process has the volume open, or \
                     this one. Stop it first",
                    path.display()
                ),
            )),
            Err(fs::TryLockError::Error(error)) => Err(unusable(&path, error)),
        }
    }

    fn names_once(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.dir)? {
            // Names that are not UTF-8 are not ours.
            if let Ok(name) = entry?.file_name().to_str()
                && ![".", "..", LOCK_NAME].contains(&name)
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        open_in(&self.dir, name, flags)
    }
}

/// Opens a file of a directory without following a link. A new file is readable by its owner only.
fn open_in(dir: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || Ok(rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?);
    retry(open).map(File::from)
}

/// Checks that the directory belongs to the user of this process and that no other user may enter
/// it.
fn check_private(path: &Path, stat: &Stat) -> Result<(), VolumeError> {
    let refused = |message| Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message));
    let (owner, user) = (stat.st_uid, geteuid().as_raw());
    if owner != user {
        return refused(format!(
            "the client's directory {} belongs to user {owner}, and this program runs as user \
             {user}: run it as user {owner}, or name another directory",
            path.display()
        ));
    }
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        return refused(format!(
            "other users may enter the client's directory {path} and could put old files back: run \
             `chmod 700 {path}` if none did, or name another directory",
            path = path.display()
        ));
    }
    Ok(())
}

/// Creates a directory and its missing parents, durably.
fn make_durably(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let parents = missing.iter().filter_map(|made| made.parent());
    // The parent of a relative path may be the empty path, which means the current directory.
    parents
        .map(|parent| if parent == Path::new("") { Path::new(".") } else { parent })
        .try_for_each(|parent| retry(|| File::open(parent))?.sync_all())
}

/// The error for a path that does not open as a directory.
fn not_a_directory(path: &Path, error: io::Error) -> VolumeError {
    if path.is_symlink() {
        return VolumeError::new(
            VolumeErrorKind::InvalidRequest,
            format!(
                "the client's directory {} is a symbolic link: name the directory itself",
                path.display()
            ),
        );
    }
    if path.is_dir() {
        return unusable(path, error);
    }
    VolumeError::new(
        VolumeErrorKind::StateDamaged,
        format!(
            "the client's directory {} does not exist: name the directory that the volume was last \
             used with. Without it the blocks cannot be found",
            path.display()
        ),
    )
}

/// The error for a lock file that cannot be opened to read.
fn without_lock(path: &Path, error: io::Error) -> VolumeError {
    if error.kind() != io::ErrorKind::ReadOnlyFilesystem {
        return unusable(path, error);
    }
    VolumeError::caused_by(
        VolumeErrorKind::Io,
        format!(
            "the client's directory {} has no file `{LOCK_NAME}` and is on a read-only file \
             system, so it cannot be locked: copy it with `cp -a`, and name the copy",
            path.display()
        ),
        error,
    )
}

/// The error for a directory that cannot be created.
fn cannot_make(path: &Path, error: io::Error) -> VolumeError {
    let kind = VolumeErrorKind::of_file(&error);
    let or_room = match room_advice(&error) {
        "" => ": ".into(),
        advice => format!("{advice}, or "),
    };
    let message = format!(
        "cannot create the client's directory {} ({error}){or_room}choose another client's \
         directory",
        path.display()
    );
    VolumeError::caused_by(kind, message, error)
}

fn unusable(path: &Path, error: io::Error) -> VolumeError {
    let what = format!("the client's directory {} cannot be used", path.display());
    VolumeError::of_client_directory(&what, error)
}

impl StateDir for FsStateDir {
    fn names(&self) -> io::Result<Vec<String>> {
        retry(|| self.names_once())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>> {
        Ok(Box::new(self.file(name, OFlags::RDONLY)?))
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let file = self.file(name, OFlags::RDWR)?;
        let mut chunk = vec![0; CHUNK_BYTES as usize];
        let mut at = 0;
        loop {
            let bytes = retry(|| file.read_at(&mut chunk, at))?;
            if bytes == 0 {
                return file.sync_data();
            }
            file.write_all_at(&chunk[..bytes], at)?;
            at += bytes as u64;
        }
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Ok(Box::new(FsStateFile::new(self.file(name, flags)?)))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        retry(|| Ok(rustix::fs::renameat(&self.dir, from, &self.dir, to)?))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        retry(|| Ok(rustix::fs::unlinkat(&self.dir, name, AtFlags::empty())?))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        retry(|| Ok(rustix::fs::fsync(&self.dir)?))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;
    use std::time::Duration;
    use std::{env, thread};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;
    use crate::state_dir::{replace, write_again};

    fn kind(opened: Result<FsStateDir, VolumeError>) -> VolumeErrorKind {
        opened.map(drop).unwrap_err().kind()
    }

    fn message(opened: Result<FsStateDir, VolumeError>) -> String {
        let error = opened.map(drop).unwrap_err();
        assert_eq!(error.kind(), VolumeErrorKind::InvalidRequest, "{error}");
        error.to_string()
    }

    #[test]
    fn a_directory_is_its_owners_alone_and_used_by_one() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b");
        assert_eq!(kind(FsStateDir::open(&path)), VolumeErrorKind::StateDamaged);
        assert!(!home.path().join("a").exists(), "opening it created it");

        let mut dir = FsStateDir::create(&path).unwrap();
        assert_eq!(kind(FsStateDir::open(&path)), VolumeErrorKind::Locked);
        dir.create("file").unwrap().append(b"secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("file"))), (0o700, 0o600));
        assert_eq!(dir.names().unwrap(), ["file"]);

        drop(dir);
        assert_eq!(FsStateDir::open(&path).unwrap().read("file").unwrap(), b"secret");
    }

    #[test]
    fn a_directory_is_read_by_many_or_written_by_one() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state");
        let mut writer = FsStateDir::create(&path).unwrap();
        assert_eq!(kind(FsStateDir::open_to_read(&path)), VolumeErrorKind::Locked);
        writer.create("file").unwrap().append(b"secret").unwrap();
        drop(writer);

        let readers = [FsStateDir::open_to_read(&path), FsStateDir::open_to_read(&path)];
        assert_eq!(kind(FsStateDir::open(&path)), VolumeErrorKind::Locked);
        for reader in readers {
            assert_eq!(reader.unwrap().read("file").unwrap(), b"secret");
        }
        // The lock file may be missing in a copy.
        fs::remove_file(path.join(LOCK_NAME)).unwrap();
        drop(FsStateDir::open_to_read(&path).unwrap());
        drop(FsStateDir::open(&path).unwrap());
    }

    #[test]
    fn a_file_in_the_path_of_the_directory_is_an_io_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = FsStateDir::create(&file.path().join("x")).map(drop).unwrap_err();
        assert_eq!(error.kind(), VolumeErrorKind::Io);
        assert!(error.to_string().contains("cannot create"), "{error}");
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("state");
        drop(FsStateDir::create(&path).unwrap());
        for mode in [0o755, 0o770, 0o710, 0o701, 0o1702] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            for opened in [FsStateDir::open(&path), FsStateDir::create(&path)] {
                let message = message(opened);
                assert!(message.contains(&format!("chmod 700 {}", path.display())), "{message}");
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        FsStateDir::open(&path).unwrap();
    }

    #[test]
    fn a_directory_of_another_user_is_refused_to_root_as_well() {
        let home = tempfile::tempdir().unwrap();
        let mut path = home.path().join("state");
        drop(FsStateDir::create(&path).unwrap());
        if geteuid().is_root() {
            let other = rustix::fs::Uid::from_raw(geteuid().as_raw() + 1);
            rustix::fs::chown(&path, Some(other), None).unwrap();
        } else {
            path = "/".into();
        }
        let message = message(FsStateDir::open(&path));
        assert!(message.contains("belongs to user"), "{message}");
    }

    #[test]
    fn links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (path, link) = (home.path().join("state"), home.path().join("link"));
        drop(FsStateDir::create(&path).unwrap());
        symlink(&path, &link).unwrap();
        for link in [link.clone(), link.join(""), link.join(".")] {
            let message = message(FsStateDir::open(&link));
            assert!(message.contains("name the directory itself"), "{message}");
        }

        fs::write(home.path().join("elsewhere"), b"old").unwrap();
        symlink("../elsewhere", path.join("state-1")).unwrap();
        let mut dir = FsStateDir::open(&path).unwrap();
        assert!(dir.read("state-1").is_err());
        assert!(dir.sync("state-1").is_err());
        drop(dir);
        fs::remove_file(path.join(LOCK_NAME)).unwrap();
        symlink("../elsewhere", path.join(LOCK_NAME)).unwrap();
        assert_eq!(kind(FsStateDir::open(&path)), VolumeErrorKind::Io);
    }

    #[test]
    fn a_file_that_is_written_again_is_the_same_one_under_its_name() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("client");
        let mut dir = FsStateDir::create(&path).unwrap();
        for bytes in [0, 1, CHUNK_BYTES as usize, 2 * CHUNK_BYTES as usize + 7] {
            let contents: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            replace(&mut dir, "state-1", &contents).unwrap();
            // An interrupted attempt left this file.
            dir.create("state-1.new").unwrap().append(b"a part").unwrap();
            let mut before = dir.open("state-1").unwrap();
            write_again(&mut dir, "state-1").unwrap();
            assert!(dir.read("state-1").unwrap() == contents, "{bytes} bytes");
            assert_eq!(dir.names().unwrap(), ["state-1"]);
            // A reader that had the old file open still reads it.
            let mut read = Vec::new();
            before.read_to_end(&mut read).unwrap();
            assert!(read == contents, "{bytes} bytes");
        }
    }

    #[test]
    fn a_directory_that_replaces_it_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let (path, away) = (home.path().join("state"), home.path().join("away"));
        let mut dir = FsStateDir::create(&path).unwrap();
        fs::rename(&path, &away).unwrap();
        drop(FsStateDir::create(&path).unwrap());
        dir.create("a").unwrap().append(b"1").unwrap();
        dir.rename("a", "b").unwrap();
        dir.sync_names().unwrap();
        assert_eq!(
            (dir.names().unwrap(), fs::read(away.join("b")).unwrap()),
            (vec!["b".into()], vec![b'1'])
        );
        assert!(!path.join("b").exists());
        dir.remove("b").unwrap();
        assert!(!away.join("b").exists());
    }

    /// Operations succeed after a wait if another thread or process uses all file descriptors for a
    /// short time. Otherwise a checkpoint of an open disk could fail.
    #[test]
    fn a_shortage_of_descriptors_that_passes_fails_nothing() {
        const IN_CHILD: &str = "OBLIVIO_TEST_LACKS_DESCRIPTORS";
        if env::var_os(IN_CHILD).is_none() {
            // The limit applies to the whole process, and other tests run in this one.
            let this = "state_dir::fs::tests::a_shortage_of_descriptors_that_passes_fails_nothing";
            let mut child = Command::new(env::current_exe().unwrap());
            let child = child.args([this, "--exact", "--nocapture"]).env(IN_CHILD, "1");
            let output = child.output().unwrap();
            let message = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && message.contains("1 passed"), "{output:?}");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let mut dir = FsStateDir::create(&home.path().join("client")).unwrap();
        let enough = getrlimit(Resource::Nofile);
        let limit = |limit| setrlimit(Resource::Nofile, limit).unwrap();
        let mut while_short = |act: &mut dyn FnMut(&mut FsStateDir) -> io::Result<()>| {
            limit(Rlimit { current: Some(0), ..enough });
            assert!(File::open("/dev/null").is_err());
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(120));
                    limit(enough);
                });
                act(&mut dir).unwrap();
            });
        };
        while_short(&mut |dir| dir.create("a")?.append(b"kept"));
        while_short(&mut |dir| dir.sync("a"));
        while_short(&mut |dir| dir.names().map(|names| assert_eq!(names, ["a"])));
        while_short(&mut |dir| dir.read("a").map(|read| assert_eq!(read, b"kept")));
    }
}
