//! The file that the demonstration keeps.

use std::io::Read;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::args::DemoArgs;
use crate::error::CliError;
use crate::files;

/// More blocks than this make a view that nobody wants to read.
const BLOCKS_MAX: u64 = 1 << 15;

/// A file, and the blocks it is cut into.
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) block_bytes: usize,
}

impl Source {
    /// Reads the file that `args` name, or this program.
    pub(super) fn read(args: &DemoArgs) -> Result<Self, CliError> {
        let path = match &args.file {
            Some(path) => path.clone(),
            None => std::env::current_exe().map_err(|error| {
                CliError::Input(format!("this program cannot find itself ({error}): use --file"))
            })?,
        };
        let block_bytes = args.block_bytes.get();
        let bytes_max = BLOCKS_MAX.saturating_mul(block_bytes as u64);
        let mut bytes = Vec::new();
        files::open(&path)?
            .take(bytes_max.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| files::cannot_read(&path, &error))?;
        if bytes.is_empty() {
            return Err(CliError::Input(format!(
                "{} is empty: there is nothing to hide in it; give a file with contents",
                path.display()
            )));
        }
        if bytes.len() as u64 > bytes_max {
            return Err(CliError::Input(format!(
                "{} is too large: a demonstration keeps {BLOCKS_MAX} blocks of {block_bytes} bytes at \
                 most; use larger blocks with --block-bytes, or a smaller file",
                path.display()
            )));
        }
        Ok(Self { path, bytes, block_bytes })
    }

    pub(super) fn block_count(&self) -> u64 {
        self.bytes.len().div_ceil(self.block_bytes) as u64
    }

    /// The bytes of block `address`; the last one may be short.
    pub(super) fn block(&self, address: u64) -> &[u8] {
        let start = address as usize * self.block_bytes;
        &self.bytes[start..self.bytes.len().min(start + self.block_bytes)]
    }

    pub(super) fn sha256(&self) -> String {
        sha256(&self.bytes)
    }
}

/// In hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
