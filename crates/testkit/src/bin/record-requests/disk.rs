//! A loop device with an ext4 file system. Removed when dropped.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the disk in bytes: 2^22 blocks of 4 KiB, as in the paper on rORAM.
const BYTES: u64 = 16 << 30;

pub(super) struct LoopDisk {
    base: PathBuf,
    /// The mount point of the disk.
    folder: PathBuf,
    device: String,
}

impl LoopDisk {
    /// Creates and mounts a disk on which the kernel reads `read_ahead_kib` KiB ahead.
    pub(super) fn new(read_ahead_kib: usize) -> io::Result<Self> {
        let base = std::env::temp_dir().join(format!("record-requests-{}", std::process::id()));
        let folder = base.join("files");
        fs::create_dir_all(&folder)?;
        let image = base.join("image");
        fs::File::create(&image)?.set_len(BYTES)?;
        let device = run("losetup", &["--find".as_ref(), "--show".as_ref(), image.as_os_str()])?;
        let disk = Self { base, folder, device: device.trim().to_owned() };
        // Initialise the whole file system now, so that the trace does not record it later.
        let options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        let [quiet, extended] = ["-q", "-E"].map(OsStr::new);
        run("mkfs.ext4", &[quiet, extended, options.as_ref(), disk.device.as_ref()])?;
        let name = disk.device.trim_start_matches("/dev/");
        let read_ahead = format!("/sys/block/{name}/queue/read_ahead_kb");
        fs::write(read_ahead, read_ahead_kib.to_string())?;
        run("mount", &[disk.device.as_ref(), disk.folder.as_os_str()])?;
        Ok(disk)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the major and minor number of the device.
    pub(super) fn number(&self) -> io::Result<(u64, u64)> {
        let number = fs::metadata(&self.device)?.rdev();
        Ok((number >> 8, number & 0xff))
    }

    /// Writes all dirty pages of the file system to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        run("sync", &["--file-system".as_ref(), self.folder.as_os_str()]).map(drop)
    }

    /// Syncs the file system, and empties the page cache.
    pub(super) fn forget_what_is_cached(&self) -> io::Result<()> {
        self.sync()?;
        fs::write("/proc/sys/vm/drop_caches", "3")
    }
}

impl Drop for LoopDisk {
    /// Undoes all steps of `new`. Prints a warning for each step that fails.
    fn drop(&mut self) {
        let undone = [
            run("umount", &[self.folder.as_os_str()]).map(drop),
            run("losetup", &["--detach".as_ref(), self.device.as_ref()]).map(drop),
            fs::remove_dir_all(&self.base),
        ];
        undone.into_iter().filter_map(Result::err).for_each(super::warn);
    }
}

/// Runs a program and returns its standard output.
fn run(program: &str, arguments: &[&OsStr]) -> io::Result<String> {
    let done = Command::new(program).args(arguments).output()?;
    if !done.status.success() {
        let message = String::from_utf8_lossy(&done.stderr);
        return Err(io::Error::other(format!("{program}: {}: {}", done.status, message.trim())));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
