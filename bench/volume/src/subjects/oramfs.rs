//! oramfs, the only other oblivious disk that is available.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::{Description, Subject, Testbed};
use crate::fio::Target;
use crate::tools::{End, Running, run_to_its_end};

pub const MOUNT: Description = Description {
    name: "oramfs",
    note: "oramfs 1.0.0, Path ORAM on 64 MiB, in its favour: paths, position map and stash are \
           smaller than on a larger disk. Not filled: every bucket exists from the beginning, and \
           costs the same. A flush does nothing",
    is_filled: false,
    is_fuse: true,
    is_volume: false,
    programs: &["fusermount"],
    start: |_, testbed, end| Ok(Box::new(Oramfs::start(testbed, end)?)),
};

/// The name of the disk in commands.
const NAME: &str = "bench";

/// Size of a block in bytes, equal to the size of requests. With the default of 16 KiB, oramfs
/// would move four times as many bytes.
const BLOCK_BYTES: u64 = 4096;
const BLOCKS_PER_BUCKET: u64 = 4;
const BUCKETS: u64 = (1 << 12) - 1;

struct Oramfs {
    server: Running,
    mountpoint: PathBuf,
    _folder: TempDir,
}

impl Oramfs {
    fn start(testbed: &Testbed, end: &End) -> Result<Self, String> {
        let folder = testbed.folder()?;
        let failed = |error: std::io::Error| format!("cannot set up oramfs: {error}");
        let path = |name: &str| folder.path().join(name);
        let mountpoint = path("mount");
        for name in ["home", "public", "private", "client", "mount"] {
            fs::create_dir(path(name)).map_err(failed)?;
        }
        let oramfs = |words: &[&str]| {
            let mut command = Command::new(&testbed.programs.oramfs);
            command.env("HOME", path("home")).current_dir(folder.path()).args(words);
            command
        };
        let mut add = oramfs(&["add", NAME, "public", "private", "--non-interactive"]);
        add.args(["--mountpoint", "mount", "--client-data-dir"]).arg(path("client"));
        add.args(["--block-size", &BLOCK_BYTES.to_string()]);
        add.args(["--blocks-per-bucket", &BLOCKS_PER_BUCKET.to_string()]);
        add.args(["--bucket-count", &BUCKETS.to_string()]);
        run_to_its_end(&mut add, end)?;

        // oramfs asks for a new passphrase twice.
        let mut passphrase = tempfile::tempfile().map_err(failed)?;
        passphrase
            .write_all(b"of no worth\nof no worth\n")
            .and_then(|()| passphrase.rewind())
            .map_err(failed)?;
        let mut mount = oramfs(&["mount", NAME, "--manual", "--foreground"]);
        mount.stdin(passphrase);
        mount.stderr(File::create(path("log")).map_err(failed)?);
        let mut server = Running::start(&mut mount)?;
        server.wait_for(&mountpoint.join("oram"), end)?;
        Ok(Self { server, mountpoint, _folder: folder })
    }

    /// Unmounts oramfs, which ends its process. A signal would leave the mount behind.
    fn unmount(&self) {
        if self.mountpoint.join("oram").exists() {
            // If this fails, stopping the server reports it.
            let _ = Command::new("fusermount").arg("-u").arg("-z").arg(&self.mountpoint).status();
        }
    }
}

impl Subject for Oramfs {
    fn target(&self) -> Target {
        Target::File { path: self.mountpoint.join("oram"), direct: true }
    }

    fn bytes(&self) -> u64 {
        BUCKETS * BLOCKS_PER_BUCKET * BLOCK_BYTES
    }

    fn server(&self) -> Option<u32> {
        Some(self.server.id())
    }

    fn stop(&mut self) -> Result<(), String> {
        self.unmount();
        self.server.stop()
    }
}

impl Drop for Oramfs {
    fn drop(&mut self) {
        self.unmount();
    }
}
