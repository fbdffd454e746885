//! The Rust files of the repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Lists all Rust files below `folder`, sorted within each folder, without build folders.
///
/// # Errors
/// If a folder cannot be read.
pub fn rust_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            if !path.ends_with("target") {
                files.extend(rust_files(&path)?);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}
