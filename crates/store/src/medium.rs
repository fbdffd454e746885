//! The file itself: opened, locked, read and written.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use oblivio_wire::private;

use crate::container::SECTOR_BYTES;
use crate::error::{OpenError, OpenErrorKind};
use crate::fetching::Fetch;
use crate::places::Extent;
use crate::syncer::Syncer;

/// An open file that nobody else has open to write.
pub(crate) struct Medium {
    file: File,
    /// Whether requests go past the page cache: they must then be whole sectors.
    direct: bool,
}

impl Medium {
    /// A new, empty file that only its owner may read.
    pub(crate) fn create(path: &Path) -> Result<Self, OpenError> {
        let file =
            private::file_options().read(true).write(true).create_new(true).open(path).map_err(
                |cause| {
                    let is_read_only = cause.kind() == io::ErrorKind::ReadOnlyFilesystem;
                    let error = OpenError::io(&format!("create {}", path.display()), cause);
                    if is_read_only { error.with(", or choose another place") } else { error }
                },
            )?;
        lock(&file, path, false).inspect_err(|_| remove(path))?;
        Ok(Self { file, direct: false })
    }

    /// Gives the file `bytes` zeros, which take no room yet.
    pub(crate) fn extend(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    /// `beside_writer` reads what somebody else may be writing.
    pub(crate) fn open(
        path: &Path,
        read_only: bool,
        beside_writer: bool,
    ) -> Result<Self, OpenError> {
        let cannot_open = |cause: io::Error| {
            let is_read_only = cause.kind() == io::ErrorKind::ReadOnlyFilesystem;
            let error = OpenError::io(&format!("open {}", path.display()), cause);
            match is_read_only {
                true => error.with(
                    ", because every use of a volume writes to it. Without writing it can still \
                     be rescued and copied",
                ),
                false => error,
            }
        };
        // Nobody waits for the other end of what turns out to be a pipe.
        let file = File::options()
            .read(true)
            .write(!read_only)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .map_err(cannot_open)?;
        if !file.metadata().map_err(cannot_open)?.is_file() {
            let message = format!("{} is no file: check the path", path.display());
            return Err(OpenError::new(OpenErrorKind::NotAStore, message));
        }
        if !(read_only && beside_writer) {
            lock(&file, path, read_only)?;
        }
        Ok(Self { file, direct: false })
    }

    /// From now on, requests go past the page cache. `sector` is memory to try it with.
    pub(crate) fn go_direct(&mut self, sector: &mut [u8]) -> Result<(), OpenError> {
        set_direct(&self.file)
            .and_then(|()| {
                self.file.read_exact_at(&mut sector[..SECTOR_BYTES as usize], SECTOR_BYTES)
            })
            .map_err(|cause| {
                let message = format!(
                    "the file system does not allow direct requests of {SECTOR_BYTES} bytes \
                     ({cause}): leave out that requests are direct"
                );
                OpenError::caused_by(OpenErrorKind::DirectRefused, message, cause)
            })?;
        self.direct = true;
        Ok(())
    }

    /// What an extent must be rounded out to.
    pub(crate) fn granule_bytes(&self) -> u64 {
        if self.direct { SECTOR_BYTES } else { 1 }
    }

    pub(crate) fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(crate) fn allocated_bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|file| allocated_bytes(&file))
    }

    /// Up to `bytes` bytes: as many as there are before the end of the file.
    pub(crate) fn read_up_to(&self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let there = self.bytes()?.saturating_sub(offset);
        let mut read = vec![0; bytes.min(usize::try_from(there).unwrap_or(bytes))];
        self.file.read_exact_at(&mut read, offset)?;
        Ok(read)
    }

    /// Asks the system to fetch extents into the page cache, all of them at once. A hint: where the
    /// system does not take it, reads are slower.
    pub(crate) fn announce(&self, extents: impl Iterator<Item = Extent>) {
        if !self.direct {
            extents.filter(|extent| extent.bytes > 0).for_each(|extent| {
                will_need(&self.file, extent);
            });
        }
    }

    /// Reads what is in the page cache already. `false` if not all of it is.
    pub(crate) fn fetch_cached(&self, fetch: Fetch, buffer: &mut [u8]) -> bool {
        let Fetch { extent, at } = fetch;
        !self.direct && read_cached(&self.file, &mut buffer[at..at + extent.bytes], extent.start)
    }

    pub(crate) fn fetch(&self, fetch: Fetch, buffer: &mut [u8]) -> io::Result<()> {
        let Fetch { extent, at } = fetch;
        self.file.read_exact_at(&mut buffer[at..at + extent.bytes], extent.start)
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Writes extents, given in the order of the file, neighbours in one request.
    pub(crate) fn write_runs<'a>(
        &self,
        extents: impl Iterator<Item = (Extent, &'a [u8])>,
    ) -> io::Result<()> {
        const SLICES_MAX: usize = 1024; // IOV_MAX of Linux
        let mut slices = Vec::new();
        let mut run = Extent { start: 0, bytes: 0 };
        for (extent, bytes) in extents {
            if extent.start != run.end() || slices.len() == SLICES_MAX {
                write_all(&self.file, &mut slices, run.start)?;
                slices.clear();
                run = Extent { start: extent.start, bytes: 0 };
            }
            slices.push(IoSlice::new(bytes));
            run.bytes += extent.bytes;
        }
        write_all(&self.file, &mut slices, run.start)
    }

    /// The bytes survive a crash.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Something that syncs the file while others go on. All syncs must be its own from then on.
    pub(crate) fn start_syncer(&self) -> io::Result<Syncer> {
        Syncer::start(self.file.try_clone()?)
    }

    /// The file, its length and its name survive a crash.
    pub(crate) fn sync_all(&self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// Bytes that a file takes where it is.
pub(crate) fn allocated_bytes(file: &Metadata) -> u64 {
    const BLOCK_BYTES: u64 = 512; // what stat(2) counts in, whatever the file system does
    file.blocks() * BLOCK_BYTES
}

/// Removes what could not be made whole.
pub(crate) fn remove(path: &Path) {
    // The error that led here says more than that of the clean-up.
    let _ = fs::remove_file(path);
}

fn lock(file: &File, path: &Path, shared: bool) -> Result<(), OpenError> {
    let outcome = if shared { file.try_lock_shared() } else { file.try_lock() };
    outcome.map_err(|error| match error {
        TryLockError::WouldBlock => OpenError::new(
            OpenErrorKind::Locked,
            format!("{} is open elsewhere: close it there first", path.display()),
        ),
        TryLockError::Error(cause) => {
            OpenError::io(&format!("lock {} against a second use", path.display()), cause)
        }
    })
}

fn write_all(file: &File, mut slices: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    while !slices.is_empty() {
        match rustix::io::pwritev(file, slices, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                IoSlice::advance_slices(&mut slices, written);
                offset += written as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn will_need(file: &File, extent: Extent) {
    let bytes = std::num::NonZero::new(extent.bytes as u64);
    let _ = rustix::fs::fadvise(file, extent.start, bytes, rustix::fs::Advice::WillNeed);
}

#[cfg(not(target_os = "linux"))]
fn will_need(_: &File, _: Extent) {}

#[cfg(target_os = "linux")]
fn read_cached(file: &File, buffer: &mut [u8], offset: u64) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    let bytes = buffer.len();
    let slices = &mut [io::IoSliceMut::new(buffer)];
    // A system that cannot say what is in its cache has nothing there.
    preadv2(file, slices, offset, ReadWriteFlags::NOWAIT).is_ok_and(|read| read == bytes)
}

#[cfg(not(target_os = "linux"))]
fn read_cached(_: &File, _: &mut [u8], _: u64) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn set_direct(file: &File) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    Ok(fcntl_setfl(file, fcntl_getfl(file)? | OFlags::DIRECT)?)
}

#[cfg(not(target_os = "linux"))]
fn set_direct(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
