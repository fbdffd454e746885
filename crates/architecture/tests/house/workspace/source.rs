//! Reads source code for the tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns `source` without comments and without the unit tests at its end.
pub(crate) fn code(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests").next().expect("split gives at least one");
    let uncommented = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    uncommented.collect::<Vec<_>>().join("\n")
}

/// Returns all source files below `folder` except files of unit tests.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = all_rust_files(folder);
    files.retain(|path| path.file_name().is_some_and(|name| name != "tests.rs"));
    files
}

/// Returns all source files below `folder`.
pub(crate) fn all_rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(all_rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
