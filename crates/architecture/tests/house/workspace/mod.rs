//! Access to this workspace.

pub(crate) mod source;

use std::path::PathBuf;

use cargo_metadata::MetadataCommand;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate is two folders below the root").to_owned()
}

/// The folders of all crates: product and papers.
pub(crate) const CRATES: [&str; 2] = ["crates", "papers"];

/// Returns a `cargo metadata` command for the workspace.
pub(crate) fn cargo_metadata() -> MetadataCommand {
    let mut command = MetadataCommand::new();
    command.manifest_path(root().join("Cargo.toml"));
    command
}
