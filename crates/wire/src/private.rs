//! Files and directories that other users of the machine may not read.
//!
//! Clients and servers create every file of a volume with these, whatever the umask is: sizes,
//! times and bytes of sealed files show other users what storage sees.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

/// Options for a file that only its owner may read and write when it is created (mode 0600). An
/// existing file keeps its mode.
pub fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// A builder of directories that only their owner may enter (mode 0700).
pub fn dir_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}
