//! An open volume: a disk of bytes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use oblivio_volume::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, WipedBytes, call};
use oblivio_volume::keys::Secret;
use oblivio_volume::{Disk, DiskOptions, Recovery};

use crate::error::{Error, ErrorKind};
use crate::volume_location::VolumeLocation;

/// A durable disk of bytes. Storage learns neither its contents nor which parts are used.
///
/// Any number of threads may send requests at once. What was written survives a crash once
/// [`flush`](Self::flush) has returned. Any part of the writes after the last flush may survive;
/// each block is old or new.
///
/// Dropping a volume closes it. Call [`close`](Self::close) to see errors of closing.
pub struct Volume {
    disk: Disk,
    state: PathBuf,
    recovery: Recovery,
    failure: OnceLock<Error>,
}

impl Volume {
    /// Creates a volume of `bytes` bytes at a path or a URL, and opens it. See
    /// [`VolumeLocation::create`].
    ///
    /// # Errors
    /// See [`VolumeLocation::new`] and [`VolumeLocation::create`].
    pub fn create(location: impl AsRef<OsStr>, secret: &Secret, bytes: u64) -> Result<Self, Error> {
        VolumeLocation::new(location)?.create(secret, bytes)
    }

    /// Opens a volume at a path or a URL. See [`VolumeLocation::open`].
    ///
    /// # Errors
    /// See [`VolumeLocation::new`] and [`VolumeLocation::open`].
    pub fn open(location: impl AsRef<OsStr>, secret: &Secret) -> Result<Self, Error> {
        VolumeLocation::new(location)?.open(secret)
    }

    pub(crate) fn start(
        volume: oblivio_volume::Volume,
        options: &DiskOptions,
        state: PathBuf,
        recovery: Recovery,
    ) -> Result<Self, Error> {
        let disk = Disk::start(volume, options)?;
        Ok(Self { disk, state, recovery, failure: OnceLock::new() })
    }

    /// Bytes of the disk: the requested size, rounded up to whole blocks.
    pub fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    /// Bytes of a block. Reads and writes may begin and end anywhere; whole blocks cost least.
    pub fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }

    /// The client's directory: without it the data cannot be found.
    pub fn client_directory(&self) -> &Path {
        &self.state
    }

    /// The recovery that the opening made.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Reads into the whole `buffer`, from `offset` on. Bytes that were never written are zeros.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) past the end of the disk: nothing was done. Any other error ends
    /// the volume.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.check_range(buffer.len(), offset)?;
        let mut at = offset;
        for part in buffer.chunks_mut(self.disk.request_bytes_max() as usize) {
            let bytes = part.len() as u32;
            part.copy_from_slice(&self.ask(DiskOp::Read { offset: at, bytes })?);
            at += u64::from(bytes);
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`. They survive a crash after the next [flush](Self::flush).
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) past the end of the disk: nothing was done. Any other error ends
    /// the volume.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        self.check_range(bytes.len(), offset)?;
        let mut at = offset;
        for part in bytes.chunks(self.disk.request_bytes_max() as usize) {
            let data = WipedBytes::from(part);
            self.ask(DiskOp::Write { offset: at, data, durable: false })?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Discards `bytes` bytes from `offset` on: blocks wholly inside read as zeros.
    ///
    /// # Errors
    /// See [`Self::write_at`].
    pub fn trim(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.ask(DiskOp::Trim { offset, bytes, durable: false }).map(drop)
    }

    /// Returns when all previous writes survive a crash.
    ///
    /// # Errors
    /// Any error ends the volume: it is unknown which writes are durable.
    pub fn flush(&self) -> Result<(), Error> {
        self.ask(DiskOp::Flush).map(drop)
    }

    /// Writes all dirty data, and closes the volume, so that nothing needs recovery.
    ///
    /// # Errors
    /// The failure of the volume, now or earlier.
    pub fn close(self) -> Result<(), Error> {
        match self.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.disk.close()?),
        }
    }

    /// Checks a whole request before its first part is served.
    fn check_range(&self, bytes: usize, offset: u64) -> Result<(), Error> {
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= self.bytes() => Ok(()),
            _ => {
                let message = format!(
                    "the request goes past the end of the disk, which has {} bytes",
                    self.bytes()
                );
                Err(Error::new(ErrorKind::Input, message))
            }
        }
    }

    fn ask(&self, op: DiskOp) -> Result<WipedBytes, Error> {
        call(&self.disk, op).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: DiskError) -> Error {
        match error.kind {
            DiskErrorKind::OutOfRange | DiskErrorKind::ReadOnly => {
                Error::new(ErrorKind::Input, error.message)
            }
            // Closing returns the failure of the volume, and is the only call left.
            _ => self
                .failure
                .get_or_init(|| match self.disk.close() {
                    Err(failure) => failure.into(),
                    Ok(()) => Error::new(ErrorKind::Failed, error.message),
                })
                .clone(),
        }
    }
}
