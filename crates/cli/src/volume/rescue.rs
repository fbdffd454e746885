//! `oblivio rescue`: writes the remaining data of a damaged volume to a disk image.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use oblivio_volume::rescue::RescueTarget;
use zeroize::Zeroizing;

use super::salvage::DamagedVolume;
use crate::args::RescueArgs;
use crate::error::CliError;
use crate::files::AtomicFile;
use crate::{files, output};

/// `oblivio rescue`.
pub(crate) fn rescue(args: &RescueArgs) -> Result<(), CliError> {
    // Before the volume is opened: on share servers, a rescue opens it to write, which fences off
    // other clients. The file gets its name when it is complete.
    let atomic = AtomicFile::begin_new(&args.output)?;
    let salvage = DamagedVolume::begin(&args.at)?;
    // A user who can read the image can read the disk.
    let file = atomic.file();
    file.set_permissions(Permissions::from_mode(0o600))
        .and_then(|()| file.set_len(salvage.params().capacity_bytes()))
        .map_err(|error| files::cannot_write(&args.output, &error))?;
    let block_bytes = salvage.params().block_bytes;
    let mut image = Image { file, path: &args.output, block_bytes: block_bytes.into() };
    let report = salvage.finish(&mut image).map_err(|error| match error {
        CliError::NoSpace(full) => CliError::NoSpace(format!("{full}, or choose another place")),
        error => error,
    })?;
    file.sync_all().map_err(|error| files::cannot_write(&args.output, &error))?;
    atomic.persist_new()?;
    output::print(&if args.json {
        format!("{:#}", report.json())
    } else {
        report.text(&format!("are in {}", args.output.display()))
    })?;
    report.verdict()
}

/// An image file, with zeros for blocks that were not rescued.
struct Image<'f> {
    file: &'f File,
    path: &'f Path,
    block_bytes: u64,
}

impl Image<'_> {
    fn of_path(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

impl RescueTarget for Image<'_> {
    fn put(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        let written = self.file.write_all_at(data, block * self.block_bytes);
        written.map_err(|error| self.of_path(error))
    }

    fn clear(&mut self, block: u64) -> io::Result<()> {
        // A block that was never put is a hole, and stays one.
        let mut there = Zeroizing::new(vec![0; self.block_bytes as usize]);
        let read = self.file.read_exact_at(&mut there, block * self.block_bytes);
        read.map_err(|error| self.of_path(error))?;
        if there.iter().any(|byte| *byte != 0) {
            there.fill(0);
            self.put(block, &there)?;
        }
        Ok(())
    }
}
