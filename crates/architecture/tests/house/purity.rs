//! The engine uses no I/O, clocks, threads or randomness of its own. Only audited files contain
//! `unsafe`.
//!
//! The engine takes storage, time and randomness as arguments, so a run can be repeated from a
//! seed, in a simulator or in an enclave.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// Modules of the standard library that the engine must not use.
const NOT_IN_CORE: [&str; 6] = ["env", "fs", "net", "process", "thread", "time"];

/// Names that give access to the operating system's randomness.
const CHANCE: [&str; 4] = ["getrandom", "SysRng", "OsRng", "thread_rng"];

/// The files with `unsafe` code. Each of them justifies its `unsafe` code.
const MAY_BE_UNSAFE: [&str; 5] = [
    "crates/cli/src/background/inherited.rs",
    "crates/core/src/hint.rs",
    "crates/golden/src/abi.rs",
    "crates/shares/src/field/gf256/kernels.rs",
    "papers/trace-plugin/src/qemu.rs",
];

#[test]
fn the_engine_uses_no_operating_system() {
    let mut wrong = Vec::new();
    let folder = workspace::root().join("crates/core/src");
    for file in rust_files(&folder) {
        let code = code(&fs::read_to_string(&file).unwrap());
        let modules = NOT_IN_CORE.iter().filter(|module| uses_std(&code, module));
        let chance = CHANCE.iter().filter(|name| code.contains(**name));
        let file = file.strip_prefix(&folder).unwrap().display();
        wrong.extend(modules.chain(chance).map(|what| format!("{file} uses {what}")));
    }
    assert!(wrong.is_empty(), "take these as arguments instead:\n{}", wrong.join("\n"));
}

#[test]
fn unsafe_stays_in_audited_files() {
    let metadata = workspace::cargo_metadata().no_deps().exec().unwrap();
    let sources = metadata.workspace_packages().into_iter().flat_map(|package| {
        let folder = package.manifest_path.parent().expect("a manifest has a parent folder");
        rust_files(&folder.join("src").into_std_path_buf())
    });
    let holds_unsafe = |file: &PathBuf| code(&fs::read_to_string(file).unwrap()).contains("unsafe");
    let found: Vec<_> = sources
        .filter(holds_unsafe)
        .map(|file| file.strip_prefix(workspace::root()).unwrap().to_owned())
        .filter(|file| !MAY_BE_UNSAFE.iter().any(|audited| file == Path::new(audited)))
        .collect();
    assert!(found.is_empty(), "unsafe code outside {MAY_BE_UNSAFE:?}: {found:?}");
}

#[test]
fn planted_uses_are_found() {
    for planted in [
        "use std::fs;",
        "use std::fs::File;",
        "fn f() { std::fs::remove_file(p) }",
        "use std::{io, fs};",
        "use std::{\n    io::{self, Read},\n    fs::File,\n};",
    ] {
        assert!(uses_std(&code(planted), "fs"), "{planted}");
    }
    for innocent in [
        "// std::fs",
        "/// See [`std::fs`].",
        "use std::fmt;",
        "fn f() {}\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n",
    ] {
        assert!(!uses_std(&code(innocent), "fs"), "{innocent}");
    }
}

/// Whether `code` names `std::module`, on its own or in a group.
fn uses_std(code: &str, module: &str) -> bool {
    let is_module = |name: &str| name.trim() == module;
    let paths = code.split("std::").skip(1);
    paths.into_iter().any(|path| match path.strip_prefix('{') {
        None => is_module(path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()),
        Some(group) => {
            let group = group.split(';').next().expect("split gives at least one part");
            group.split([',', '{', '}']).any(|item| is_module(item.split("::").next().unwrap()))
        }
    })
}
