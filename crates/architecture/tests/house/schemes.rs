//! A volume names no scheme outside of the table that makes them.

use std::fs;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// Where each scheme has a folder.
const SCHEMES: &str = "crates/core/src/durable";

/// Where they are named.
const TABLE: &str = "schemes.rs";

#[test]
fn a_volume_names_no_scheme_outside_of_its_table() {
    let folder = workspace::root().join("crates/volume/src");
    let names = names();
    let mut wrong = Vec::new();
    for file in rust_files(&folder) {
        let path = file.strip_prefix(&folder).unwrap();
        let source = code(&fs::read_to_string(&file).unwrap());
        let named = named(&source, &names);
        if path.as_os_str() == TABLE {
            assert!(!named.is_empty(), "the table names schemes");
        } else {
            wrong.extend(named.into_iter().map(|name| format!("{} names {name}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "schemes are named in {TABLE} alone:\n{}", wrong.join("\n"));
}

#[test]
fn planted_names_are_found() {
    let names = names();
    for planted in [
        "use oblivio_core::durable::rotating::RawParams;",
        "fn f(it: &DurableScan) {}",
        "let params = oblivio_core::durable::scan::ScanParams { blocks, block_bytes, spare };",
    ] {
        assert!(!named(&code(planted), &names).is_empty(), "{planted}");
    }
    let sound = code("/// Not as `DurableRaw` has it.\nfn scan(bytes: &[u8]) {}");
    assert!(named(&sound, &names).is_empty());
}

/// What schemes are called in the engine: their modules, and the types that they show.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace::root().join(SCHEMES)).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        names.push(format!("{}::", folder.file_name().unwrap().display()));
        for file in rust_files(&folder) {
            let source = code(&fs::read_to_string(file).unwrap());
            let shown = source.lines().filter_map(|line| line.strip_prefix("pub struct "));
            let until_its_end =
                |line: &str| line.split(|c: char| !c.is_alphanumeric()).next().map(str::to_owned);
            names.extend(shown.filter_map(until_its_end));
        }
    }
    names
}

fn named<'n>(source: &str, names: &'n [String]) -> Vec<&'n str> {
    names.iter().map(String::as_str).filter(|name| source.contains(name)).collect()
}
