//! A volume in use: a disk of bytes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use oblivio_volume::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, WipedBytes, call};
use oblivio_volume::keys::Secret;
use oblivio_volume::{Disk, DiskOptions, Recovery};

use crate::error::{Error, ErrorKind};
use crate::place::Place;

/// A durable disk of bytes whose storage learns neither what it holds nor which of it is used.
///
/// Any number of threads may ask at once. What was written survives a crash once [`flush`](Self::flush) has answered; of what was written after the last flush, any
/// part may survive, each block old or new.
///
/// Dropped, it is closed. Whoever wants to know how that went calls [`close`](Self::close).
pub struct Volume {
    disk: Disk,
    state: PathBuf,
    recovery: Recovery,
    failure: OnceLock<Error>,
}

impl Volume {
    /// Makes a volume of so many bytes at a path or a URL, and opens it. See [`Place::create`].
    ///
    /// # Errors
    /// Those of [`Place::new`] and of [`Place::create`].
    pub fn create(location: impl AsRef<OsStr>, secret: &Secret, bytes: u64) -> Result<Self, Error> {
        Place::new(location)?.create(secret, bytes)
    }

    /// Opens a volume at a path or a URL. See [`Place::open`].
    ///
    /// # Errors
    /// Those of [`Place::new`] and of [`Place::open`].
    pub fn open(location: impl AsRef<OsStr>, secret: &Secret) -> Result<Self, Error> {
        Place::new(location)?.open(secret)
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

    /// Bytes of the disk: those that were asked for, rounded up to whole blocks.
    pub fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    /// Bytes of a block. Reads and writes may begin and end anywhere; those of whole blocks cost least.
    pub fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }

    /// The client's directory: without it the data cannot be found.
    pub fn client_directory(&self) -> &Path {
        &self.state
    }

    /// What its opening had to do.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Reads as many bytes as `buffer` has, from `offset` on. What was never written is zeros.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) past the end of the disk: nothing was done. Any other error ends the volume.
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

    /// Writes these bytes, from `offset` on. They survive a crash after the next [flush](Self::flush).
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) past the end of the disk: nothing was done. Any other error ends the volume.
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

    /// Says that so many bytes are not needed any more: blocks that lie wholly inside read as zeros.
    ///
    /// # Errors
    /// Those of [`Self::write_at`].
    pub fn trim(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.ask(DiskOp::Trim { offset, bytes, durable: false }).map(drop)
    }

    /// Answers when all that was written before survives a crash.
    ///
    /// # Errors
    /// Any of them ends the volume: nobody knows what of it is durable.
    pub fn flush(&self) -> Result<(), Error> {
        self.ask(DiskOp::Flush).map(drop)
    }

    /// Writes all there is, and closes the volume: there will be nothing to recover.
    ///
    /// # Errors
    /// What the volume failed with, now or before.
    pub fn close(self) -> Result<(), Error> {
        match self.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.disk.close()?),
        }
    }

    /// Before the first part of a long request is served.
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
            // Closing says what a volume has failed with, and there is nothing else left to do with it.
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
