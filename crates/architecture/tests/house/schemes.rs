//! A volume names no scheme outside of the table that makes them.

use std::fs;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// What schemes are called in the engine. A scheme that is added is added here.
const NAMES: [&str; 6] =
    ["rotating", "Rotating", "DurableRaw", "RawParams", "DurableScan", "scan::"];

/// Where they are named.
const TABLE: &str = "schemes.rs";

#[test]
fn a_volume_names_no_scheme_outside_of_its_table() {
    let folder = workspace::root().join("crates/volume/src");
    let mut wrong = Vec::new();
    for file in rust_files(&folder) {
        let path = file.strip_prefix(&folder).unwrap();
        let source = code(&fs::read_to_string(&file).unwrap());
        let named = named(&source);
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
    for planted in [
        "use oblivio_core::durable::rotating::RawParams;",
        "fn f(it: &RotatingOram) {}",
        "let params = oblivio_core::durable::scan::ScanParams { blocks, block_bytes, spare };",
    ] {
        assert!(!named(&code(planted)).is_empty(), "{planted}");
    }
    assert!(named(&code("/// Not as `DurableRaw` has it.\nfn scan(bytes: &[u8]) {}")).is_empty());
}

fn named(source: &str) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| source.contains(name)).collect()
}
