//! A disk image, from which a new volume is filled.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use oblivio_core::durable::Contents;
use oblivio_core::{Error, ErrorKind};

use crate::error::CliError;
use crate::files;
use crate::progress;
use crate::signals::StopFlag;

/// A disk image: a file or a device with random access.
pub(super) struct Image {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Image {
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let cannot_read = |error| files::cannot_read(path, &error);
        let refused = |why| {
            let path = path.display();
            CliError::Input(format!("{path} {why}: name a file or a device that holds a disk"))
        };
        // Opening a pipe would block until another process opens it for writing.
        let kind = fs::metadata(path).map_err(cannot_read)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(refused("has no random access, which a disk has"));
        }
        let mut file = files::open(path)?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(cannot_read)?;
        if bytes == 0 {
            return Err(refused("is empty"));
        }
        Ok(Self { path: path.to_owned(), file, bytes })
    }

    /// The size of a disk for the image, in bytes: `wanted`, or the size of the image. Fails if
    /// `wanted` is less than the size of the image.
    pub(super) fn disk_bytes(&self, wanted: Option<u64>) -> Result<u64, CliError> {
        let bytes = wanted.unwrap_or(self.bytes);
        if bytes < self.bytes {
            let message = format!(
                "{} has {} bytes, but the disk would have {bytes}: leave --size out, or make it \
                 at least as large",
                self.path.display(),
                self.bytes
            );
            return Err(CliError::Input(message));
        }
        Ok(bytes)
    }

    /// The contents of a disk of `blocks` blocks that begins with the image.
    pub(super) fn blocks<'a>(&'a self, blocks: u64, end: &'a StopFlag) -> Blocks<'a> {
        let bar = progress::bar_of(blocks, "blocks");
        Blocks { image: self, end, bar, failure: None }
    }
}

/// The blocks of a disk that begins with an image.
pub(super) struct Blocks<'a> {
    image: &'a Image,
    end: &'a StopFlag,
    bar: ProgressBar,
    /// The error that prevented a block from being supplied, if any.
    pub(super) failure: Option<CliError>,
}

impl Contents for Blocks<'_> {
    fn block(&mut self, address: u64, data: &mut [u8]) -> Result<bool, Error> {
        let Self { image, .. } = self;
        let offset = address * data.len() as u64;
        let there = image.bytes.saturating_sub(offset).min(data.len() as u64) as usize;
        let read = image.file.read_exact_at(&mut data[..there], offset);
        self.bar.inc(1);
        self.failure = match read {
            Err(error) => Some(files::cannot_read(&image.path, &error)),
            Ok(()) if self.end.is_requested() => Some(interrupted().into()),
            Ok(()) => return Ok(data.iter().any(|byte| *byte != 0)),
        };
        Err(Error::new(ErrorKind::InvalidRequest, "the image cannot be read further"))
    }
}

/// The error for a creation that a signal interrupted.
pub(super) fn interrupted() -> oblivio::Error {
    oblivio::Error::new(oblivio::ErrorKind::Failed, "interrupted: the new volume was removed")
}
