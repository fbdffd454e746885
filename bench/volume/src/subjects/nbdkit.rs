//! nbdkit's file plugin: a network block device that hides nothing.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::{Description, Ground, Subject, sparse_file};
use crate::fio::Target;
use crate::tools::{End, Running};

pub const FILE_PLUGIN: Description = Description {
    name: "nbdkit file",
    note: "through the page cache, not encrypted",
    is_filled: true,
    is_fuse: false,
    programs: &["nbdkit"],
    start: |bytes, ground, end| Ok(Box::new(Nbdkit::start(bytes, ground, end)?)),
};

struct Nbdkit {
    server: Running,
    socket: PathBuf,
    bytes: u64,
    _folder: TempDir,
}

impl Nbdkit {
    fn start(bytes: u64, ground: &Ground, end: &End) -> Result<Self, String> {
        let folder = ground.folder()?;
        let (file, socket) = (folder.path().join("disk"), ground.socket("nbdkit"));
        sparse_file(&file, bytes)?;
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--unix"]).arg(&socket).arg("file").arg(&file);
        let mut server = Running::start(&mut command)?;
        server.wait_for(&socket, end)?;
        Ok(Self { server, socket, bytes, _folder: folder })
    }
}

impl Subject for Nbdkit {
    fn target(&self) -> Target {
        Target::Nbd(self.socket.clone())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn server(&self) -> Option<u32> {
        Some(self.server.id())
    }

    fn stop(&mut self) -> Result<(), String> {
        self.server.stop()
    }
}
