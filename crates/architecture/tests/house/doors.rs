//! Whoever uses storage does not know which it is.

use std::fs;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// What knows each store by its name, and opens it for a location.
const OPENER: &str = "oblivio-store";

/// Each share server is reached as a bucket server.
const SHARES: &str = "crates/shares/src/remote";

/// It lets machines die that a location cannot name.
const WORLD: &str = "oblivio-crash-suite";

/// Stores that a location opens.
const STORES: [&str; 3] = ["FileStore", "RemoteStore", "StripedStore"];

#[test]
fn stores_are_made_and_opened_by_their_location_alone() {
    let metadata = workspace::cargo_metadata().no_deps().exec().unwrap();
    let others = metadata
        .workspace_packages()
        .into_iter()
        .filter(|it| ![OPENER, WORLD].contains(&&**it.name));
    let sources = others.flat_map(|package| {
        let folder = package.manifest_path.parent().expect("a manifest lies in a folder");
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
    assert!(wrong.is_empty(), "take a `Location`, and let it open what is there: {wrong:?}");
}
