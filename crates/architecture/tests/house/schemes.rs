//! A volume names schemes only in the table that creates them.

use std::fs;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// The folder that contains a folder for each scheme.
const SCHEMES: &str = "crates/core/src/durable";

/// The source file that contains the table of schemes.
const TABLE: &str = "schemes.rs";

#[test]
fn a_volume_names_schemes_only_in_its_table() {
    let folder = workspace::root().join("crates/volume/src");
    let names = names();
    let mut wrong = Vec::new();
    for file in rust_files(&folder) {
        let path = file.strip_prefix(&folder).unwrap();
        let source = code(&fs::read_to_string(&file).unwrap());
        let named = named(&source, &names);
        if path.as_os_str() == TABLE {
            assert!(!named.is_empty(), "{TABLE} names no scheme");
        } else {
            wrong.extend(named.into_iter().map(|name| format!("{} names {name}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "only {TABLE} may name schemes:\n{}", wrong.join("\n"));
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

/// The names of schemes in the engine: their modules and public types.
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
