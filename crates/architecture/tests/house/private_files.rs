//! Only the owner can read the files of volumes, whatever the umask is.

use std::fs;
use std::path::Path;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// Sources that create files of volumes, servers and mounts. Other commands write reports and
/// traces, which follow the umask. `cli/src/files.rs` makes recorded views and their pictures
/// private.
const SOURCES: [&str; 10] = [
    "wire/src",
    "store/src",
    "shares/src",
    "volume/src",
    "nbd/src",
    "mount/src",
    "watch/src",
    "bucket-server/src",
    "oblivio/src",
    "cli/src/volume",
];

/// Files that are exempt from using the helper `oblivio_wire::private`: the helper itself, and the
/// state directory, which opens its files relatively and sets their modes.
const EXCEPTIONS: [&str; 2] = ["wire/src/private.rs", "volume/src/state_dir/fs.rs"];

/// Calls that create a file or directory with the mode of the umask.
const UNCHECKED: [&str; 8] = [
    "File::create",
    "File::options().create",
    "File::options().write(true).create",
    "File::options().read(true).write(true).create",
    "OpenOptions::new",
    "DirBuilder::new",
    "fs::create_dir",
    "fs::write(",
];

/// Returns a call in `source` that creates a file or directory without `oblivio_wire::private`;
/// `None` if there is no such call.
fn unchecked(source: &str) -> Option<&'static str> {
    let code: String = code(source).split_whitespace().collect();
    UNCHECKED.into_iter().find(|it| code.contains(it))
}

#[test]
fn product_code_creates_files_that_only_their_owner_can_read() {
    let crates = workspace::root().join("crates");
    let sources = SOURCES.iter().flat_map(|folder| rust_files(&crates.join(folder)));
    let wrong: Vec<_> = sources
        .filter(|file| !EXCEPTIONS.iter().any(|it| file.ends_with(Path::new(it))))
        .filter_map(|file| {
            let found = unchecked(&fs::read_to_string(&file).unwrap())?;
            Some(format!("{}: {found}", file.display()))
        })
        .collect();
    assert!(wrong.is_empty(), "create these files with oblivio_wire::private: {wrong:#?}");
}

#[test]
fn creations_without_the_helper_are_found() {
    for wrong in [
        "File::create_new(path)",
        "let mut options = OpenOptions::new();",
        "File::options()\n    .read(true)\n    .write(true)\n    .create_new(true)",
        "std::fs::create_dir_all(path)",
    ] {
        assert!(unchecked(wrong).is_some(), "{wrong}");
    }
    for right in ["File::options().read(true).open(path)", "private::file_options().create(true)"] {
        assert_eq!(unchecked(right), None);
    }
}
