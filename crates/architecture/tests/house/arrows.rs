//! The allowed dependencies between crates.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use cargo_metadata::{Dependency, DependencyKind};

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// Each crate of the workspace, with the workspace crates that it may depend on. A crate missing
/// here is an error.
const HOUSE: [(&str, &[&str]); 25] = [
    ("oblivio-core", &[]),
    (CONFORMANCE, &["oblivio-core"]),
    // The protocol between a remote store and its server.
    ("oblivio-wire", &["oblivio-core"]),
    ("oblivio-store", &["oblivio-core", "oblivio-wire"]),
    // Its client connects to share servers as a remote store connects to a bucket server.
    ("oblivio-shares", &["oblivio-core", "oblivio-wire", "oblivio-store"]),
    // A volume gets storage as a trait of core and knows no store. S³ORAM is a scheme like the ones
    // in core, but has its own crate.
    ("oblivio-volume", &["oblivio-core", "oblivio-shares"]),
    // Predicts the cost of a volume, for `oblivio plan` and for the papers.
    ("oblivio-models", &["oblivio-core"]),
    // Fonts and colours of pictures.
    ("oblivio-pen", &[]),
    ("oblivio-sim", &["oblivio-core", "oblivio-models"]),
    ("oblivio-nbd", &["oblivio-wire", "oblivio-volume"]),
    ("oblivio-mount", &["oblivio-wire", "oblivio-volume"]),
    ("oblivio-watch", &["oblivio-core", "oblivio-volume"]),
    // It has no volume keys and does not know what a volume is.
    ("oblivio-bucket-server", &["oblivio-core", "oblivio-wire", "oblivio-store", "oblivio-shares"]),
    // The public library: storage and volume behind one type. The program uses it.
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
    // The papers' program shares output, files and errors with the product's program.
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
    // A library that QEMU loads, and programs that run in QEMU. No crate links them.
    ("oblivio-trace-plugin", &["oblivio-core", "oblivio-sim"]),
    ("oblivio-kernels", &[]),
    // A library that the hardware testbenches load. No other crate links it.
    ("oblivio-golden", &["oblivio-core"]),
    (TESTKIT, &["oblivio-core", "oblivio-shares", "oblivio-volume"]),
    // A tool that no crate links. It crashes machines that run the product, in the testkit's
    // simulation.
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
    // It builds a copy of the workspace, but links no crate of it.
    ("oblivio-planted-leaks", &[]),
    ("oblivio-architecture", &[]),
];

/// Crates for research on the product. No product crate may depend on them, even in tests.
const PAPERS: [&str; 5] = [
    "oblivio-kernels",
    "oblivio-lab",
    "oblivio-lab-program",
    "oblivio-sim",
    "oblivio-trace-plugin",
];

/// The crate of test utilities. Allowed in the tests of every crate, and in a tool that is itself a
/// test.
const TESTKIT: &str = "oblivio-testkit";

/// The conformance suite of stores. Allowed only in tests.
const CONFORMANCE: &str = "oblivio-conformance";

#[test]
fn every_dependency_is_allowed() {
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

/// The feature `relay` offers `Blanks::relay`, which stores bytes without sealing them.
#[test]
fn only_the_testkit_can_bypass_sealing() {
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

/// `SealedByClient` also stores unsealed bytes. It exists for the bucket server, which stores
/// sealed data and has no key. A feature could not restrict it, because cargo unifies the features
/// of a program.
#[test]
fn only_the_bucket_server_stores_data_sealed_by_clients() {
    let sources = sources().into_iter().filter(|(file, _)| {
        !file.starts_with("crates/core/src") && !file.starts_with("crates/architecture")
    });
    let mut naming: Vec<_> = sources
        .filter(|(_, code)| puts_what_others_sealed(code))
        .map(|(file, _)| file.display().to_string())
        .collect();
    naming.sort_unstable();
    // The conformance suite and tests of stores have no key either, and no product links them.
    let tests = [
        "crates/conformance/src/checked_store.rs",
        "crates/conformance/src/contract.rs",
        "crates/store/tests/objects/view.rs",
        "crates/store/tests/objects/world.rs",
    ];
    assert_eq!(naming, [&["crates/bucket-server/src/trips.rs"], &tests[..]].concat());
    assert!(puts_what_others_sealed("use oblivio_core::store::{Blanks, SealedByClient};"));
    assert!(puts_what_others_sealed("store::SealedByClient::new(bytes)"));
    assert!(!puts_what_others_sealed("struct SealedByClients; fn sealed_by_client() {}"));
}

/// Returns the sources of all crates: paths from the root of the repository, and code without
/// comments.
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

/// `LinkServer` does not authenticate its clients.
#[test]
fn only_the_crash_suite_uses_the_server_without_authentication() {
    let naming: BTreeSet<_> = sources()
        .into_iter()
        .filter(|(_, code)| names(code, "LinkServer"))
        .map(|(file, _)| file.iter().take(2).collect::<PathBuf>())
        .collect();
    // `crates/bucket-server` defines it, and this test names it.
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
    // An entry in HOUSE could not allow these.
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

/// Checks that `from` may depend on `to`.
fn check(from: &str, to: &str, kind: DependencyKind) -> Result<(), String> {
    let may_know = room(from)?;
    room(to)?;
    knows_papers(from, to)?;
    let for_its_tests = [TESTKIT, CONFORMANCE].contains(&to) && kind == DependencyKind::Development;
    if may_know.contains(&to) || for_its_tests {
        Ok(())
    } else {
        Err(format!("{from} must not depend on {to} ({kind:?} dependency): see HOUSE in this test"))
    }
}

/// Returns an error if `from` is a crate of the product and `to` is one of [`PAPERS`].
fn knows_papers(from: &str, to: &str) -> Result<(), String> {
    if PAPERS.contains(&to) && !PAPERS.contains(&from) {
        return Err(format!(
            "{from} belongs to the product and must not depend on {to} of the papers"
        ));
    }
    Ok(())
}

/// Returns the crates that the crate `name` may depend on.
fn room(name: &str) -> Result<&'static [&'static str], String> {
    let entry = HOUSE.iter().find(|(room, _)| *room == name);
    entry.map(|(_, may_know)| *may_know).ok_or_else(|| {
        format!(
            "{name} is missing in HOUSE of this test: add it with the crates that it may depend \
             on, and add it to the crates that may depend on it"
        )
    })
}
