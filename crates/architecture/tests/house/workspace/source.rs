//! Reads source code for the tests.

use std::path::{Path, PathBuf};

use oblivio_architecture::sources;

/// Returns `source` without comments and without the unit tests at its end.
pub(crate) fn code(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests").next().expect("split gives at least one");
    let uncommented = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    uncommented.collect::<Vec<_>>().join("\n")
}

/// Returns all source files below `folder` except files of unit tests.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = sources::rust_files(folder).unwrap();
    files.retain(|path| path.file_name().is_some_and(|name| name != "tests.rs"));
    files
}
