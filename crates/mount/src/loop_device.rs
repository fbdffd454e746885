//! A file as a block device.

use std::fs;
use std::path::{Path, PathBuf};

use super::MountError;
use crate::fuse::Program;

pub(super) const LOSETUP: Program = Program { name: "losetup", package: "mount" };

/// A loop device, detached from its file when it is dropped.
pub(super) struct LoopDevice {
    path: PathBuf,
    /// It was told to detach itself: by now, it may serve somebody else.
    let_go: bool,
}

impl LoopDevice {
    /// Attaches a free loop device to `file`. It bypasses the kernel's cache of the file, so that
    /// many of its requests are in flight. It is read-only if the file is.
    pub(super) fn attach(file: &Path) -> Result<Self, MountError> {
        let options = ["--find", "--show", "--direct-io=on"].map(AsRef::as_ref);
        let arguments = [options.as_slice(), &[file.as_os_str()]].concat();
        let path = LOSETUP.run(&arguments).map_err(no_free_device)?;
        Ok(Self { path: path.into(), let_go: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Detaches it as soon as nothing uses it.
    pub(super) fn detach_after_last_use(mut self) -> Result<(), MountError> {
        detach(&self.path)?;
        self.let_go = true;
        Ok(())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if !self.let_go {
            // Nobody is left to be told.
            let _ = detach(&self.path);
        }
    }
}

/// Detaches all loop devices from `file`, which may not answer any more.
pub(super) fn detach_all(file: &Path) {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let ours = devices.filter(|device| {
        let shown = fs::read_to_string(device.path().join("loop/backing_file"));
        shown.is_ok_and(|shown| Path::new(shown.trim_end_matches('\n')) == file)
    });
    for device in ours {
        // One that was just detached is as good.
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
