//! The file of a store: open, lock, read and write.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use oblivio_wire::private;

use crate::container::SECTOR_BYTES;
use crate::error::{OpenError, OpenErrorKind};
use crate::fetching::Fetch;
use crate::file_layout::Extent;
use crate::syncer::Syncer;

/// An open file. It is locked against other writers, unless it is read beside a writer.
pub(crate) struct Medium {
    file: File,
    /// Whether I/O bypasses the page cache. Requests must then be whole sectors.
    direct: bool,
}

impl Medium {
    /// Creates an empty file that only its owner may access.
    pub(crate) fn create(path: &Path) -> Result<Self, OpenError> {
        let file =
            private::file_options().read(true).write(true).create_new(true).open(path).map_err(
                |cause| {
                    let is_read_only = cause.kind() == io::ErrorKind::ReadOnlyFilesystem;
                    let error = OpenError::io(&format!("create {}", path.display()), cause);
                    if is_read_only { error.with(", or choose another location") } else { error }
                },
            )?;
        lock(&file, path, false).inspect_err(|_| remove(path))?;
        Ok(Self { file, direct: false })
    }

    /// Extends the file to `bytes` bytes of zeros, without allocating space.
    pub(crate) fn extend(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    /// Opens a file. With both `read_only` and `beside_writer`, takes no lock: another process may
    /// write to the file.
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
        // Do not block if the path is a pipe.
        let file = File::options()
            .read(true)
            .write(!read_only)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .map_err(cannot_open)?;
        if !file.metadata().map_err(cannot_open)?.is_file() {
            let message = format!("{} is not a file; check the path", path.display());
            return Err(OpenError::new(OpenErrorKind::NotAStore, message));
        }
        if !(read_only && beside_writer) {
            lock(&file, path, read_only)?;
        }
        Ok(Self { file, direct: false })
    }

    /// Switches to direct I/O, which bypasses the page cache. To test that the file supports this,
    /// reads one sector into `sector`.
    pub(crate) fn go_direct(&mut self, sector: &mut [u8]) -> Result<(), OpenError> {
        set_direct(&self.file)
            .and_then(|()| {
                self.file.read_exact_at(&mut sector[..SECTOR_BYTES as usize], SECTOR_BYTES)
            })
            .map_err(|cause| {
                let message = format!(
                    "the file system does not support direct I/O in units of {SECTOR_BYTES} bytes \
                     ({cause}); turn direct I/O off"
                );
                OpenError::caused_by(OpenErrorKind::DirectRefused, message, cause)
            })?;
        self.direct = true;
        Ok(())
    }

    /// The alignment of requests in bytes: 1, or a sector for direct I/O.
    pub(crate) fn granule_bytes(&self) -> u64 {
        if self.direct { SECTOR_BYTES } else { 1 }
    }

    pub(crate) fn bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(crate) fn allocated_bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|file| allocated_bytes(&file))
    }

    /// Reads up to `bytes` bytes, fewer at the end of the file.
    pub(crate) fn read_up_to(&self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let there = self.bytes()?.saturating_sub(offset);
        let mut read = vec![0; bytes.min(usize::try_from(there).unwrap_or(bytes))];
        self.file.read_exact_at(&mut read, offset)?;
        Ok(read)
    }

    /// Asks the system to read all extents into the page cache at once. This is a hint: without it,
    /// later reads are only slower.
    pub(crate) fn announce(&self, extents: impl Iterator<Item = Extent>) {
        if !self.direct {
            extents.filter(|extent| extent.bytes > 0).for_each(|extent| {
                will_need(&self.file, extent);
            });
        }
    }

    /// Reads from the page cache only. Returns `false` if not all bytes are cached, and always for
    /// direct I/O.
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

    /// Writes extents, which must be in the order of their positions in the file. Adjacent extents
    /// are written in one request.
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

    /// Makes all bytes written so far durable.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Starts a thread that syncs the file in the background. After that, the caller must leave all
    /// syncs to this thread.
    pub(crate) fn start_syncer(&self) -> io::Result<Syncer> {
        Syncer::start(self.file.try_clone()?)
    }

    /// Makes the file, its length and its name durable.
    pub(crate) fn sync_all(&self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// The space that a file takes on its file system, in bytes.
pub(crate) fn allocated_bytes(file: &Metadata) -> u64 {
    const BLOCK_BYTES: u64 = 512; // what stat(2) counts in, whatever the file system does
    file.blocks() * BLOCK_BYTES
}

/// Removes a file whose creation failed.
pub(crate) fn remove(path: &Path) {
    // The caller reports the first error instead.
    let _ = fs::remove_file(path);
}

fn lock(file: &File, path: &Path, shared: bool) -> Result<(), OpenError> {
    let outcome = if shared { file.try_lock_shared() } else { file.try_lock() };
    outcome.map_err(|error| match error {
        TryLockError::WouldBlock => OpenError::new(
            OpenErrorKind::Locked,
            format!("{} is open elsewhere; close it there first", path.display()),
        ),
        TryLockError::Error(cause) => OpenError::io(&format!("lock {}", path.display()), cause),
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
    // If the system cannot tell, the bytes count as not cached.
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
