//! A store that wraps another store forwards every method.

use std::fs;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// The lint that rejects an implementation with a missing method.
const DENIES: &str = "#[deny(clippy::missing_trait_methods)]";

/// Types that implement `BucketStore` without wrapping another store. The rule does not apply to
/// them.
const BASE_STORES: [&str; 9] = [
    "CrashStore",
    "FileStore",
    "MemoryImageStore",
    "MemoryStore",
    "Metered",
    "PackedStore",
    "RemoteStore",
    "SharedStore",
    "StripedStore",
];

#[test]
fn wrappers_of_stores_implement_every_method() {
    let root = workspace::root();
    let files = workspace::CRATES.iter().flat_map(|folder| rust_files(&root.join(folder)));
    let wrong: Vec<_> = files
        .filter(|file| file.components().any(|part| part.as_os_str() == "src"))
        .flat_map(|file| {
            let wrappers = unchecked_wrappers(&code(&fs::read_to_string(&file).unwrap()));
            let file = file.strip_prefix(&root).unwrap().display().to_string();
            wrappers.into_iter().map(move |wrapper| format!("{file}: {wrapper}"))
        })
        .collect();
    assert!(wrong.is_empty(), "write {DENIES} before the `impl`, or list it above: {wrong:?}");
}

#[test]
fn planted_wrappers_are_found() {
    for (code, wrapper) in [
        ("impl<S: BucketStore, K> BucketStore for Wrapper<S, K> {", "Wrapper"),
        ("impl<S, K> BucketStore for Other<S, K>\nwhere\n    S: BucketStore,\n{", "Other"),
        ("impl<\n    S: BucketStore,\n> BucketStore for Wide<S>\n{", "Wide"),
        ("impl BucketStore for Concrete {", "Concrete"),
    ] {
        assert_eq!(unchecked_wrappers(code), [wrapper]);
        assert!(unchecked_wrappers(&format!("{DENIES}\n{code}")).is_empty());
    }
    assert!(unchecked_wrappers("impl BucketStore for FileStore {").is_empty());
}

/// The types in `code` that implement `BucketStore` without the lint and are not base stores.
fn unchecked_wrappers(code: &str) -> Vec<String> {
    const FOR: &str = "BucketStore for ";
    let implementations = code.match_indices(FOR).filter_map(|(at, _)| {
        let name =
            code[at + FOR.len()..].split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        let header = code[..at].rfind("impl")?;
        let is_checked = code[..header].trim_end().ends_with(DENIES);
        (!is_checked && !BASE_STORES.contains(&name)).then(|| name.to_owned())
    });
    implementations.collect()
}
