//! An image of a disk, which a new volume holds from its beginning.

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
use crate::signals::EndAsked;

/// A file or a device that can be read anywhere.
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
        // To open a pipe waits for somebody who writes to it.
        let kind = fs::metadata(path).map_err(cannot_read)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(refused("cannot be read anywhere, as a disk is"));
        }
        let mut file = files::open(path)?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(cannot_read)?;
        if bytes == 0 {
            return Err(refused("has no bytes"));
        }
        Ok(Self { path: path.to_owned(), file, bytes })
    }

    /// How many bytes a disk for it needs to have, of which the owner may have said something.
    pub(super) fn disk_bytes(&self, wanted: Option<u64>) -> Result<u64, CliError> {
        let bytes = wanted.unwrap_or(self.bytes);
        if bytes < self.bytes {
            let message = format!(
                "{} has {} bytes, and the disk would have {bytes}: leave --size out, or give one that is as large",
                self.path.display(),
                self.bytes
            );
            return Err(CliError::Input(message));
        }
        Ok(bytes)
    }

    /// What it holds, block by block.
    pub(super) fn blocks<'a>(&'a self, blocks: u64, end: &'a EndAsked) -> Blocks<'a> {
        let bar = progress::bar_of(blocks, "blocks");
        Blocks { image: self, end, bar, failure: None }
    }
}

/// The blocks of a disk that begins with an image.
pub(super) struct Blocks<'a> {
    image: &'a Image,
    end: &'a EndAsked,
    bar: ProgressBar,
    /// Why a block was not given.
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
            Ok(()) if self.end.is_asked() => Some(interrupted().into()),
            Ok(()) => return Ok(data.iter().any(|byte| *byte != 0)),
        };
        Err(Error::new(ErrorKind::InvalidRequest, "the image gives no more"))
    }
}

/// A signal has asked for the end.
pub(super) fn interrupted() -> oblivio::Error {
    oblivio::Error::new(oblivio::ErrorKind::Failed, "interrupted: the volume was removed again")
}
