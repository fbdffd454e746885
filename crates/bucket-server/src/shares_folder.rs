//! The files of the shares of a volume, in a folder next to its store.
//!
//! The folder is created with the first file. A file is created under a temporary name and renamed
//! once it is complete.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use oblivio_shares::host::{Folder, ShareFile};
use oblivio_wire::private;
use rustix::fs::Advice;

use super::disk::{Disk, System, sync_folder};

/// The name of the folder.
const NAME: &str = "shares";

/// The suffix of an incomplete file.
const NOT_WHOLE: &str = ".next";

/// The folder of one volume's shares. It need not exist.
pub(super) struct SharesFolder {
    volume: PathBuf,
    path: PathBuf,
}

/// An open file.
struct Opened(File);

impl SharesFolder {
    /// The folder next to the store in `volume`.
    pub(super) fn new(volume: &Path) -> Self {
        Self { volume: volume.to_owned(), path: volume.join(NAME) }
    }

    /// Creates a file with contents from `fill`. The file gets its name once `fill` has returned.
    fn make(&self, name: &str, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        match private::dir_builder().create(&self.path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
            made => {
                made?;
                sync_folder(&System, &self.volume)?;
            }
        }
        let next = self.path.join(format!("{name}{NOT_WHOLE}"));
        let mut file = System.create(&next)?;
        fill(&mut file)?;
        System.sync(&file)?;
        System.rename(&next, &self.path.join(name))?;
        sync_folder(&System, &self.path)
    }
}

impl Folder for SharesFolder {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.make(name, |file| System.append(file, bytes))
    }

    fn open(&self, name: &str, bytes: u64, may_be_new: bool) -> io::Result<Box<dyn ShareFile>> {
        let path = self.path.join(name);
        let open = || File::options().read(true).write(true).open(&path);
        let file = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound && !may_be_new => {
                let message = format!("the file {name} of shares is missing");
                return Err(io::Error::new(ErrorKind::InvalidData, message));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.make(name, |file| file.set_len(bytes))?;
                open()?
            }
            opened => opened?,
        };
        let found = file.metadata()?.len();
        if found != bytes {
            let message = format!("a file of shares has {found} bytes and should have {bytes}");
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        Ok(Box::new(Opened(file)))
    }
}

impl ShareFile for Opened {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        // A hint: without it, reads are slower.
        let _ = rustix::fs::fadvise(&self.0, offset, NonZeroU64::new(bytes), Advice::WillNeed);
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// The total length of the share files of a volume, in bytes.
pub(super) fn bytes(volume: &Path) -> io::Result<u64> {
    sum(volume, Metadata::len)
}

/// The disk space that the share files of a volume take, in bytes.
pub(super) fn allocated_bytes(volume: &Path) -> io::Result<u64> {
    sum(volume, |file| file.blocks() * STAT_BLOCK_BYTES)
}

/// The unit of `st_blocks` in bytes.
const STAT_BLOCK_BYTES: u64 = 512;

fn sum(volume: &Path, of: impl Fn(&Metadata) -> u64) -> io::Result<u64> {
    let entries = match fs::read_dir(volume.join(NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    entries.map(|entry| Ok(of(&entry?.metadata()?))).sum()
}

/// Removes the folder, if it exists.
pub(super) fn remove(volume: &Path) -> io::Result<()> {
    match fs::remove_dir_all(volume.join(NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_their_contents_and_count_with_their_length() {
        let volume = tempfile::tempdir().unwrap();
        let folder = SharesFolder::new(volume.path());
        assert_eq!(folder.read("state").unwrap(), None);
        assert_eq!(bytes(volume.path()).unwrap(), 0);
        folder.keep("state", b"one").unwrap();
        folder.keep("state", b"other").unwrap();
        assert_eq!(folder.read("state").unwrap().as_deref(), Some(&b"other"[..]));
        let file = folder.open("tree", 1 << 30, true).unwrap();
        file.write_at(7, b"share").unwrap();
        file.sync().unwrap();
        file.will_need(0, 4096);
        let mut read = [1; 9];
        folder.open("tree", 1 << 30, true).unwrap().read_at(5, &mut read).unwrap();
        assert_eq!(&read, b"\0\0share\0\0");
        assert!(file.read_at((1 << 30) - 4, &mut read).is_err());
        let other = folder.open("tree", 1 << 20, true).map(drop).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::InvalidData);
        assert_eq!(bytes(volume.path()).unwrap(), (1 << 30) + 5);
        let allocated = allocated_bytes(volume.path()).unwrap();
        assert!((1..1 << 20).contains(&allocated), "{allocated}");
        remove(volume.path()).unwrap();
        remove(volume.path()).unwrap();
        assert_eq!(fs::read_dir(volume.path()).unwrap().count(), 0);
    }
}
