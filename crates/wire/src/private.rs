//! Files and directories that other users of the machine must not read.
//!
//! Clients and servers create every file of a volume with these functions, for any umask. From the
//! sizes, times and contents of sealed files, other users could learn as much as storage does.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

/// Returns options that create a file with mode 0600: only its owner may read and write it. An
/// existing file keeps its mode.
pub fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Returns a builder of directories with mode 0700: only their owner may enter them.
pub fn dir_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}
