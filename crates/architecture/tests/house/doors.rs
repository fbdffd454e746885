//! Code that uses storage does not depend on the kind of storage.

use std::fs;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// The crate that opens a store from its location. It must name each kind of store.
const OPENER: &str = "oblivio-store";

/// The module that connects to share servers, in the same way as to bucket servers.
const SHARES: &str = "crates/shares/src/remote";

/// The crate that crashes simulated machines. It names kinds of stores, because no location can
/// name the store of a simulated machine.
const WORLD: &str = "oblivio-crash-suite";

/// The types of stores that have locations.
const STORES: [&str; 3] = ["FileStore", "RemoteStore", "StripedStore"];

#[test]
fn stores_are_created_and_opened_only_by_location() {
    let metadata = workspace::cargo_metadata().no_deps().exec().unwrap();
    let others = metadata
        .workspace_packages()
        .into_iter()
        .filter(|it| ![OPENER, WORLD].contains(&&**it.name));
    let sources = others.flat_map(|package| {
        let folder = package.manifest_path.parent().expect("a manifest has a parent folder");
        rust_files(&folder.join("src").into_std_path_buf())
    });
    let wrong: Vec<_> = sources
        .filter(|file| {
            let code = code(&fs::read_to_string(file).unwrap());
            STORES.iter().any(|store| code.contains(store))
        })
        .map(|file| file.strip_prefix(workspace::root()).unwrap().display().to_string())
        .filter(|file| !file.starts_with(SHARES))
        .collect();
    assert!(wrong.is_empty(), "open stores with a `Location`, not by type: {wrong:?}");
}
