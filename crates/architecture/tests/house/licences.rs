//! No shipped dependency has a copyleft licence.

use std::collections::{HashMap, HashSet};

use cargo_metadata::{DependencyKind, Metadata, Node, PackageId};
use spdx::{Expression, Licensee, ParseMode};

use crate::workspace;

/// Licences that require at most a notice.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Checks normal and build dependencies on all platforms, with default features. Dependencies of
/// tests may have any licence, because they are not shipped.
#[test]
fn nothing_we_ship_is_under_copyleft() {
    let metadata = workspace::cargo_metadata().exec().unwrap();
    let mut refused: Vec<_> = shipped(&metadata)
        .into_iter()
        .map(|id| &metadata[id])
        .filter(|package| !is_allowed(package.license.as_deref().unwrap_or_default()))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.license))
        .collect();
    refused.sort_unstable();
    assert!(refused.is_empty(), "packages with licences outside ALLOWED:\n{}", refused.join("\n"));
}

#[test]
fn planted_licences_are_found() {
    for refused in ["", "GPL-3.0-only", "MPL-2.0", "LGPL-2.1-or-later", "MIT AND GPL-2.0-or-later"]
    {
        assert!(!is_allowed(refused), "{refused}");
    }
    for allowed in ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR Zlib) AND Unicode-3.0"]
    {
        assert!(is_allowed(allowed), "{allowed}");
    }
}

fn is_allowed(licence: &str) -> bool {
    let allowed = ALLOWED.map(|licence| Licensee::parse(licence).expect("ALLOWED is well-formed"));
    // Lax: older packages write "/" for "OR".
    Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|required| allowed.iter().any(|licence| licence.satisfies(required)))
    })
}

/// The packages of the workspace, and their transitive normal and build dependencies.
fn shipped(metadata: &Metadata) -> HashSet<&PackageId> {
    let graph = metadata.resolve.as_ref().expect("the command resolves dependencies");
    let nodes: HashMap<&PackageId, &Node> =
        graph.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut shipped = HashSet::new();
    let mut open: Vec<_> = metadata.workspace_members.iter().collect();
    while let Some(id) = open.pop() {
        if shipped.insert(id) {
            let needed = nodes[id].deps.iter().filter(|dependency| {
                dependency.dep_kinds.iter().any(|use_| use_.kind != DependencyKind::Development)
            });
            open.extend(needed.map(|dependency| &dependency.pkg));
        }
    }
    shipped
}
