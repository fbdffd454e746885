//! A store that wraps any other passes every method on.

use std::fs;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// The lint that makes sure of it.
const DENIES: &str = "#[deny(clippy::missing_trait_methods)]";

#[test]
fn wrappers_of_stores_implement_every_method() {
    let root = workspace::root();
    let files = workspace::CRATES.iter().flat_map(|folder| rust_files(&root.join(folder)));
    let wrong: Vec<_> = files
        .filter(|file| has_unchecked_wrapper(&code(&fs::read_to_string(file).unwrap())))
        .map(|file| file.strip_prefix(&root).unwrap().display().to_string())
        .collect();
    assert!(wrong.is_empty(), "write {DENIES} before the `impl` in {wrong:?}");
}

#[test]
fn planted_wrappers_are_found() {
    let wrapper = "impl<S: BucketStore, K> BucketStore for Wrapper<S, K> {";
    assert!(has_unchecked_wrapper(wrapper));
    assert!(!has_unchecked_wrapper(&format!("{DENIES}\n{wrapper}")));
    assert!(!has_unchecked_wrapper("impl BucketStore for FileStore {"));
}

fn has_unchecked_wrapper(code: &str) -> bool {
    let lines: Vec<_> = code.lines().map(str::trim).collect();
    let is_wrapper = |line: &str| {
        let (bounds, implemented) = line.split_once(" BucketStore for ").unwrap_or_default();
        bounds.starts_with("impl<") && bounds.contains(": BucketStore") && !implemented.is_empty()
    };
    (0..lines.len()).any(|i| is_wrapper(lines[i]) && (i == 0 || lines[i - 1] != DENIES))
}
