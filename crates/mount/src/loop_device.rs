//! Attaches files to loop devices, which show them as block devices, and detaches them.

use std::fs;
use std::path::{Path, PathBuf};

use super::MountError;
use crate::fuse::Program;

pub(super) const LOSETUP: Program = Program { name: "losetup", package: "mount" };

/// A loop device. Detached from its file when dropped.
pub(super) struct LoopDevice {
    path: PathBuf,
    /// Whether automatic detaching was requested. The device may then already serve another file.
    let_go: bool,
}

impl LoopDevice {
    /// Attaches a free loop device to `file`. The device bypasses the page cache of the file, so
    /// that many requests can be in flight. It is read-only if the file is.
    pub(super) fn attach(file: &Path) -> Result<Self, MountError> {
        let options = ["--find", "--show", "--direct-io=on"].map(AsRef::as_ref);
        let arguments = [options.as_slice(), &[file.as_os_str()]].concat();
        let path = LOSETUP.run(&arguments).map_err(no_free_device)?;
        Ok(Self { path: path.into(), let_go: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the kernel detach the device after its last use.
    pub(super) fn detach_after_last_use(mut self) -> Result<(), MountError> {
        detach(&self.path)?;
        self.let_go = true;
        Ok(())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if !self.let_go {
            // A destructor cannot report the error.
            let _ = detach(&self.path);
        }
    }
}

/// Detaches all loop devices attached to `file`, even if the file does not respond.
pub(super) fn detach_all(file: &Path) {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let ours = devices.filter(|device| {
        let shown = fs::read_to_string(device.path().join("loop/backing_file"));
        shown.is_ok_and(|shown| Path::new(shown.trim_end_matches('\n')) == file)
    });
    for device in ours {
        // Fails if it was just detached, which is fine.
        let _ = detach(&Path::new("/dev").join(device.file_name()));
    }
}

fn detach(device: &Path) -> Result<(), MountError> {
    LOSETUP.run(&["--detach".as_ref(), device.as_os_str()]).map(drop)
}

fn no_free_device(error: MountError) -> MountError {
    match error {
        MountError::Program { said, .. } if said.contains("unused loop device") => {
            MountError::NoLoopDevice(said)
        }
        other => other,
    }
}
