//! Checks which crates can be published, and that each is complete without the repository. No crate
//! has been published yet.

use std::fs;
use std::path::Path;

use cargo_metadata::{Dependency, DependencyKind, Package};

use crate::workspace;
use crate::workspace::source::{code, rust_files};

/// Crates that are tools of this repository. Every other crate can be published.
const TOOLS: [&str; 7] = [
    "oblivio-architecture",
    "oblivio-crash-suite",
    "oblivio-golden",
    "oblivio-kernels",
    "oblivio-planted-leaks",
    "oblivio-testkit",
    "oblivio-trace-plugin",
];

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

#[test]
fn every_package_except_the_tools_can_be_published() {
    let metadata = workspace::cargo_metadata().no_deps().exec().unwrap();
    let packages = metadata.workspace_packages();
    let mut tools: Vec<_> =
        packages.iter().filter(|it| !is_published(it)).map(|it| it.name.as_str()).collect();
    tools.sort_unstable();
    assert_eq!(tools, TOOLS);
    let wants: Vec<_> =
        packages.into_iter().filter(|it| is_published(it)).flat_map(wants).collect();
    assert!(wants.is_empty(), "\n{}", wants.join("\n"));
}

#[test]
fn planted_faults_of_packages_are_found() {
    for outside in [
        r#"include_str!("../../other/file")"#,
        r#"include_bytes!( "../../../docs/page.md" )"#,
        r#"include!("/etc/passwd")"#,
    ] {
        assert!(leaves_package(outside, 1), "{outside}");
    }
    for inside in [
        r#"include_str!("style.css")"#,
        r#"include_str!("../specs/file")"#,
        r#"let path = "../../x";"#,
    ] {
        assert!(!leaves_package(inside, 1), "{inside}");
    }
    assert!(!leaves_package(r#"include_str!("../../results/file")"#, 2));
}

fn is_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|registries| !registries.is_empty())
}

/// Returns the reasons why a package cannot be published.
fn wants(package: &Package) -> Vec<String> {
    let folder = package.manifest_path.parent().unwrap().as_std_path();
    let mut wants = Vec::new();
    let mut want = |is_there: bool, what: String| {
        if !is_there {
            wants.push(format!("{}: {what}", package.name));
        }
    };
    want(package.description.is_some(), "no description".to_owned());
    want(!package.keywords.is_empty() && package.keywords.len() <= 5, "no keywords".to_owned());
    want(!package.categories.is_empty(), "no categories".to_owned());
    want(package.rust_version.is_some(), "no rust-version".to_owned());
    want(package.metadata.pointer("/docs/rs").is_some(), "nothing for docs.rs".to_owned());
    let title = format!("# {}", package.name);
    let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    want(
        readme.to_lowercase().starts_with(&title),
        format!("README.md does not begin with `{title}`"),
    );
    for licence in LICENCES {
        let is_ours = fs::read(folder.join(licence)).ok()
            == Some(fs::read(workspace::root().join(licence)).unwrap());
        want(is_ours, format!("{licence} differs from the file at the root"));
    }
    for dependency in package.dependencies.iter().filter(|it| it.path.is_some()) {
        want(
            is_there_for_others(dependency),
            format!(
                "{} is not published: make it a dev-dependency without a version",
                dependency.name
            ),
        );
    }
    want(!reaches_outside(folder), "a source includes a file outside the package".to_owned());
    wants
}

/// Whether this dependency on a workspace crate is declared correctly: with a version if the crate
/// can be published; otherwise as a dev-dependency without a version, which cargo leaves out of
/// packages.
fn is_there_for_others(dependency: &Dependency) -> bool {
    let is_tool = TOOLS.contains(&dependency.name.as_str());
    let is_left_out =
        dependency.kind == DependencyKind::Development && dependency.req.to_string() == "*";
    is_tool == is_left_out
}

fn reaches_outside(package: &Path) -> bool {
    let sources = package.join("src");
    rust_files(&sources).into_iter().any(|file| {
        let depth = file.strip_prefix(package).unwrap().components().count() - 1;
        let source = code(&fs::read_to_string(&file).unwrap());
        // Doc tests of the repository's documents run only here, not in a package.
        let built = source.split("#[cfg(doctest)]").next().unwrap_or_default();
        leaves_package(built, depth)
    })
}

/// Whether a source `depth` folders below its package includes a file outside the package.
fn leaves_package(source: &str, depth: usize) -> bool {
    let includes = source.match_indices("include").filter_map(|(at, _)| {
        let call = source[at..].split_once('!')?;
        let is_include = ["include", "include_str", "include_bytes"].contains(&call.0);
        let path = call.1.strip_prefix('(')?.trim_start().strip_prefix('"')?;
        is_include.then(|| path.split('"').next().unwrap_or_default())
    });
    includes.into_iter().any(|path| {
        path.starts_with('/') || path.split('/').take_while(|part| *part == "..").count() > depth
    })
}
