//! The modules of the engine depend on each other in one direction.

use std::fs;
use std::path::Path;

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// The modules of the engine. Each may use itself and the modules before it.
const ROOMS: [&str; 21] = [
    "error",
    "hint",
    "memory",
    "wiped",
    "address_set",
    "geometry",
    "pieces",
    "layout",
    "seal",
    "store",
    "records",
    "view",
    "image",
    "block_cache",
    "stash",
    "bucket",
    "posmap",
    "scheme",
    "front",
    "durable",
    "reference",
];

/// Modules that re-export or describe the whole crate. They may use every module, and no module may
/// use them.
const ABOUT_ALL: [&str; 2] = ["lib", "manual"];

#[test]
fn modules_of_the_engine_use_only_those_before_them() {
    let folder = workspace::root().join("crates/core/src");
    let mut wrong = Vec::new();
    for file in rust_files(&folder) {
        let path = file.strip_prefix(&folder).unwrap();
        let room = room_of(path);
        if ABOUT_ALL.contains(&room.as_str()) {
            continue;
        }
        let source = code(&fs::read_to_string(&file).unwrap());
        let unknown = rooms_used(path, &source).into_iter().filter(|used| !may_use(&room, used));
        wrong.extend(unknown.map(|used| format!("{} uses {used}", path.display())));
    }
    assert!(wrong.is_empty(), "a module may use only earlier ROOMS:\n{}", wrong.join("\n"));
}

#[test]
fn planted_arrows_are_found() {
    let used = |path: &str, source: &str| rooms_used(Path::new(path), &code(source));
    for (path, planted) in [
        ("stash/mod.rs", "use crate::scheme::Op;"),
        ("stash/tree_top/kind.rs", "use crate::{error::Error, scheme::{Op, TreeConfig}};"),
        ("stash/mod.rs", "fn f(op: crate::scheme::Op) {}"),
        ("stash/mod.rs", "use super::scheme::Op;"),
        ("stash.rs", "use super::scheme::Op;"),
    ] {
        let used = used(path, planted);
        assert!(used.iter().any(|used| !may_use("stash", used)), "{path}: {planted}: {used:?}");
    }
    let by_the_root = used("stash/mod.rs", "use crate::PathOram;");
    assert!(!may_use("stash", &by_the_root[0]), "the root uses every module");
    for (path, innocent) in [
        ("stash/mod.rs", "/// See [`crate::scheme`]."),
        ("stash/mod.rs", "#[cfg(test)]\nmod tests {\n    use crate::scheme::Op;\n}\n"),
        ("stash/mod.rs", "use crate::geometry::Leaf;"),
        ("stash/tree_top/kind.rs", "use super::scheme::Op;"),
    ] {
        let used = used(path, innocent);
        assert!(used.iter().all(|used| may_use("stash", used)), "{path}: {innocent}: {used:?}");
    }
}

/// Whether module `room` may use `used`. A name that is not a module counts as the root, which uses
/// every module.
fn may_use(room: &str, used: &str) -> bool {
    let place = |name: &str| ROOMS.iter().position(|room| *room == name);
    let room = place(room).unwrap_or_else(|| panic!("{room} is missing in ROOMS"));
    place(used).is_some_and(|used| used <= room)
}

/// The top-level module that a file belongs to.
fn room_of(path: &Path) -> String {
    let first = path.components().next().unwrap();
    Path::new(&first).file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The top-level modules that `source` names.
fn rooms_used(path: &Path, source: &str) -> Vec<String> {
    let below_the_root = path.components().count() == 1
        || (path.components().count() == 2 && path.ends_with("mod.rs"));
    let mut starts = vec!["crate::"];
    if below_the_root {
        starts.push("super::");
    }
    let paths = starts.into_iter().flat_map(|start| source.split(start).skip(1));
    paths.flat_map(first_names).collect()
}

/// The first names of a path, or of each path in a group.
fn first_names(path: &str) -> Vec<String> {
    let name = |path: &str| {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        path.trim().split(|c| !is_name(c)).next().unwrap().to_owned()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut names = Vec::new();
    let (mut depth, mut item) = (0, String::new());
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => names.push(name(&std::mem::take(&mut item))),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                item.push(c);
            }
        }
    }
    names.push(name(&item));
    names.retain(|name| !name.is_empty());
    names
}
