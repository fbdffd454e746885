//! A plain file. Its results show the speed of the machine without a disk server.

use std::path::PathBuf;

use tempfile::TempDir;

use super::{Description, Subject, Testbed, sparse_file};
use crate::fio::Target;

pub const FILE: Description = Description {
    name: "raw file",
    note: "through the page cache: reads come from memory, writes are flushed at the end",
    is_filled: true,
    is_fuse: false,
    is_volume: false,
    programs: &[],
    start: |bytes, testbed, _| Ok(Box::new(Raw::create(bytes, testbed)?)),
};

struct Raw {
    path: PathBuf,
    bytes: u64,
    _folder: TempDir,
}

impl Raw {
    fn create(bytes: u64, testbed: &Testbed) -> Result<Self, String> {
        let folder = testbed.folder()?;
        let path = folder.path().join("disk");
        sparse_file(&path, bytes)?;
        Ok(Self { path, bytes, _folder: folder })
    }
}

impl Subject for Raw {
    fn target(&self) -> Target {
        Target::File { path: self.path.clone(), direct: false }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn server(&self) -> Option<u32> {
        None
    }

    fn stop(&mut self) -> Result<(), String> {
        Ok(())
    }
}
