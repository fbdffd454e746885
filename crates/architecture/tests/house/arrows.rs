//! Who may know whom.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use cargo_metadata::{Dependency, DependencyKind};

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// Each crate, and the crates of ours that it may use. A crate not listed here does not exist.
const HOUSE: [(&str, &[&str]); 25] = [
    ("oblivio-core", &[]),
    (CONFORMANCE, &["oblivio-core"]),
    // What is said between a store that is far away and its server.
    ("oblivio-wire", &["oblivio-core"]),
    ("oblivio-store", &["oblivio-core", "oblivio-wire"]),
    // Its client reaches each share server as a store reaches a bucket server.
    ("oblivio-shares", &["oblivio-core", "oblivio-wire", "oblivio-store"]),
    // Storage is handed to a volume, as core's trait: it knows no store. S³ORAM is a scheme like those of core, with a crate of its own.
    ("oblivio-volume", &["oblivio-core", "oblivio-shares"]),
    // What a volume would cost before it exists: for `oblivio plan`, and for the papers.
    ("oblivio-models", &["oblivio-core"]),
    // Font and colours of pictures.
    ("oblivio-pen", &[]),
    ("oblivio-sim", &["oblivio-core", "oblivio-models"]),
    ("oblivio-nbd", &["oblivio-wire", "oblivio-volume"]),
    ("oblivio-mount", &["oblivio-wire", "oblivio-volume"]),
    ("oblivio-watch", &["oblivio-core", "oblivio-volume"]),
    // It has no key of any volume, and does not know what a volume is.
    ("oblivio-bucket-server", &["oblivio-core", "oblivio-wire", "oblivio-store", "oblivio-shares"]),
    // The front door of the library: storage and volume behind one type. The program is built on it.
    ("oblivio", &["oblivio-core", "oblivio-store", "oblivio-shares", "oblivio-volume"]),
    (
        "oblivio-lab",
        &[
            "oblivio-core",
            "oblivio-store",
            "oblivio-shares",
            "oblivio-volume",
            "oblivio-models",
            "oblivio-pen",
            "oblivio-sim",
        ],
    ),
    (
        "oblivio-cli",
        &[
            "oblivio",
            "oblivio-core",
            "oblivio-wire",
            "oblivio-store",
            "oblivio-shares",
            "oblivio-volume",
            "oblivio-models",
            "oblivio-pen",
            "oblivio-nbd",
            "oblivio-mount",
            "oblivio-watch",
            "oblivio-bucket-server",
        ],
    ),
    // The program of the papers prints, writes files and fails as the product's does.
    (
        "oblivio-lab-program",
        &[
            "oblivio",
            "oblivio-core",
            "oblivio-wire",
            "oblivio-store",
            "oblivio-models",
            "oblivio-sim",
            "oblivio-bucket-server",
            "oblivio-lab",
            "oblivio-cli",
        ],
    ),
    ("oblivio-python", &["oblivio-core", "oblivio-store", "oblivio-shares", "oblivio-volume"]),
    // A library that the emulator loads, and programs that run in it: nobody links them.
    ("oblivio-trace-plugin", &["oblivio-core", "oblivio-sim"]),
    ("oblivio-kernels", &[]),
    // A library that benches of the hardware load: no other crate links it.
    ("oblivio-golden", &["oblivio-core"]),
    (TESTKIT, &["oblivio-core", "oblivio-shares", "oblivio-volume"]),
    // A tool: nobody links it. In the world of the testkit it lets machines die that run what is delivered.
    (
        "oblivio-crash-suite",
        &[
            "oblivio-core",
            "oblivio-wire",
            "oblivio-store",
            "oblivio-shares",
            "oblivio-volume",
            "oblivio-bucket-server",
            TESTKIT,
        ],
    ),
    // It builds a copy of the house, and links none of it.
    ("oblivio-planted-leaks", &[]),
    ("oblivio-architecture", &[]),
];

/// Research on the product. No crate of the product may know it, not even in tests.
const PAPERS: [&str; 5] = [
    "oblivio-kernels",
    "oblivio-lab",
    "oblivio-lab-program",
    "oblivio-sim",
    "oblivio-trace-plugin",
];

/// The tests of every crate may use it, and a tool that is a test; nothing else.
const TESTKIT: &str = "oblivio-testkit";

/// The suite that stores pass, for their tests alone.
const CONFORMANCE: &str = "oblivio-conformance";

#[test]
fn every_arrow_points_the_right_way() {
    let metadata = workspace::cargo_metadata().no_deps().exec().unwrap();
    let arrows = metadata.workspace_packages().into_iter().flat_map(|package| {
        let ours = package.dependencies.iter().filter(|dependency| is_ours(dependency));
        ours.map(|dependency| check(&package.name, &dependency.name, dependency.kind))
            .chain([room(&package.name).map(drop)])
            .collect::<Vec<_>>()
    });
    let wrong: Vec<_> = arrows.filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_papers_are_the_crates_in_their_folder() {
    let metadata = workspace::cargo_metadata().no_deps().exec().unwrap();
    let folder = workspace::root().join("papers");
    let packages = metadata.workspace_packages().into_iter();
    let mut papers: Vec<_> = packages
        .filter(|package| package.manifest_path.starts_with(&folder))
        .map(|package| package.name.to_string())
        .collect();
    papers.sort_unstable();
    assert_eq!(papers, PAPERS);
    for (name, may_know) in HOUSE {
        for other in may_know {
            assert_eq!(knows_papers(name, other), Ok(()));
        }
    }
}

/// With `Blanks::relay` anything can be stored unsealed.
#[test]
fn nothing_that_is_delivered_can_pass_by_the_seal() {
    let metadata = workspace::cargo_metadata().no_deps().exec().unwrap();
    let can_pass = |dependency: &&Dependency| {
        dependency.name == "oblivio-core" && dependency.features.iter().any(|it| it == "relay")
    };
    let passing: Vec<_> = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| package.dependencies.iter().any(|it| can_pass(&it)))
        .map(|package| package.name.to_string())
        .collect();
    assert_eq!(passing, [TESTKIT]);
}

/// With `SealedByClient` as well: it is for the server that keeps what clients have sealed, and has no key. A feature would not
/// keep others from it, as a program is built with those of all its parts.
#[test]
fn what_others_sealed_is_put_into_storage_by_the_bucket_server_alone() {
    let sources = sources().into_iter().filter(|(file, _)| {
        !file.starts_with("crates/core/src") && !file.starts_with("crates/architecture")
    });
    let mut naming: Vec<_> = sources
        .filter(|(_, code)| puts_what_others_sealed(code))
        .map(|(file, _)| file.display().to_string())
        .collect();
    naming.sort_unstable();
    // The suite that stores pass has no key either, and is built into tests alone.
    let suite = ["crates/conformance/src/bench.rs", "crates/conformance/src/contract.rs"];
    assert_eq!(naming, [&["crates/bucket-server/src/trips.rs"], &suite[..]].concat());
    assert!(puts_what_others_sealed("use oblivio_core::store::{Blanks, SealedByClient};"));
    assert!(puts_what_others_sealed("store::SealedByClient::new(bytes)"));
    assert!(!puts_what_others_sealed("struct SealedByClients; fn sealed_by_client() {}"));
}

/// The sources of all crates: paths from the root of the repository, and code without comments.
fn sources() -> Vec<(PathBuf, String)> {
    let root = workspace::root();
    let files = workspace::CRATES.iter().flat_map(|folder| rust_files(&root.join(folder)));
    let source = |file: PathBuf| {
        let code = code(&fs::read_to_string(&file).unwrap());
        (file.strip_prefix(&root).unwrap().to_owned(), code)
    };
    files.map(source).collect()
}

fn puts_what_others_sealed(code: &str) -> bool {
    names(code, "SealedByClient")
}

fn names(code: &str, name: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// It asks nobody who he is.
#[test]
fn the_server_without_a_door_is_used_by_the_crash_suite_alone() {
    let naming: BTreeSet<_> = sources()
        .into_iter()
        .filter(|(_, code)| names(code, "LinkServer"))
        .map(|(file, _)| file.iter().take(2).collect::<PathBuf>())
        .collect();
    // And by this test.
    let allowed = ["crates/architecture", "crates/bucket-server", "crates/crash-suite"];
    assert_eq!(naming, allowed.map(PathBuf::from).into());
}

#[test]
fn planted_arrows_are_found() {
    use DependencyKind::{Build, Development, Normal};
    for (from, to, kind) in [
        ("oblivio-core", "oblivio-store", Normal),
        ("oblivio-core", "oblivio-lab", Development),
        ("oblivio-volume", "oblivio-store", Normal),
        ("oblivio-lab", "oblivio-cli", Normal),
        ("oblivio-cli", "oblivio-lab", Normal),
        ("oblivio-crash-suite", "oblivio-sim", Normal),
        ("oblivio-cli", "oblivio-python", Normal),
        ("oblivio-sim", TESTKIT, Normal),
        ("oblivio-sim", TESTKIT, Build),
        ("oblivio-store", CONFORMANCE, Normal),
        (CONFORMANCE, "oblivio-store", Development),
        (TESTKIT, "oblivio-store", Normal),
        (TESTKIT, "oblivio-crash-suite", Development),
        ("oblivio-store", "oblivio-architecture", Development),
        ("oblivio-store", "oblivio-attic", Normal),
        ("oblivio-attic", "oblivio-core", Normal),
    ] {
        assert!(check(from, to, kind).is_err(), "{from} -> {to} ({kind:?})");
    }
    // Not even an entry in HOUSE would allow it.
    assert!(knows_papers("oblivio-cli", "oblivio-lab").is_err());
    assert!(knows_papers(TESTKIT, "oblivio-kernels").is_err());
    assert_eq!(knows_papers("oblivio-lab", "oblivio-sim"), Ok(()));
    assert_eq!(knows_papers("oblivio-lab-program", "oblivio-cli"), Ok(()));
    for (from, to, kind) in [
        ("oblivio-lab", "oblivio-core", Normal),
        ("oblivio-core", TESTKIT, Development),
        ("oblivio-store", CONFORMANCE, Development),
        (TESTKIT, "oblivio-core", Normal),
    ] {
        assert_eq!(check(from, to, kind), Ok(()), "{from} -> {to} ({kind:?})");
    }
}

fn is_ours(dependency: &Dependency) -> bool {
    dependency.path.is_some() || dependency.name.starts_with("oblivio")
}

/// Whether `from` may know `to`.
fn check(from: &str, to: &str, kind: DependencyKind) -> Result<(), String> {
    let may_know = room(from)?;
    room(to)?;
    knows_papers(from, to)?;
    let for_its_tests = [TESTKIT, CONFORMANCE].contains(&to) && kind == DependencyKind::Development;
    if may_know.contains(&to) || for_its_tests {
        Ok(())
    } else {
        Err(format!("{from} must not know {to} ({kind:?} dependency): see HOUSE in this test"))
    }
}

/// Refuses a crate of the product that knows one of the papers.
fn knows_papers(from: &str, to: &str) -> Result<(), String> {
    if PAPERS.contains(&to) && !PAPERS.contains(&from) {
        return Err(format!(
            "{from} is a part of the product and must not know {to} of the papers"
        ));
    }
    Ok(())
}

/// Whom the crate `name` may know.
fn room(name: &str) -> Result<&'static [&'static str], String> {
    let entry = HOUSE.iter().find(|(room, _)| *room == name);
    entry.map(|(_, may_know)| *may_know).ok_or_else(|| {
        format!(
            "nobody knows where {name} stands: add it to HOUSE in this test with the crates it may \
             know, and to the entries of those that may know it"
        )
    })
}
